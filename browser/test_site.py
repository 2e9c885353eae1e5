"""The documentation's site as `make docs` builds it, opened from the disk without a network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

SITE = Path(__file__).resolve().parents[1] / ".docs" / "html"
PAGES = ("docs/index", "docs/guides/gateway", "docs/reference/settings", "docs/model-card")


@pytest.fixture
def offline(browser: Browser) -> Iterator[Page]:
    """A page that fetches nothing but files."""
    if not (SITE / "index.html").exists():
        pytest.skip("the site is not built: `make docs` builds it")
    context = browser.new_context(offline=True, viewport={"width": 1280, "height": 900})
    opened = context.new_page()
    outside: list[str] = []
    opened.on(
        "request", lambda r: None if r.url.startswith(("file:", "data:")) else outside.append(r.url)
    )
    yield opened
    context.close()
    assert outside == []


def _open(page: Page, name: str) -> None:
    page.goto((SITE / f"{name}.html").as_uri())


def test_the_sites_address_leads_to_the_front_page_with_its_ways_in(offline: Page) -> None:
    _open(offline, "index")

    expect(offline).to_have_url((SITE / "docs" / "index.html").as_uri())
    expect(offline.locator(".sidebar-tree .caption-text")).to_contain_text(
        ["Start", "I have an MCP client", "I write agents", "I run a local model"]
    )


def test_a_search_finds_pages_without_a_server(offline: Page) -> None:
    _open(offline, "docs/index")
    offline.get_by_placeholder("Search").fill("prefetch")
    offline.get_by_placeholder("Search").press("Enter")

    found = offline.locator("#search-results li a")
    expect(found.filter(has_text="Named before it asks").first).to_be_visible()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_a_phone(offline: Page, name: str) -> None:
    offline.set_viewport_size({"width": 360, "height": 740})
    _open(offline, name)

    assert offline.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_serious_stands_in_a_readers_way(
    offline: Page, scheme: Literal["light", "dark"]
) -> None:
    offline.emulate_media(color_scheme=scheme)
    for name in PAGES:
        _open(offline, name)
        found = Axe().run(offline).response["violations"]
        serious = [v["id"] for v in found if v["impact"] in ("serious", "critical")]
        assert serious == [], name
