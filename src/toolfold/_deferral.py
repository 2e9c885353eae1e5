"""What a fold does for a provider's API: an array that only grows, and what was found, replayed.

Imported only where a host names the API that it speaks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from toolfold import prompts
from toolfold._json_values import compact
from toolfold.answer import Answer, Invocation
from toolfold.bridge import Bridge
from toolfold.providers import Provider
from toolfold.session import Session
from toolfold.strategy import ListChange
from toolfold.strategy.array import continued, defined_tool, definitions, unkept
from toolfold.tool import Json, Tool, is_mapping, wire_name
from toolfold.wire.deferred import deferred_definition

__all__ = ["KeptArray", "kept_array", "namespace", "remembered", "replayed", "with_array"]


class KeptArray(NamedTuple):
    """The array that goes out to a provider."""

    tools: list[Json]
    seen: list[Json]
    """What of it the model sees at once, and is paid for."""

    session: Session
    """The conversation that remembers it."""

    guidance: str
    hidden: Sequence[str]


def kept_array(
    written: list[Json],
    change: ListChange,
    session: Session,
    bridge: Bridge,
    provider: Provider,
    name: str,
) -> KeptArray:
    """Return the array of a request, going on from the conversation's last one.

    Args:
        written: The list as it is without what is deferred.
        change: What happened to it.
        session: The conversation so far.
        bridge: What answers the model's calls.
        provider: Whom the request goes to.
        name: The strategy's name.
    """
    strategy, api = bridge.strategy, provider.api
    if strategy is None or strategy.reveals:
        after = unkept(written, session, api=api, strategy="" if strategy is None else name)
        return KeptArray(written, written, after, change.guidance, change.hidden)
    tools, session, guidance = continued(
        written,
        change,
        session,
        api=api,
        strategy=name,
        form=strategy.found_form,
        folded=bridge.folded,
    )
    seen = [tool for tool in tools if not (is_mapping(tool) and tool.get("defer_loading") is True)]
    listed = {tool.get("name") for tool in seen if is_mapping(tool)}
    hidden = [own for own in change.hidden if wire_name(own) not in listed]
    return KeptArray(tools, seen, session, guidance, hidden)


def with_array(session: Session, own: Session) -> Session:
    """Return a session that knows the array which the model saw when it made a call.

    Args:
        session: The conversation so far, as the host keeps it.
        own: The session of the fold that made the array.
    """
    if session.sent is not None:
        return session
    return replace(session, sent=own.sent, breaks=max(own.breaks, session.breaks))


def remembered(
    resolved: Answer | Invocation, bridge: Bridge, provider: Provider
) -> Answer | Invocation:
    """Return what a call came to, with the definitions that come in with it in its session."""
    form = "text" if bridge.strategy is None else bridge.strategy.found_form
    if form == "text" or isinstance(resolved, Invocation):
        return resolved
    answer = _within_budget(resolved, bridge, provider)
    if form == "tool_reference":
        return answer
    found = [tool for tool in answer.found if tool.name in bridge.folded]
    return replace(answer, session=answer.session.define(definitions(found, provider.api)))


def _within_budget(answer: Answer, bridge: Bridge, provider: Provider) -> Answer:
    """Return a search's answer that loads no more definitions than a describe would show."""
    room = bridge.settings.describe_max_tokens
    over: set[str] = set()
    for place, tool in enumerate(answer.found if answer.hits else ()):
        room -= bridge.count(compact(deferred_definition(tool, provider.api)))
        if room < 0 and place:
            over.add(tool.name)
    if not over:
        return answer
    hits = (replace(hit, shown="name") if hit.name in over else hit for hit in answer.hits)
    return replace(answer, hits=tuple(hits))


def replayed(
    text: str, found: Iterable[str], note: str, bridge: Bridge, session: Session
) -> Answer:
    """Return an earlier answer to a search, as a request of this session has to say it.

    What it found may be gone, or out of the scope by now: where nothing of it can be loaded, the
    old text is not said again, since it names them.
    """
    if bridge.strategy is None or bridge.strategy.found_form == "text":
        return Answer(prompts.bridged(text, bridge.names), session=session)
    listed = session.sent.deferred if session.sent is not None else frozenset[str]()
    kept = dict(session.sent.records) if session.sent is not None else {}
    kept |= dict(session.defined)
    tools: list[Tool] = []
    names = tuple(dict.fromkeys(found))
    for name in names:
        own = wire_name(name)
        if bridge.strategy.found_form == "tool_reference" and own not in listed:
            continue
        if name in bridge.folded:
            tools.append(bridge.folded[name])
        elif own in listed or own in dict(session.defined):
            tools.append(defined_tool(kept[own], name))
    if names and not tools:
        return Answer(prompts.FOUND_THEN, session=session)
    return Answer(text, tools=tuple(tools), session=session, note=note)


def namespace(name: str, bridge: Bridge, session: Session, provider: Provider) -> str | None:
    """Return the namespace that a replayed call of a tool needs, if any."""
    sent = session.sent
    if provider.api != "openai-responses" or sent is None:
        return None
    tool = bridge.catalog.find(name)
    own = wire_name(name) if tool is None else tool.wire_name
    if own in sent.deferred:
        return own
    is_listed = any(key == own for key, _ in sent.records)
    return own if not is_listed and own in dict(session.defined) else None
