"""What the tests of `toolfold chat` share: tools of their own, and how the command ran."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

__all__ = ["COMMAND", "Ran", "prepare", "timeless"]

COMMAND = [sys.executable, "-m", "toolfold", "chat"]

TOOLS = '''
"""Tools of a test."""

import asyncio
from pathlib import Path

from toolfold.runtime import Registry, current_call

registry = Registry()


@registry.tool(destructive=True)
def wipe(what: str) -> str:
    """Wipe something."""
    return f"wiped {what}"


@registry.tool(read_only=True)
def look(at: str) -> str:
    """Look at something."""
    return f"seen {at}"


@registry.tool(destructive=False)
def paint(what: str) -> str:
    """Paint something."""
    current_call().progress("mixing \\x1b[2Jcolours", 0.5)
    return "\\x1b[31mred\\x1b[0m"


@registry.tool
def fail() -> str:
    """Fail."""
    raise ValueError("no \\x9b31mpaint left")


@registry.tool(destructive=False, timeout=None)
async def hang() -> str:
    """Never end."""
    Path("hanging").touch()
    try:
        await asyncio.Event().wait()
    finally:
        Path("told").touch()


@registry.tool(destructive=False, timeout=None)
async def stubborn() -> str:
    """Not stop when it is told to."""
    Path("going").touch()
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass
'''


class Ran(NamedTuple):
    code: int
    out: str
    err: str


def prepare(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Go to a folder that has nothing but `tools.py`, with no keys in the environment."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    Path("tools.py").write_text(TOOLS, encoding="utf-8")


def timeless(text: str) -> str:
    """Return a text in which everything took the same time."""
    return re.sub(r"\b\d+ ms|\b\d+\.\d s", "0 ms", text)
