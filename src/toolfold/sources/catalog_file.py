"""Catalogs in files: JSON or JSON lines, any wire shape; an error names the line."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from toolfold._json_values import parse
from toolfold.catalog import Catalog
from toolfold.errors import CatalogError, InvalidToolError, NameClashError
from toolfold.tool import Json, is_array, is_object
from toolfold.wire import Entry, read

__all__ = ["Record", "load_catalog", "read_records"]

STANDARD_INPUT = "-"
"""The file name that stands for standard input."""

_LIST_KEYS = ("tools", "functionDeclarations", "function_declarations")
_WHITE = " \t\r\n"


class Record(NamedTuple):
    """One entry of a file, and the line it starts on."""

    line: int
    value: Json


def load_catalog(file: str | Path, *, source: str | None = None) -> Catalog:
    """Return the catalog that a file holds.

    Args:
        file: JSON (a list of tools, or an object with `tools`) or JSON lines; `-` is
            standard input.
        source: The source of those tools that do not name one.

    Raises:
        CatalogError: The file cannot be read. The error names the line.
    """
    records = read_records(file)
    entries = _entries(file, records, source)
    try:
        return Catalog(tool for entry in entries for tool in entry.tools)
    except NameClashError as error:
        lines = [
            str(record.line)
            for record, entry in zip(records, entries, strict=True)
            if any(error.name in (tool.name, tool.wire_name) for tool in entry.tools)
        ]
        where = f"`{file}`, lines {' and '.join(lines[:2])}"
        raise NameClashError(error.name, error.owners, hint=error.hint, where=where) from None


def read_entries(file: str | Path, *, source: str | None = None) -> list[Entry]:
    """Return the entries that a file holds, in order."""
    return _entries(file, read_records(file), source)


def _entries(file: str | Path, records: Sequence[Record], source: str | None) -> list[Entry]:
    try:
        values = (record.value for record in records)
        # Whoever named the file stands by what it says.
        return list(read(values, source=source, own_words=True))
    except InvalidToolError as error:
        line = records[(error.place or 1) - 1].line
        raise InvalidToolError(f"`{file}`, line {line}: {error.reason}", hint=error.hint) from None


def read_records(file: str | Path) -> list[Record]:
    """Return the tool records of a file, each with its line.

    Raises:
        CatalogError: The file is missing, or is neither JSON nor JSON lines.
    """
    text = _text(file)
    if not text.strip():
        raise CatalogError(f"`{file}` is empty", hint="give a list of tools")
    try:
        return list(_records(text))
    except RecursionError:
        raise CatalogError(f"`{file}` nests too deep to be read", hint="flatten it") from None
    except json.JSONDecodeError as error:
        raise CatalogError(
            f"`{file}`, line {error.lineno}: {error.msg}",
            hint="give JSON (a list of tools, or an object with `tools`) or one tool a line",
        ) from None


def _text(file: str | Path) -> str:
    try:
        if str(file) == STANDARD_INPUT:
            return sys.stdin.buffer.read().decode("utf-8-sig")
        return Path(file).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise CatalogError(
            f"cannot read `{file}`: {error.strerror}", hint="check the path"
        ) from None
    except UnicodeDecodeError as error:
        raise CatalogError(
            f"`{file}` is not UTF-8: byte {error.start:,}", hint="save it as UTF-8"
        ) from None


def _records(text: str) -> Iterator[Record]:
    lines = text.split("\n")
    first = next(i for i, line in enumerate(lines) if line.strip())
    one_a_line = _loads(lines[first])
    if (
        is_object(one_a_line)
        and not is_array(one_a_line.get("tools"))
        and "result" not in one_a_line
    ):
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield Record(number, _loads_at(line, number))
        return
    yield from _elements(text)


def _loads(line: str) -> Json | None:
    try:
        return parse(line)
    except (ValueError, RecursionError):
        return None


def _loads_at(line: str, number: int) -> Json:
    try:
        return parse(line)
    except json.JSONDecodeError as error:
        # The decoder counts lines of the text it was given; ours is one line of many.
        found = json.JSONDecodeError(error.msg, line, error.pos)
        found.lineno = number
        raise found from None


def _elements(text: str) -> Iterator[Record]:
    """Yield the elements of the file's list of tools, each with its line."""
    decoder = json.JSONDecoder()
    start = _skip(text, 0)
    is_list = text[start] == "["
    if text[start] == "{":
        whole = _whole(text)
        key = next((key for key in _LIST_KEYS if is_array(whole.get(key))), None)
        if key is None:
            yield from _enveloped(whole, text.count("\n", 0, start) + 1)
            return
        start = _list_start(text, key)
    if text[start] != "[":
        raise json.JSONDecodeError("expected a list of tools", text, start)
    counted, line = 0, 1
    position = _skip(text, start + 1)
    while text[position : position + 1] != "]":
        value, end = decoder.raw_decode(text, position)
        line += text.count("\n", counted, position)
        counted = position
        yield Record(line, value)
        position = _skip(text, end)
        if text[position : position + 1] == ",":
            position = _skip(text, position + 1)
            if text[position : position + 1] == "]":
                raise json.JSONDecodeError("expected a tool after ','", text, position)
        elif text[position : position + 1] != "]":
            raise json.JSONDecodeError("expected ',' or ']'", text, position)
    if is_list and (end := _skip(text, position + 1)) < len(text):
        raise json.JSONDecodeError("expected nothing after the list", text, end)


def _whole(text: str) -> Json:
    """Return the one object of a file; where it is none, the line that is wrong."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        lines = [(i, line) for i, line in enumerate(text.split("\n"), 1) if line.strip()]
        if len(lines) > 1 and is_object(_loads(lines[1][1])):
            return _loads_at(lines[0][1], lines[0][0])  # one tool a line, and the first is wrong
        raise


def _enveloped(whole: Json, line: int) -> Iterator[Record]:
    """Yield the tools of a JSON-RPC answer to `tools/list`; else the object itself."""
    result = whole.get("result")
    tools = result.get("tools") if is_object(result) else None
    for value in tools if is_array(tools) else [whole]:
        yield Record(line, value)


def _list_start(text: str, key: str) -> int:
    """Return where the list under a top-level key begins, in an object known to be JSON."""
    decoder = json.JSONDecoder()
    position = _skip(text, _skip(text, 0) + 1)
    while True:
        name, end = decoder.raw_decode(text, position)
        value = _skip(text, _skip(text, end) + 1)
        if name == key:
            return value
        _, end = decoder.raw_decode(text, value)
        position = _skip(text, _skip(text, end) + 1)


def _skip(text: str, position: int) -> int:
    while position < len(text) and text[position] in _WHITE:
        position += 1
    return position
