"""Tables put at the end of TOML texts and taken out of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from toolfold.tool import Json, is_array, is_object

__all__ = ["with_entries", "without"]

_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")
_HEADER = re.compile(r"[ \t]*\[\[?([^\[\]\n]+)\]\]?[ \t]*(?:#.*)?\r?\n?\Z")
_PART = re.compile(r"""\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([A-Za-z0-9_-]+))\s*(?:\.|\Z)""")


def with_entries(text: str, container: tuple[str, ...], entries: dict[str, Json]) -> str:
    """Return the text with a table for each entry at its end."""
    newline = "\r\n" if "\r\n" in text else "\n"
    blocks = [_table((*container, name), entry) for name, entry in entries.items()]
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    return text + (gap + "\n".join(blocks)).replace("\n", newline)


def without(text: str, container: tuple[str, ...], names: Iterable[str]) -> str:
    """Return the text without the tables of these names."""
    gone = {(*container, name) for name in names}
    kept: list[str] = []
    blanks: list[str] = []
    inside = False
    for line in text.splitlines(keepends=True):
        header = _HEADER.match(line)
        if header is not None:
            inside = _keys(header[1])[: len(container) + 1] in gone
        if inside:
            # The blank lines before a table go with it; comments before it stay.
            if header is not None:
                blanks = []
            continue
        if line.strip():
            kept += [*blanks, line]
            blanks = []
        else:
            blanks.append(line)
    return "".join([*kept, *blanks])


def _table(keys: tuple[str, ...], entry: Json) -> str:
    lines = [f"[{'.'.join(_key(key) for key in keys)}]"]
    tables: list[str] = []
    for key, value in entry.items():
        if is_object(value):
            tables.append(_table((*keys, key), value))
        else:
            lines.append(f"{_key(key)} = {_value(value)}")
    return "\n".join(lines) + "\n" + "".join(f"\n{table}" for table in tables)


def _key(key: str) -> str:
    return key if _BARE.match(key) else json.dumps(key, ensure_ascii=False)


def _value(value: Json) -> str:
    if is_array(value):
        return f"[{', '.join(_value(item) for item in value)}]"
    return json.dumps(value, ensure_ascii=False)


def _keys(header: str) -> tuple[str, ...]:
    """Return the keys that a table's header names."""
    keys: list[str] = []
    position = 0
    while position < len(header) and (match := _PART.match(header, position)):
        quoted, literal, bare = match.groups()
        keys.append(json.loads(f'"{quoted}"') if quoted is not None else literal or bare or "")
        position = match.end()
    return tuple(keys)
