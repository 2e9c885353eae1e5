"""The inspector as a person uses it: by mouse, by keyboard, on a phone, with a hostile catalog."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from browser.driving import inspecting

SCRIPT = "<img src=x onerror=alert(1)><script>alert(2)</script>"
Over = Callable[[list[dict[str, Any]]], str]


def test_the_key_leaves_the_address_and_a_reload_still_shows_the_page(
    page: Page, demo: str
) -> None:
    page.goto(demo)
    expect(page.locator("#totals")).to_contain_text("207 tools of 13 sources")

    assert page.url.endswith("/#catalog")
    page.reload()
    expect(page.locator("#totals")).to_contain_text("207 tools")


def test_whoever_has_no_key_sees_nothing_but_how_to_get_one(page: Page, demo: str) -> None:
    page.goto(demo.partition("#")[0])

    expect(page.get_by_role("alert")).to_contain_text("open the link anew")


def test_from_the_map_to_a_source_to_a_tool_and_back(page: Page, demo: str) -> None:
    page.goto(demo)
    page.locator(".tile", has_text="forge").click()
    page.get_by_role("link", name="forge__create_issue", exact=True).last.click()

    expect(page.locator("p.signature")).to_contain_text("forge__create_issue(")
    page.get_by_label("Wire shape").select_option("anthropic")
    expect(page.get_by_label("definition")).to_contain_text("input_schema")
    page.go_back()
    expect(page.get_by_role("heading", level=2)).to_contain_text("forge")


def test_hits_come_as_one_types_and_two_rankers_stand_side_by_side(page: Page, demo: str) -> None:
    page.goto(demo)
    page.get_by_role("tab", name="Search").click()
    page.get_by_label("Query").press_sequentially("create a pull request")
    expect(page.locator(".hit a").first).to_have_text("forge__create_pull_request")

    page.get_by_label("Why not this tool?").fill("forge__merge_pull_request")
    expect(page.locator(".reasons")).to_contain_text("Above it: forge__create_pull_request")
    page.get_by_label("Side by side").check()
    expect(page.locator(".columns section")).to_have_count(2)
    expect(page.get_by_label("answer").first).to_contain_text("forge__create_pull_request(")


def test_the_gate_is_a_slider(page: Page, demo: str) -> None:
    page.goto(demo)
    page.get_by_role("tab", name="Fold").click()
    expect(page.locator(".headline")).to_have_text(re.compile(r"30,\d{3} → \d{3} tokens"))

    page.get_by_label("Context window").press("End")
    expect(page.locator(".headline")).to_have_text(re.compile(r"(30,\d{3}) → \1 tokens"))


def test_all_of_it_is_reached_by_the_keyboard_alone(page: Page, demo: str) -> None:
    page.goto(demo)
    expect(page.locator("table")).to_be_visible()
    page.get_by_role("tab", name="Catalog").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_label("Query")).to_be_focused()
    page.keyboard.type("send mail")
    expect(page.locator(".hit a").first).to_have_text("mail__send_mail")
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == "mail__send_mail":
            break
    page.keyboard.press("Enter")
    expect(page.locator("p.signature")).to_contain_text("mail__send_mail(")


def test_a_recorded_chat_is_read_turn_by_turn(page: Page, tmp_path: Path) -> None:
    file = tmp_path / "chat.jsonl"
    chat = [sys.executable, "-m", "toolfold", "chat", "--script", "demo", "--transcript", str(file)]
    subprocess.run(chat, check=True, capture_output=True)
    with inspecting("--conversations", str(file)) as link:
        page.goto(link)
        page.get_by_role("tab", name="Conversations").click()
        page.get_by_role("link", name="chat.jsonl").click()

        expect(page.locator(".turn").first).to_contain_text("user")
        page.locator(".bridge summary").first.click()
        expect(page.locator(".bridge pre").first).to_be_visible()
        expect(page.locator(".called a").first).to_be_visible()
        found = Axe().run(page).response["violations"]
        assert [v["id"] for v in found if v["impact"] in ("serious", "critical")] == []


def test_a_running_gateway_appears_with_its_servers_and_what_they_died_of(
    page: Page, tmp_path: Path
) -> None:
    config = tmp_path / "gateway.yaml"
    config.write_text(
        f"serve:\n  state_dir: {tmp_path / 'state'}\nmcpServers:\n  broken:\n"
        f"    command: {sys.executable}\n    args: [-c, 'import sys; sys.exit(1)']\n",
        encoding="utf-8",
    )
    tools = tmp_path / "tools.json"
    tools.write_text('[{"name": "a", "description": "A tool.", "parameters": {}}]')
    serve = [sys.executable, "-m", "toolfold", "serve", "--http", "127.0.0.1:0"]
    with inspecting("--catalog", str(tools), "--config", str(config)) as link:
        page.goto(link)
        page.get_by_role("tab", name="Live").click()
        expect(page.locator("main")).to_contain_text("No gateway and no proxy of yours runs.")
        with subprocess.Popen([*serve, "--config", str(config)]) as gateway:
            try:
                expect(page.locator(".state.failed")).to_be_visible(timeout=30_000)
                expect(page.locator("td", has_text="ended with 1 before")).to_be_visible()
            finally:
                gateway.terminate()
        expect(page.locator("main")).to_contain_text("No gateway", timeout=15_000)
        page.goto("about:blank")  # it asks again and again


def test_a_catalog_of_scripts_is_shown_and_nothing_runs(page: Page, over: Over) -> None:
    schema = {"type": "object", "properties": {SCRIPT: {"description": SCRIPT, "enum": [SCRIPT]}}}
    tools = [
        {"name": f"{SCRIPT}{i}", "description": SCRIPT, "parameters": schema, "source": SCRIPT}
        for i in range(3)
    ]
    page.goto(over(tools))
    expect(page.locator("table")).to_contain_text("onerror=alert(1)")
    page.locator("table a").first.click()
    page.locator("table a").first.click()
    expect(page.locator(".description")).to_have_text(SCRIPT)
    page.get_by_role("tab", name="Search").click()
    page.get_by_label("Query").fill("alert img")
    page.wait_for_timeout(500)
    page.get_by_role("tab", name="Fold").click()
    expect(page.locator(".headline")).to_be_visible()

    assert page.locator("main img, main script").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1440])
def test_people_who_see_little_and_small_screens_are_served(
    page: Page, demo: str, width: int, scheme: Any
) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    page.goto(demo)
    expect(page.locator("table")).to_be_visible()
    for name, is_there in (
        ("Catalog", "table"),
        ("Search", ".hit"),
        ("Fold", ".headline"),
        ("Live", "main p"),
    ):
        page.get_by_role("tab", name=name).click()
        if name == "Search":
            page.get_by_label("Query").fill("send mail | open an issue")
        expect(page.locator(is_there).first).to_be_visible()
        found = Axe().run(page).response["violations"]

        assert [v["id"] for v in found if v["impact"] in ("serious", "critical")] == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
