"""The rooms of the house, from the ground up, and what each of them knows.

A room is a module or a package right below `toolfold`. The order stands here once: the test
of the imports (`tests/contract`) and the picture of the house (`docs/picture.py`) read it.
What a room really imports is read from the code, late imports and those for types included.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

__all__ = [
    "EXCEPTIONS",
    "LAYERS",
    "SOURCE",
    "direct",
    "imports",
    "known",
    "level",
    "modules",
    "room_of",
]

SOURCE = Path(__file__).resolve().parent.parent / "src" / "toolfold"

LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors", "_formats", "_memo", "_characters", "_secret_shapes", "session", "_moved"),
    ("_bounds", "_files", "_locks"),
    ("_json_values", "_terminal"),
    ("tool", "_schema_extent"),
    ("scope", "_signature", "_summary", "_definitions", "tokens", "redact", "prompts", "absent"),
    ("_refusals",),
    ("providers",),
    ("_unknown_arguments", "_repairs", "_dialects", "_faults"),
    ("settings", "arguments", "invisible"),
    ("wire",),
    ("catalog", "answer", "_costs", "_intake", "_clashes"),
    ("search",),
    ("store",),
    ("memory", "shared"),
    (
        "_render",
        "_checkup",
        "_retrievability",
        "_suggestions",
        "_missed",
        "_composition",
        "_companions",
        "_queries",
    ),
    ("strategy",),
    ("_search_page",),
    ("gate", "bridge"),
    ("_deferral",),
    ("folded",),
    ("fold", "shared_fold"),
    ("sources",),
    ("config",),
    ("dispatch",),
    ("runtime", "serve", "adapters"),
    ("proxy",),
    ("setup", "chat", "demo", "enrich"),
    ("evaluation",),
    ("inspector", "doctor"),
    ("cli",),
    ("__main__",),
)
"""A room imports from itself and from those of the lines above it here, and from no others:
neighbours on one line do not know each other."""

EXCEPTIONS: dict[tuple[str, str], str] = {
    ("wire.read", "sources.functions"): "A list of tools may hold Python functions; what reads "
    "them is imported when the first one comes, and knows nothing but `tool`.",
}
"""Imports against the order, with the reason: the module, and what it imports. This list is
there to become shorter."""


def level(room: str) -> int:
    """Return how far above the ground a room stands.

    Raises:
        KeyError: `LAYERS` has no place for it.
    """
    for number, rooms in enumerate(LAYERS):
        if room in rooms:
            return number
    raise KeyError(f"{room} has no place in LAYERS of docs/rooms.py")


def room_of(name: str) -> str:
    """Return the room of a module."""
    return name.partition(".")[0]


@cache
def modules() -> dict[str, Path]:
    """Return the file of every module, by its name below `toolfold`; the package's is empty."""
    named: dict[str, Path] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        named[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return named


@cache
def imports(name: str) -> frozenset[str]:
    """Return the modules below `toolfold` that a module imports, wherever in its text."""
    return frozenset(_imports(ast.parse(modules()[name].read_text("utf-8"))))


def direct() -> dict[str, set[str]]:
    """Return the rooms, from the ground up, each with those it imports from in that order."""
    found: dict[str, set[str]] = {}
    for name in filter(None, modules()):
        others = {other for other in imports(name) if (name, other) not in EXCEPTIONS}
        found.setdefault(room_of(name), set()).update(room_of(other) for other in others)
    return {room: found[room] - {room} for room in sorted(found, key=lambda r: (level(r), r))}


def known() -> dict[str, list[str]]:
    """Return the rooms, each with those it stands on: imports that no other import implies."""
    rooms = direct()
    below: dict[str, set[str]] = {}
    for room, others in rooms.items():
        below[room] = set(others).union(*(below.get(other, ()) for other in others))
    return {
        room: sorted(
            (o for o in others if not any(o in below.get(between, ()) for between in others)),
            key=lambda other: (-level(other), other),
        )
        for room, others in rooms.items()
    }


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            top, _, inner = name.partition(".")
            if top == "toolfold":
                yield _module(inner)


def _module(name: str) -> str:
    """Return the module that holds a name: `tool.Tool` stands in `tool`."""
    while name and name not in modules():
        name = name.rpartition(".")[0]
    return name
