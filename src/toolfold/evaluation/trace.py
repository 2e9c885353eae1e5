"""Traces: recorded conversations, as data.

A file in JSON lines: first an object that names the trace and its catalog, then one turn a
line with what the user said, the tools that served it and the answer. A transcript of
`toolfold ab` is a trace too, and so is one of `toolfold chat`, and a request that `toolfold proxy`
wrote down.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from toolfold.catalog import Catalog
from toolfold.demo import demo_catalog
from toolfold.errors import CatalogError
from toolfold.evaluation.ab.planned import Need, TurnPlan
from toolfold.evaluation.ab.run_record import Run, from_json
from toolfold.evaluation.ab.scenario_tools import CORE, folded_tools
from toolfold.evaluation.ab.transcript_reading import made, real_call, searched_needs, turns_of
from toolfold.evaluation.conversation_file import text_of
from toolfold.evaluation.proxy_traffic import SavedRequest, saved_request
from toolfold.runtime.message_json import message_from_json
from toolfold.runtime.messages import Message, ModelMessage
from toolfold.sources.catalog_file import load_catalog
from toolfold.tool import Json, Tool, is_array, is_object

__all__ = ["TRACES", "Trace", "TraceTurn", "filler", "read_trace"]

TRACES = Path(__file__).with_name("traces")
"""The bundled traces, over the bundled catalog."""

_FILLER = "The quick brown fox jumps over the lazy dog. "
_HEAD = re.compile(r'^\d+ of .* for "(.*)":$')
_NEED_KEYS = {"search", "again", "tool", "arguments", "result", "waits"}
_TURN_KEYS = {"user", "needs", "answer"}
_HEAD_KEYS = {"trace", "about", "catalog", "core"}


@dataclass(frozen=True, slots=True)
class TraceTurn:
    """One turn of a trace: what the user said, and what is done about it."""

    user: str
    plan: TurnPlan
    results: tuple[str, ...]
    """What each need's tool returns."""


@dataclass(frozen=True, slots=True)
class Trace:
    """A recorded conversation."""

    name: str
    catalog: Catalog
    core: tuple[str, ...]
    """The tools that are never folded."""

    turns: tuple[TraceTurn, ...]


def read_trace(
    file: str | Path, catalog: Catalog | None = None, core: Iterable[str] | None = None
) -> Trace:
    """Return the conversation that a file holds.

    Args:
        file: A trace in JSON lines, a transcript of `toolfold ab` or `toolfold chat`, or a
            request that `toolfold proxy --save` wrote.
        catalog: The tools to take in place of those that the file names; a transcript of
            `toolfold chat` names none, and has the bundled ones.
        core: The tools that are never folded, in place of those that the file names.

    Raises:
        CatalogError: The file cannot be read. The error names the line.
    """
    trace = _read(Path(file), catalog)
    return trace if core is None else replace(trace, core=tuple(core))


def _read(path: Path, catalog: Catalog | None) -> Trace:
    file = str(path)
    text = text_of(path)
    transcript = _transcript(text)
    if transcript is not None:
        return _from_run(from_json(transcript, f"`{file}`"), catalog, f"`{file}`")
    saved = saved_request(text, f"`{file}`")
    if saved is not None:
        return _from_saved(saved, catalog, path)
    lines = [(i, line) for i, line in enumerate(text.splitlines(), 1) if line.strip()]
    values = [(f"`{file}`, line {i}", _object(line, f"`{file}`, line {i}")) for i, line in lines]
    if not values:
        raise CatalogError(f"`{file}` is empty", hint="give a trace, one turn a line")
    where, head = values[0]
    if "role" in head:
        return _from_messages([_message(value, at) for at, value in values], catalog, path)
    _check_keys(head, _HEAD_KEYS, where)
    if not isinstance(head.get("trace"), str):
        raise CatalogError(f"{where} does not name the trace", hint='begin with {"trace": "name"}')
    tools = catalog or _catalog(head.get("catalog", "demo"), path, where)
    turns = tuple(_said(value, tools, at) for at, value in values[1:])
    return Trace(head["trace"], tools, tuple(_texts(head.get("core", []), where)), turns)


def _transcript(text: str) -> Json | None:
    if '"toolfold_ab"' not in text[:200]:
        return None
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return None


def _object(line: str, where: str) -> dict[str, Json]:
    try:
        value = json.loads(line)
    except json.JSONDecodeError as error:
        raise CatalogError(f"{where}: {error.msg}", hint="write one JSON object a line") from None
    if not is_object(value):
        raise CatalogError(f"{where} is no object", hint="write one JSON object a line")
    return value


def _catalog(named: Json, trace: Path, where: str) -> Catalog:
    if named == "demo":
        return demo_catalog()
    if not isinstance(named, str):
        raise CatalogError(f"{where}: `catalog` is {named!r}", hint='write a path, or "demo"')
    return load_catalog(trace.parent / named)


def _said(value: dict[str, Json], catalog: Catalog, where: str) -> TraceTurn:
    _check_keys(value, _TURN_KEYS, where)
    user, answer, needs = value.get("user"), value.get("answer", ""), value.get("needs", [])
    if not isinstance(user, str) or not user.strip() or not isinstance(answer, str):
        raise CatalogError(f"{where} lacks what the user said", hint='write "user" and "answer"')
    if not is_array(needs):
        raise CatalogError(f"{where}: `needs` is no list", hint="write a list, or leave it out")
    read = [_need(need, catalog, where) for need in needs]
    return TraceTurn(
        user, TurnPlan(tuple(need for need, _ in read), answer), tuple(r for _, r in read)
    )


def _need(value: Json, catalog: Catalog, where: str) -> tuple[Need, str]:
    if not is_object(value):
        raise CatalogError(f"{where}: a need is {value!r}", hint="write an object")
    _check_keys(value, _NEED_KEYS, where)
    tool, words, given = value.get("tool"), value.get("search"), value.get("arguments", {})
    if not isinstance(tool, str) or tool not in catalog:
        raise CatalogError(f"{where}: the catalog has no {tool!r}", hint="name one of its tools")
    if not isinstance(words, str) or not words or not is_object(given):
        raise CatalogError(
            f"{where}: a need lacks its words or arguments", hint='write "search" and "arguments"'
        )
    need = Need(
        words, tool, given, waits=bool(value.get("waits")), again=str(value.get("again", ""))
    )
    return need, _result(value.get("result", 200), where)


def _result(value: Json, where: str) -> str:
    """Return a recorded result; of one that is only a size, a text of that many characters."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise CatalogError(f"{where}: `result` is {value!r}", hint="write a text or its length")
    return filler(value)


def filler(size: int) -> str:
    """Return a text of so many characters."""
    return (_FILLER * (size // len(_FILLER) + 1))[:size]


def _check_keys(value: dict[str, Json], known: set[str], where: str) -> None:
    unknown = sorted(set(value) - known)
    if unknown:
        there = ", ".join(sorted(known))
        raise CatalogError(f"{where} has the unknown key {unknown[0]!r}", hint=f"use {there}")


def _texts(value: Json, where: str) -> Iterable[str]:
    if not is_array(value) or not all(isinstance(item, str) for item in value):
        raise CatalogError(f"{where}: `core` is {value!r}", hint="write a list of names")
    return (str(item) for item in value)


# ---- transcripts of `toolfold ab` and `toolfold chat`


def _from_run(run: Run, catalog: Catalog | None, where: str) -> Trace:
    tools = catalog or Catalog((*CORE, *folded_tools(run.folded, run.wanted)))
    reader = _TurnReader(tools, where)
    turns = tuple(reader.read(turn.messages, turn.prompt, turn.text) for turn in run.turns)
    return Trace(run.name, tools, tuple(tool.name for tool in CORE), turns)


def _from_messages(messages: Sequence[Message], catalog: Catalog | None, path: Path) -> Trace:
    from toolfold.demo.host import CORE as DEMO_CORE

    tools = catalog or demo_catalog()
    reader = _TurnReader(tools, f"`{path}`")
    turns = tuple(reader.read(turn, turn[0].text, _answer(turn)) for turn in turns_of(messages))
    return Trace(path.stem, tools, () if catalog else DEMO_CORE, turns)


def _from_saved(saved: SavedRequest, catalog: Catalog | None, path: Path) -> Trace:
    tools = catalog or saved.catalog
    reader = _TurnReader(tools, f"`{path}`")
    turns = turns_of(saved.messages)
    read = tuple(reader.read(turn, turn[0].text, _answer(turn)) for turn in turns)
    names = [tool.name for tool in tools]
    # Where some tools are a server's, the others are the client's own.
    own = [name for name in names if not name.startswith("mcp__")]
    return Trace(path.stem, tools, tuple(own) if len(own) < len(names) else (), read)


def _message(value: Json, where: str) -> Message:
    try:
        return message_from_json(value)
    except ValueError as error:
        hint = "give a file that `toolfold chat` wrote"
        raise CatalogError(f"{where}: {error}", hint=hint) from None


def _answer(turn: Sequence[Message]) -> str:
    """Return what a turn ended with, if the model had the last word."""
    last = turn[-1]
    return last.text if isinstance(last, ModelMessage) and not last.calls else ""


class _TurnReader:
    """Makes plans of turns, one after the other.

    Args:
        catalog: The tools.
        where: What is read, as an error names it.
    """

    def __init__(self, catalog: Catalog, where: str) -> None:
        self._catalog = catalog
        self._where = where
        self._turns = 0
        self._words: dict[str, str] = {}
        """By tool: what was searched for when it was found, in this turn or an earlier one."""

    def read(self, messages: Sequence[Message], prompt: str, answer: str) -> TraceTurn:
        """Return the plan that a turn came to: the calls that worked, in their order."""
        self._turns += 1
        needs: list[Need] = []
        results: list[str] = []
        last = -1
        for item in made(messages):
            if item.result is None or item.result.is_error:
                continue
            real = real_call(item.call)
            if real is None:
                self._words |= _words_by_tool(item.result.text, searched_needs(item.call))
                continue
            tool = self._tool(real[0])
            words = self._words.get(tool.shown_name, prompt)
            waits = bool(needs) and item.reply > last
            # A model that knew the name did not need the words to find it.
            needs.append(Need(words, tool.name, real[1], waits=waits, again=tool.name))
            results.append(item.result.text)
            last = item.reply
        return TraceTurn(prompt, TurnPlan(tuple(needs), answer), tuple(results))

    def _tool(self, name: str) -> Tool:
        tool = self._catalog.find(name)
        if tool is None:
            raise CatalogError(
                f"{self._where}, turn {self._turns}: the catalog has no {name!r}",
                hint="give the tools that the conversation had, with --catalog or --tools",
            )
        return tool


def _words_by_tool(answer: str, asked: Sequence[str]) -> dict[str, str]:
    """Return under which need of a search each tool was found."""
    found: dict[str, str] = {}
    need = asked[0] if asked else ""
    for line in answer.splitlines():
        head = _HEAD.match(line)
        if head:
            need = head[1]
        elif line.startswith("- "):
            found.setdefault(line[2:].partition("(")[0], need)
    return found
