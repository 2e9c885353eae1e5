"""Catalogs in files: JSON or JSON lines, any wire shape; an error names the line."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import orjson

from toolfold.catalog import Catalog
from toolfold.errors import CatalogError, InvalidToolError
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
    entries = read_entries(file, source=source)
    return Catalog(tool for entry in entries for tool in entry.tools)


def read_entries(file: str | Path, *, source: str | None = None) -> list[Entry]:
    """Return the entries that a file holds, in order."""
    entries: list[Entry] = []
    for record in read_records(file):
        try:
            entries.extend(read([record.value], source=source))
        except InvalidToolError as error:
            text = str(error).removeprefix("tool 1: ")
            raise InvalidToolError(
                f"`{file}`, line {record.line}: {text}", hint=error.hint
            ) from None
    return entries


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
    except json.JSONDecodeError as error:
        raise CatalogError(
            f"`{file}`, line {error.lineno}: {error.msg}",
            hint="give JSON (a list of tools, or an object with `tools`) or one tool a line",
        ) from None


def _text(file: str | Path) -> str:
    if str(file) == STANDARD_INPUT:
        return sys.stdin.read()
    try:
        return Path(file).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise CatalogError(f"cannot read `{file}`: {error.strerror}", hint="check the path") from None
    except UnicodeDecodeError as error:
        raise CatalogError(
            f"`{file}` is not UTF-8: byte {error.start:,}", hint="save it as UTF-8"
        ) from None


def _records(text: str) -> Iterator[Record]:
    lines = text.split("\n")
    first = next(i for i, line in enumerate(lines) if line.strip())
    one_a_line = _loads(lines[first])
    if is_object(one_a_line) and not any(is_array(one_a_line.get(key)) for key in _LIST_KEYS[:1]):
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield Record(number, _loads_at(line, number))
        return
    yield from _elements(text)


def _loads(line: str) -> Json | None:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return None


def _loads_at(line: str, number: int) -> Json:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        pass
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        # The decoder counts lines of the text it was given; ours is one line of many.
        found = json.JSONDecodeError(error.msg, line, error.pos)
        found.lineno = number
        raise found from None


def _elements(text: str) -> Iterator[Record]:
    """Yield the elements of the file's list of tools, each with its line."""
    decoder = json.JSONDecoder()
    start = _skip(text, 0)
    if text[start] == "{":
        whole = json.loads(text)
        key = next((key for key in _LIST_KEYS if is_array(whole.get(key))), None)
        if key is None:
            yield Record(text.count("\n", 0, start) + 1, whole)
            return
        start = _list_start(text, key)
    position = _skip(text, start + 1)
    if text[start] != "[":
        raise json.JSONDecodeError("expected a list of tools", text, start)
    while text[position : position + 1] != "]":
        value, end = decoder.raw_decode(text, position)
        yield Record(text.count("\n", 0, position) + 1, value)
        position = _skip(text, end)
        if text[position : position + 1] == ",":
            position = _skip(text, position + 1)
        elif text[position : position + 1] != "]":
            raise json.JSONDecodeError("expected ',' or ']'", text, position)


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
