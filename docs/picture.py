"""The parts of the architecture page that are made from the code.

A marked block of the page holds a table of the rooms, each with what it stands on, or of the
modules of some rooms; the sentences are the first ones of the docstrings. What stands around
the blocks is written by hand, the flow on top of the page too: a test holds its names to the
rooms that there are.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import rooms

__all__ = ["PAGE", "drawn"]

PAGE = Path(__file__).parent / "architecture.md"

_BLOCK = re.compile(r"(<!-- made: ([a-z_ ]+) -->\n).*?(<!-- end -->\n)", re.DOTALL)
_SENTENCE = re.compile(r"\.(?=\s|$)")


def drawn(page: str) -> str:
    """Return the page with every marked block made anew."""
    return _BLOCK.sub(lambda found: f"{found[1]}\n{_made(found[2])}\n{found[3]}", page)


def _made(what: str) -> str:
    kind, *names = what.split()
    lines = _rooms() if kind == "rooms" else _modules(names)
    return "\n".join(lines) + "\n"


def _rooms() -> Iterator[str]:
    yield "| room | what it is | stands on |\n|---|---|---|"
    for room, others in rooms.known().items():
        if room != "__main__":
            below = ", ".join(f"`{other}`" for other in others)
            yield f"| `{_file(room)}` | {_about(room)} | {below} |"


def _modules(names: list[str]) -> Iterator[str]:
    yield "| module | what it is |\n|---|---|"
    for name in rooms.modules():
        if rooms.room_of(name) in names and name not in names:
            yield f"| `{_file(name)}` | {_about(name)} |"


def public_modules() -> Iterator[str]:
    """Yield a table of the modules whose names do not begin with `_`."""
    yield "| module | what it is |\n|---|---|"
    for name in rooms.modules():
        if name and not any(part.startswith("_") for part in name.split(".")):
            yield f"| `toolfold.{name}` | {_about(name)} |"


def _file(name: str) -> str:
    path = rooms.modules()[name].relative_to(rooms.SOURCE)
    return f"{path.parent.as_posix()}/" if path.name == "__init__.py" else path.as_posix()


def _about(name: str) -> str:
    text = ast.get_docstring(ast.parse(rooms.modules()[name].read_text("utf-8"))) or ""
    first = " ".join(text.partition("\n\n")[0].split())
    return _SENTENCE.split(first)[0].replace("|", "\\|")
