"""The array of tools over a whole conversation: what was sent stays, what is new comes last.

A provider caches a request from its beginning, and some models' reasoning is bound to what
stood before it. So an entry that was sent keeps its place and its bytes until the conversation
ends, whatever becomes of its tool, and every array that differs from the one before is counted.
What a provider runs itself, such as its search of the web, is another matter: nobody asks us
before it runs, so what the host takes away or changes there is gone or changed at once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from toolfold._json_values import compact, parse
from toolfold._memo import Memo
from toolfold.catalog import Catalog
from toolfold.session import SentArray, Session
from toolfold.strategy.protocol import FoundForm, ListChange
from toolfold.tool import Json, ProviderApi, Tool, is_object, wire_name
from toolfold.wire import read
from toolfold.wire.deferred import deferred_definition

__all__ = ["ContinuedArray", "continued", "defined_tool", "definitions", "unkept"]

_MARKS_AT_MOST = 4
_PROVIDERS = " "
"""What the keys of a provider's own entries begin with, and no name does."""
_SAME: Memo[str, str] = Memo(65_536, room=24 * 1024 * 1024, size=len)
"""The texts of entries, so that conversations with the same tools share them."""


class ContinuedArray(NamedTuple):
    """The array that goes out, and the conversation that remembers it."""

    tools: list[Json]
    session: Session
    guidance: str


def continued(
    written: Sequence[Json],
    change: ListChange,
    session: Session,
    *,
    api: ProviderApi,
    strategy: str,
    form: FoundForm,
    folded: Catalog,
) -> ContinuedArray:
    """Return the array that goes on from what a conversation was sent before.

    Args:
        written: The list as it is without what is deferred.
        change: What happened to it.
        session: The conversation so far.
        api: The provider's API.
        strategy: The name of the strategy.
        form: How what was found is said to the model.
        folded: The tools that are folded now.
    """
    fresh = [*written, *(deferred_definition(tool, api) for tool in change.deferred)]
    sent = session.sent
    goes_on = sent is not None and (sent.api, sent.strategy) == (api, strategy)
    before = sent.records if sent is not None and goes_on else ()
    session = _with_definitions(session, folded, api, form, goes_on=goes_on)
    if not goes_on and form == "tool_reference":
        gone = _gone(session, folded, {key for key, _ in _keyed(fresh)})
        fresh += [deferred_definition(tool, api) for tool in gone]
    ours = {key for key, _ in _keyed(change.provided)}
    tools = _merged(before, fresh, ours)
    records = tuple((key, _shared(compact(tool))) for key, tool in _keyed(tools))
    guidance = sent.guidance if sent is not None and goes_on else change.guidance
    array = SentArray(
        api=api,
        strategy=strategy,
        digest=_digest(text for _, text in records),
        records=records,
        deferred=frozenset(
            key
            for (key, _), tool in zip(records, tools, strict=True)
            if is_object(tool) and tool.get("defer_loading") is True
        ),
        guidance=guidance,
    )
    return ContinuedArray(tools, _remembered(session, array), guidance)


def unkept(tools: Sequence[Json], session: Session, *, api: ProviderApi, strategy: str) -> Session:
    """Return the session after an array that is not kept: its strategy changes it, or is none."""
    digest = _digest(compact(tool) for tool in tools)
    return _remembered(session, SentArray(api, strategy, digest))


def definitions(tools: Iterable[Tool], api: ProviderApi) -> list[tuple[str, str]]:
    """Return what a session keeps of tools whose definitions come in with what found them."""
    return [(tool.wire_name, _shared(compact(deferred_definition(tool, api)))) for tool in tools]


def defined_tool(text: str, name: str) -> Tool:
    """Return the tool that a definition was made of, under its own name."""
    record = {key: value for key, value in parse(text).items() if key != "defer_loading"}
    (entry,) = read([record])
    return replace(entry.tools[0], name=name)


def _with_definitions(
    session: Session, folded: Catalog, api: ProviderApi, form: FoundForm, *, goes_on: bool
) -> Session:
    """Return a session in which all that was found is defined as the provider takes it.

    What was found while another provider was asked is defined from here on.
    """
    old = dict(session.defined)
    if not goes_on:
        records = session.sent.records if session.sent is not None else ()
        old = {**dict(records), **old}
        session = replace(session, defined=())
    if form == "text" or (goes_on and form == "tool_reference"):
        return session
    tools: list[Tool] = []
    for name in session.revealed:
        own = wire_name(name)
        if name in folded:
            tools.extend(() if goes_on and own in old else (folded[name],))
        elif own in old:
            tools.append(defined_tool(old[own], name))
    return session.define(definitions(tools, api))


def _gone(session: Session, folded: Catalog, there: set[str]) -> list[Tool]:
    """Return the tools that were found and are no longer there, to stay defined."""
    kept = dict(session.defined)
    return [
        defined_tool(kept[wire_name(name)], name)
        for name in session.revealed
        if name not in folded and wire_name(name) in kept and wire_name(name) not in there
    ]


def _merged(
    before: Sequence[tuple[str, str]], fresh: Sequence[Json], ours: Collection[str]
) -> list[Json]:
    """Return what was sent before, each entry as it was, and behind it what is new.

    Args:
        before: What was sent before.
        fresh: What would be sent now.
        ours: Which entries of the provider's own kinds are of our making.
    """
    now = dict(_keyed(fresh))
    known = dict(before)
    tools: list[Json] = []
    for key, text in before:
        if key.startswith(_PROVIDERS) and key not in ours:
            tools.extend([now[key]] if key in now else ())
            continue
        is_same = key in now and compact(now[key]) == text
        tools.append(now[key] if is_same else parse(text))
    new = [record for key, record in now.items() if key not in known]
    marks = sum("cache_control" in tool for tool in tools)
    return [*tools, *_within_marks(new, max(_MARKS_AT_MOST - marks, 0))]


def _keyed(records: Sequence[Json]) -> list[tuple[str, Json]]:
    """Return each entry with what it is called; a provider's own ones by what they say."""
    keyed: dict[str, Json] = {}
    for record in records:
        key = own = _key(record)
        number = 1
        while key in keyed:
            number += 1
            key = f"{own} {number}"
        keyed[key] = record
    return list(keyed.items())


def _key(record: Json) -> str:
    fields: Mapping[str, Json] = record if is_object(record) else {}
    kind = fields.get("type")
    name = fields.get("name")
    if isinstance(name, str) and kind in (None, "function", "custom"):
        return name
    said = [fields.get(key) for key in ("type", "name", "server_label", "mcp_server_name")]
    return _PROVIDERS + " ".join(str(part) for part in said if part is not None)


def _within_marks(records: Sequence[Json], room: int) -> list[Json]:
    """Return entries with as many marks for the cache as there is room for, the last ones."""
    marked = [i for i, record in enumerate(records) if "cache_control" in record]
    over = frozenset(marked[: max(len(marked) - room, 0)])
    return [
        {key: value for key, value in record.items() if key != "cache_control"}
        if i in over
        else record
        for i, record in enumerate(records)
    ]


def _remembered(session: Session, array: SentArray) -> Session:
    sent = session.sent
    if sent == array:
        return session
    breaks = session.breaks + (sent is not None and sent.digest != array.digest)
    return replace(session, sent=array, breaks=breaks)


def _digest(texts: Iterable[str]) -> str:
    return hashlib.sha1("\n".join(texts).encode("utf-8", "surrogatepass")).hexdigest()


def _shared(text: str) -> str:
    return _SAME.get_or(text, lambda: text)
