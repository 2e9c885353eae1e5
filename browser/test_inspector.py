"""The inspector as a person uses it: by mouse, by keyboard, on a phone, with a hostile catalog."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from browser.driving import inspecting, toolfold

SCRIPT = "<img src=x onerror=alert(1)><script>alert(2)</script>"
Over = Callable[[list[dict[str, Any]]], str]


def serious(page: Page) -> list[str]:
    """Return what axe finds that keeps people out."""
    found = Axe().run(page).response["violations"]
    return [v["id"] for v in found if v["impact"] in ("serious", "critical")]


def chat_transcript(folder: Path) -> Path:
    file = folder / "chat.jsonl"
    chat = toolfold("chat", "--script", "demo", "--transcript", str(file))
    subprocess.run(chat, check=True, capture_output=True)
    return file


# ---- the link


def test_the_key_leaves_the_address_and_a_reload_still_shows_the_page(
    page: Page, demo: str
) -> None:
    page.goto(demo)
    expect(page.locator(".stats")).to_contain_text("207")

    assert page.url.endswith("/#catalog")
    page.reload()
    expect(page.locator(".stats")).to_contain_text("13 sources")


def test_whoever_has_no_key_sees_nothing_but_how_to_get_one(page: Page, demo: str) -> None:
    page.goto(demo.partition("#")[0])

    expect(page.get_by_role("alert")).to_contain_text("open the link anew")


def test_a_view_is_an_address_that_opens_in_another_tab(page: Page, demo: str) -> None:
    page.goto(demo)
    page.get_by_role("tab", name="Search").click()
    page.get_by_label("Query").fill("send mail")
    page.get_by_label("Why not this tool?").fill("mail__create_draft")
    expect(page.locator(".reasons")).to_be_visible()

    other = page.context.new_page()
    other.goto(page.url)
    expect(other.get_by_label("Query")).to_have_value("send mail")
    expect(other.locator(".reasons")).to_contain_text("mail__create_draft")
    other.close()


def test_the_frame_is_painted_before_any_script_has_come(page: Page, demo: str) -> None:
    page.route("**/*.js", lambda _: None)
    page.goto(demo, wait_until="commit")

    painted = page.evaluate("""() => new Promise((done) =>
        new PerformanceObserver(() => done(true)).observe({ type: "paint", buffered: true }))""")

    assert painted
    expect(page.get_by_role("tab", name="Search")).to_be_disabled()
    expect(page.locator(".bar")).to_have_css("position", "sticky")
    assert serious(page) == []


# ---- the views


def test_from_the_map_to_a_source_to_a_tool_and_back(page: Page, demo: str) -> None:
    page.goto(demo)
    page.locator(".tile.group", has_text="forge").click(position={"x": 8, "y": 8})
    page.get_by_role("link", name="forge__create_issue", exact=True).last.click()

    expect(page.locator("p.signature")).to_contain_text("forge__create_issue(")
    page.get_by_role("button", name="anthropic", exact=True).click()
    expect(page.get_by_label("definition")).to_contain_text('"input_schema"')
    expect(page.get_by_role("row", name=re.compile("^repo required"))).to_be_visible()
    page.go_back()
    expect(page.get_by_role("heading", level=2)).to_have_text("forge")


def test_a_tool_is_found_by_a_part_of_its_name(page: Page, demo: str) -> None:
    page.goto(demo)
    page.get_by_label("Find a tool by name").fill("pull merge")

    expect(page.get_by_role("table", name="Tools").get_by_role("link")).to_have_text(
        "forge__merge_pull_request"
    )


def test_what_would_hurt_comes_with_the_words_to_add(page: Page, over: Over) -> None:
    crowd = [
        {"name": f"reserve_{i}", "description": "Reserve accommodation in a hotel."}
        for i in range(9)
    ]
    hidden = {"name": "zz", "description": "Book a hotel room."}
    page.goto(over([*crowd, hidden, {"name": "open_door"}]))

    hard = page.get_by_role("table", name="Hard to find")
    expect(hard).to_contain_text("zz", timeout=20_000)
    expect(hard.get_by_role("button", name="Copy").first).to_be_visible()
    expect(page.get_by_role("table", name="Findings")).to_contain_text("missing description")


def test_hits_come_as_one_types_and_two_rankers_stand_side_by_side(page: Page, demo: str) -> None:
    page.goto(demo)
    page.get_by_role("tab", name="Search").click()
    page.get_by_label("Query").press_sequentially("create a pull request")
    expect(page.locator(".hit a").first).to_have_text("forge__create_pull_request")
    expect(page.get_by_label("answer")).to_contain_text("forge__create_pull_request(")

    page.get_by_label("Why not this tool?").fill("forge__merge_pull_request")
    expect(page.locator(".reasons")).to_contain_text("Above it: forge__create_pull_request")
    page.get_by_text("Settings, and what to compare").click()
    page.get_by_label("Compare with another").check()
    expect(page.get_by_role("region", name=re.compile("^Results: "))).to_have_count(2)
    expect(page.get_by_label("answer")).to_have_count(2)


def test_two_catalogs_answer_side_by_side(page: Page, tmp_path: Path) -> None:
    files: list[str] = []
    for name in ("post_letter", "send_parcel"):
        files.append(str(tmp_path / f"{name}.json"))
        tool = {"name": name, "description": f"{name} to somebody by post.", "parameters": {}}
        Path(files[-1]).write_text(json.dumps([tool]))
    with inspecting(*files, page=page) as link:
        page.goto(link)
        page.get_by_role("tab", name="Search").click()
        page.get_by_label("Query").fill("by post")
        page.get_by_text("Settings, and what to compare").click()
        page.get_by_label("Compare with another").check()

        columns = page.get_by_role("region", name=re.compile("^Results: "))
        expect(columns.first).to_contain_text("post_letter")
        expect(columns.last).to_contain_text("send_parcel")
        expect(columns.last).to_contain_text("only here")
        page.goto("about:blank")  # it would go on asking for what `check` finds


def test_a_need_that_nothing_serves_says_what_was_nearest(page: Page, demo: str) -> None:
    page.goto(demo)
    page.get_by_role("tab", name="Search").click()
    page.get_by_label("Query").fill("knit a pullover")

    expect(page.locator(".notice.warn")).to_contain_text("Nothing for “knit a pullover”")


def test_the_gate_is_a_slider_and_every_strategy_has_its_price(page: Page, demo: str) -> None:
    page.goto(demo)
    page.get_by_role("tab", name="Fold").click()
    expect(page.locator(".headline")).to_have_text(re.compile(r"30,\d{3} → \d{3} tokens"))
    expect(page.get_by_role("table", name="Strategies").locator("tbody tr")).to_have_count(7)

    page.get_by_label("Context window").press("End")
    expect(page.locator(".headline")).to_have_text(re.compile(r"(30,\d{3}) → \1 tokens"))
    page.get_by_label("The gate").press("Home")
    expect(page.locator(".headline")).to_have_text(re.compile(r"30,\d{3} → \d{3} tokens"))
    page.get_by_role("button", name="stub").click()
    expect(page.locator("tr.chosen")).to_contain_text("stub")
    page.get_by_label("Model").fill("llama-3-8b")
    expect(page.locator("output").first).to_have_text("8,192 tokens")


def test_a_recorded_chat_is_read_turn_by_turn(page: Page, tmp_path: Path) -> None:
    with inspecting(str(chat_transcript(tmp_path)), page=page) as link:
        page.goto(link)
        page.get_by_role("tab", name="Conversations").click()
        page.get_by_role("link", name="Remind me to call mum").click()

        expect(page.locator(".turn").first).to_contain_text("user")
        page.locator(".bridge summary").first.click()
        expect(page.locator(".bridge pre").first).to_be_visible()
        expect(page.locator(".called a").first).to_have_text("create_calendar_event")
        expect(page.locator(".turn").first).to_contain_text("found 5, used 1")
        assert serious(page) == []


def test_an_audit_log_is_read_call_by_call(page: Page, tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    about = {"principal": "ada", "server": "forge", "via": "tool_call", "seconds": 0.25}
    calls = [
        {"at": "2026-11-16T10:00:00Z", "tool": "forge__create_issue", "outcome": "ok"},
        {"at": "2026-11-16T10:00:01Z", "tool": "forge__list_issues", "outcome": "failed"},
    ]
    log.write_text("".join(json.dumps({**about, **call}) + "\n" for call in calls))
    with inspecting(str(log), page=page) as link:
        page.goto(link)
        page.get_by_role("tab", name="Conversations").click()

        expect(page.get_by_role("table", name="Calls").locator("tbody tr")).to_have_count(2)
        page.get_by_label("Outcome").select_option("failed")
        expect(page.get_by_role("table", name="Calls").locator("tbody tr")).to_have_count(1)
        expect(page.get_by_role("table", name="Calls")).to_contain_text("forge__list_issues")
        assert serious(page) == []


# ---- people


def test_all_of_it_is_reached_by_the_keyboard_alone(page: Page, demo: str) -> None:
    page.goto(demo)
    expect(page.get_by_role("table", name="Sources")).to_be_visible()
    page.get_by_role("tab", name="Catalog").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Search")).to_be_focused()
    page.keyboard.press("/")
    expect(page.get_by_label("Query")).to_be_focused()
    page.keyboard.type("send mail")
    expect(page.locator(".hit a").first).to_have_text("mail__send_mail")
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("link", name="mail__send_mail").first).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("p.signature")).to_contain_text("mail__send_mail(")
    page.keyboard.press("3")
    expect(page.locator(".headline")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_label("Strategy")).to_be_focused()


def test_the_keys_are_listed_and_can_be_turned_off(page: Page, demo: str) -> None:
    page.goto(demo)
    expect(page.locator(".stats")).to_be_visible()
    page.get_by_role("button", name="Keys").focus()
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keys")
    expect(dialog).to_be_visible()
    assert serious(page) == []
    dialog.get_by_label("Single letters").uncheck()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("button", name="Keys")).to_be_focused()
    page.keyboard.press("3")
    expect(page.get_by_role("tab", name="Catalog")).to_have_attribute("aria-selected", "true")


def test_nothing_jumps_while_it_loads(page: Page, demo: str) -> None:
    page.add_init_script(
        "window.jumps = 0; new PerformanceObserver(list => { for (const each of list.getEntries())"
        " if (!each.hadRecentInput) window.jumps += each.value; })"
        ".observe({ type: 'layout-shift', buffered: true });"
    )
    page.goto(demo)
    expect(page.locator(".tile").first).to_be_visible()
    expect(page.locator(".stat.good strong")).to_have_text("286")

    assert page.evaluate("window.jumps") < 0.1


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280, 1440])
def test_people_who_see_little_and_small_screens_are_served(
    page: Page, demo: str, width: int, scheme: Any
) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    page.goto(demo)
    expect(page.get_by_role("table", name="Sources")).to_be_visible()
    for address, is_there in (
        ("catalog", "table"),
        ("catalog/source/forge", "table"),
        ("catalog/tool/forge__create_issue", ".signature"),
        ("search", ".empty"),
        ("search?q=send mail | open an issue&vs=1&b_ranker=bm25&why=chat__send_message", ".hit"),
        ("search?q=knit a pullover", ".notice.warn"),
        ("fold", ".ways tbody tr"),
        ("conversations", ".empty"),
        ("live", ".empty"),
    ):
        page.evaluate("address => location.hash = address", address)
        expect(page.locator(f"main {is_there}").first).to_be_visible()

        assert (address, serious(page)) == (address, [])
        assert page.evaluate("document.documentElement.scrollWidth") <= width, address


# ---- strangers


def test_a_catalog_of_scripts_is_shown_and_nothing_runs(page: Page, tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {SCRIPT: {"description": SCRIPT, "enum": [SCRIPT]}}}
    tools = [
        {"name": f"{SCRIPT}{i}", "description": SCRIPT, "parameters": schema, "source": SCRIPT}
        for i in range(3)
    ]
    (tmp_path / "tools.json").write_text(json.dumps(tools))
    call = {"name": SCRIPT, "arguments": json.dumps({SCRIPT: SCRIPT}), "id": "1"}
    search = {"name": "tool_search", "arguments": json.dumps({"query": SCRIPT}), "id": "2"}
    said = [
        {"role": "user", "text": SCRIPT, "note": SCRIPT},
        {"role": "model", "text": SCRIPT, "calls": [call, search]},
        {"role": "result", "name": SCRIPT, "call_id": "1", "text": SCRIPT, "is_error": True},
        {"role": "result", "name": "x", "call_id": "2", "text": SCRIPT, "found": [SCRIPT]},
    ]
    (tmp_path / "chat.jsonl").write_text("".join(json.dumps(each) + "\n" for each in said))
    names = ("at", "principal", "outcome", "tool", "server", "error", "arguments", "session", "via")
    (tmp_path / "audit.jsonl").write_text(json.dumps(dict.fromkeys(names, SCRIPT)) + "\n")
    given = [str(tmp_path / name) for name in ("tools.json", "chat.jsonl", "audit.jsonl")]
    with inspecting(*given, page=page) as link:
        page.goto(link)
        expect(page.get_by_role("table", name="Sources")).to_contain_text("onerror=alert(1)")
        page.get_by_role("table", name="Sources").get_by_role("link").first.click()
        page.get_by_role("table", name="Tools").get_by_role("link").first.click()
        expect(page.locator(".description")).to_have_text(SCRIPT)
        for address, is_there in (
            ("search?q=alert img&why=img&floor=0", "[data-query]"),
            ("fold?strategy=stub&enabled=on", ".ways tbody tr"),
            ("conversations/0", ".turn"),
            ("conversations/1", "article table"),
            (f"catalog/tool/{SCRIPT}", ".notice.bad"),
            (f"search?q={SCRIPT}&ranker={SCRIPT}", ".notice.bad"),
        ):
            page.evaluate("address => location.hash = address", address)
            expect(page.locator(f"main {is_there}").first).to_be_visible()

            assert page.locator("main img, main script").count() == 0


def test_four_thousand_tools_are_shown_searched_and_looked_over(page: Page, over: Over) -> None:
    verbs = ("open", "close", "list", "merge", "send", "book", "cancel", "find")
    nouns = ("issue", "branch", "mail", "hotel", "flight", "invoice", "room", "note", "file")
    tools = [
        {
            "name": f"{verbs[i % 8]}_{nouns[i % 9]}_{i}",
            "description": f"{verbs[i % 8].title()} a {nouns[i % 9]} of account {i}.",
            "parameters": {"type": "object", "properties": {"id": {"type": "string"}}},
            "source": f"server{i % 40}",
        }
        for i in range(4_076)
    ]
    page.goto(over(tools))
    expect(page.locator(".stats")).to_contain_text("4,076")
    expect(page.locator(".tile").first).to_be_visible()
    # It is looked over beside all that follows.
    expect(page.locator("main progress, main [aria-label=Findings]").first).to_be_visible()
    page.get_by_label("Find a tool by name").fill("hotel_4")
    expect(page.get_by_role("table", name="Tools").locator("tbody tr").first).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_role("tab", name="Search").click()
    page.get_by_label("Query").fill("book a hotel of account 7")
    expect(page.locator(".hit a").first).to_be_visible(timeout=30_000)
    page.get_by_role("tab", name="Fold").click()
    expect(page.locator(".headline")).to_contain_text("→", timeout=30_000)
    page.get_by_role("tab", name="Catalog").click()
    expect(page.get_by_role("button", name="Search for each of the 4,076 tools")).to_be_visible(
        timeout=60_000
    )
    assert serious(page) == []


@pytest.mark.parametrize("width", [360, 1440])
def test_no_word_of_the_map_is_cut_without_saying_so(page: Page, demo: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(demo)
    expect(page.locator(".tile").first).to_be_visible()
    beyond = """tiles => tiles.filter(
        tile => tile.scrollWidth > tile.clientWidth || tile.scrollHeight > tile.clientHeight
    ).map(tile => tile.textContent)"""

    assert page.locator(".tile:not(.group)").evaluate_all(beyond) == []


def test_on_a_phone_every_strategy_has_its_figures_without_scrolling(page: Page, demo: str) -> None:
    page.set_viewport_size({"width": 360, "height": 760})
    page.goto(demo)
    page.get_by_role("tab", name="Fold").click()
    region = page.get_by_role("region", name="Strategies")
    expect(region.get_by_text("99.1 % saved")).to_be_visible()

    assert region.evaluate("region => region.scrollWidth - region.clientWidth") == 0
    assert region.get_by_role("button", name="bridge").evaluate("b => b.clientHeight") < 40
