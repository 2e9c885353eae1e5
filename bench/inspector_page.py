"""Drives the inspector's page and prints what it took: `python inspector_page.py LINK < queries`.

It needs Playwright and a Chromium, and nothing of this project. Exits with 3 where there is no
browser.
"""

from __future__ import annotations

import json
import shutil
import sys
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

LOADS = 15
NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")

# From the letter typed to the frame that shows the hits.
TYPED = """query => new Promise((done, fail) => {
  const box = document.getElementById("query");
  const began = performance.now();
  const watch = new MutationObserver(() => {
    if (document.querySelector("[data-query]")?.dataset.query !== query) return;
    watch.disconnect();
    const shown = performance.now() - began;
    requestAnimationFrame(() => {
      const after = new MessageChannel();
      after.port1.onmessage = () => done([shown, performance.now() - began]);
      after.port2.postMessage(0);
    });
  });
  watch.observe(document.getElementById("main"), { attributes: true, subtree: true });
  setTimeout(() => fail(new Error("no hits came")), 20000);
  box.value = query;
  box.dispatchEvent(new Event("input", { bubbles: true }));
})"""

# As the browser itself has it: from the beginning of the navigation to the first frame.
PAINTED = """() => new Promise(done => {
  new PerformanceObserver(list => {
    const painted = list.getEntriesByName("first-contentful-paint");
    if (painted.length) done(painted[0].startTime);
  }).observe({ type: "paint", buffered: true });
})"""
DRAWN = "performance.getEntriesByName('toolfold-map')[0].startTime"
ASKED = """performance.getEntriesByType("resource")
  .filter(each => each.name.includes("api/search")).map(each => each.duration)"""


def main() -> None:
    """Load the page some times, then type queries into one of them."""
    queries: list[str] = json.load(sys.stdin)
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        print("no Chromium is installed: Debian's package is `chromium`", file=sys.stderr)
        raise SystemExit(3)
    names = ("first paint", "first paint, of an empty page", "map drawn")
    times: dict[str, list[float]] = {name: [] for name in names}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=list(FLAGS))
        for number in range(LOADS + 1):
            context = browser.new_context(viewport={"width": 1280, "height": 900})
            page = context.new_page()
            page.goto(sys.argv[1])
            page.wait_for_selector(".tile")
            drawn = page.evaluate(DRAWN)
            painted = page.evaluate(PAINTED)
            if number:  # the first one meets an inspector that is still warming
                times["first paint"].append(painted)
                times["map drawn"].append(drawn)
                times["first paint, of an empty page"].append(_empty(browser))
            if number == LOADS:
                times |= _searched(page, queries)
            context.close()
        browser.close()
    json.dump(times, sys.stdout)


def _empty(browser: Browser) -> float:
    """Return what the browser itself takes here and now."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.goto("data:text/html,<p>Hello")
    painted: float = page.evaluate(PAINTED)
    context.close()
    return painted


def _searched(page: Page, queries: list[str]) -> dict[str, list[float]]:
    page.evaluate("location.hash = 'search'")
    page.wait_for_selector("#query")
    page.evaluate(TYPED, "warm")
    both: list[Any] = [page.evaluate(TYPED, query) for query in queries]
    asked: list[float] = page.evaluate(ASKED)
    return {
        "search": [shown for shown, _ in both],
        "search, painted": [painted for _, painted in both],
        "search, of that the answer": asked[1:],
    }


if __name__ == "__main__":
    main()
