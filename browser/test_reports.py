"""The pages of `toolfold ab`, `replay` and `eval` as a person opens them from a mail."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from toolfold.evaluation.ab import Measures, Run, TurnRecord
from toolfold.evaluation.report.ab_page import report_html
from toolfold.runtime.messages import Call, ModelMessage, ResultMessage, UserMessage

SCRIPT = "<img src=x onerror=alert(1)><script>alert(2)</script>"
LONG = "x" * 3_000


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a page of each command."""
    folder = tmp_path_factory.mktemp("pages")

    def toolfold(*arguments: str) -> None:
        command = [sys.executable, "-m", "toolfold", *arguments]
        subprocess.run(command, check=True, capture_output=True, cwd=folder)

    scenarios = ("--scenario", "chain_of_two", "--scenario", "no_such_tool")
    toolfold("ab", "--scripted", *scenarios, "--arms", "folded,unfolded,stub", "--out", ".")
    (folder / "report.html").rename(folder / "ab.html")
    toolfold("eval", "--answers", "--page", "eval.html")
    toolfold("replay", "--strategy", "unfolded", "--strategy", "bridge", "--page", "replay.html")
    toolfold("replay", "--growth", "g.svg", "--turns", "12", "--page", "growth.html")
    (folder / "hostile.html").write_text(hostile(), encoding="utf-8")
    return folder


def hostile() -> str:
    """A page whose every text is an attack, or is too long and has no spaces."""
    said = (
        UserMessage(SCRIPT, note=LONG),
        ModelMessage(LONG, (Call(SCRIPT, f'{{"{LONG}": "{LONG}"}}'), Call("tool_search", LONG))),
        ResultMessage(SCRIPT, found=(LONG, SCRIPT), is_error=True),
        ResultMessage(LONG, found=(SCRIPT,)),
    )
    runs = [
        Measures(
            scenario=text, arm=arm, repeat=1, model=SCRIPT, success=False, problems=(text,),
            error=None, tools_run=(text,), invented=(text,), core_via_bridge=0,
            needless_searches=0, searches=0, describes=0, round_trips=2, prompt_tokens=1_000_000,
            cached_tokens=0, uncached_tokens=9, completion_tokens=10, cost=1.0,
            first_action_seconds=None, seconds=0.2,
        )
        for text in (SCRIPT, LONG)
        for arm in (SCRIPT, LONG)
    ]  # fmt: skip
    talk = Run(SCRIPT, SCRIPT, 1, SCRIPT, turns=(TurnRecord(SCRIPT, messages=said),), error=SCRIPT)
    return report_html(
        runs, title=SCRIPT, notes=[LONG], command=LONG, made=SCRIPT, transcript=lambda _: talk
    )


def opened(page: Page, file: Path) -> None:
    page.goto(file.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("name", ["ab", "eval", "replay", "growth", "hostile"])
def test_a_page_fits_its_screen_and_serves_people_who_see_little(
    page: Page, pages: Path, name: str, width: int, scheme: Any
) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    opened(page, pages / f"{name}.html")

    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if name != "replay" or width == 360:  # megabytes of it take their time
        found = Axe().run(page).response["violations"]
        assert [v["id"] for v in found if v["impact"] in ("serious", "critical")] == []


def test_a_page_of_scripts_is_shown_and_nothing_runs(page: Page, pages: Path) -> None:
    opened(page, pages / "hostile.html")

    expect(page.locator("h1")).to_have_text(SCRIPT)
    assert page.locator("img, script, iframe, object").count() == 0


def test_the_policy_stops_a_script_that_were_in_the_page_all_the_same(
    browser: Browser, tmp_path: Path, pages: Path
) -> None:
    text = (pages / "ab.html").read_text(encoding="utf-8")
    planted = "<script>document.title = 'ran'</script><img src=x onerror=\"document.title='ran'\">"
    file = tmp_path / "planted.html"
    file.write_text(text.replace("<main>", f"<main>{planted}"), encoding="utf-8")
    context = browser.new_context()
    page = context.new_page()
    page.goto(file.as_uri())
    page.wait_for_timeout(200)

    assert page.title().startswith("toolfold ab")
    context.close()


def test_a_run_in_the_table_leads_to_what_was_said_by_keyboard_too(page: Page, pages: Path) -> None:
    page.goto((pages / "ab.html").as_uri())
    link = page.get_by_role("link", name="chain_of_two__folded__1")
    expect(page.locator("#conversation-1")).to_be_hidden()

    link.focus()
    page.keyboard.press("Enter")

    expect(page.locator("#conversation-1")).to_be_visible()
    bridge = page.locator("#conversation-1 .bridge summary").first
    expect(bridge).to_contain_text("tool_search:")
    expect(page.locator("#conversation-1 .bridge pre").first).to_be_hidden()
    bridge.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#conversation-1 .bridge pre").first).to_be_visible()


@pytest.fixture
def no_scripts(browser: Browser) -> Iterator[Page]:
    """A page of a browser that runs no script at all."""
    context = browser.new_context(java_script_enabled=False, viewport={"width": 800, "height": 900})
    yield context.new_page()
    context.close()


@pytest.mark.parametrize("name", ["ab", "eval", "replay", "growth", "hostile"])
def test_a_page_fits_a_sheet_of_paper(page: Page, pages: Path, name: str) -> None:
    page.set_viewport_size({"width": 690, "height": 1_000})  # A4 less its margins
    page.emulate_media(media="print", color_scheme="dark")
    page.goto((pages / f"{name}.html").as_uri())

    assert page.evaluate("document.documentElement.scrollWidth") <= 690
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == "rgb(255, 255, 255)"


def test_nothing_is_missing_where_no_script_runs_and_on_paper(
    no_scripts: Page, pages: Path
) -> None:
    no_scripts.goto((pages / "ab.html").as_uri())

    expect(no_scripts.locator(".headline")).to_contain_text("fewer tokens than unfolded")
    expect(no_scripts.locator("figure svg rect").first).to_be_visible()
    no_scripts.emulate_media(media="print")
    expect(no_scripts.locator("nav")).to_be_hidden()
    expect(no_scripts.locator(".headline")).to_be_visible()
    assert len(no_scripts.pdf()) > 10_000
