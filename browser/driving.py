"""The browser of this machine, and inspectors for it to look at."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

__all__ = ["FLAGS", "NO_BROWSER", "chromium", "inspecting", "toolfold"]

NO_BROWSER = "no Chromium is installed: Debian's package is `chromium`"

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

_NAMES = ("chromium", "chromium-browser", "google-chrome")


def chromium() -> str | None:
    """Return where the browser is, if there is one."""
    return next(filter(None, map(shutil.which, _NAMES)), None)


def toolfold(*arguments: str) -> list[str]:
    """Return a command of this package, as this interpreter runs it."""
    return [sys.executable, "-m", "toolfold", *arguments]


@contextmanager
def inspecting(*arguments: str, page: Page | None = None) -> Iterator[str]:
    """Run `toolfold inspect`; yield its link.

    Args:
        arguments: What to look at.
        page: Who looks, and is led away before the end: what it still asks an inspector that
            stops is refused.
    """
    command = toolfold("inspect", "--no-browser", *arguments)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ) as process:
        assert process.stdout is not None
        link = process.stdout.readline().strip()
        assert "#" in link, "the inspector does not start"
        try:
            yield link
            if page is not None:
                page.goto("about:blank")
        finally:
            process.terminate()
