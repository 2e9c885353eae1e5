"""A browser of this machine's own, and inspectors for it to look at."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from browser.driving import FLAGS, NO_BROWSER, chromium, inspecting

expect.set_options(timeout=15_000)  # machines that do much else are slow

REFUSED = "the server responded with a status of 4"


@pytest.fixture(scope="session", autouse=True)
def nobodys_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What runs here neither sees nor changes what the user's own gateways have learnt."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The browser; without one, everything here is skipped."""
    found = chromium()
    if found is None:
        pytest.skip(NO_BROWSER)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=list(FLAGS))
        yield started
        started.close()


@pytest.fixture(scope="module")
def demo() -> Iterator[str]:
    """An inspector over the bundled catalog."""
    with inspecting() as link:
        yield link


@pytest.fixture
def over(tmp_path: Path, page: Page) -> Iterator[Callable[[list[dict[str, Any]]], str]]:
    """Starts an inspector over some tools."""
    with ExitStack() as stack:

        def start(tools: list[dict[str, Any]]) -> str:
            file = tmp_path / "tools.json"
            file.write_text(json.dumps(tools), encoding="utf-8")
            return stack.enter_context(inspecting("--catalog", str(file), page=page))

        yield start


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page that takes note of all that it complains of, and of every dialog."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    opened = context.new_page()
    complaints: list[str] = []
    # That a view was refused is what the page itself says.
    opened.on(
        "console",
        lambda m: (
            complaints.append(m.text) if m.type == "error" and REFUSED not in m.text else None
        ),
    )
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
    yield opened
    context.close()
    assert complaints == []
