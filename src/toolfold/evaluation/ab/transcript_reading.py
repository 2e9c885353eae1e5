"""What a transcript tells a model about tools: which names it has read, which it has called.

Read from the texts, as a model reads them, and not from what the host knows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from toolfold import prompts
from toolfold.arguments import read_arguments
from toolfold.runtime.messages import Call, Message, ModelMessage, ResultMessage, UserMessage
from toolfold.tool import Json, is_array

__all__ = [
    "Made",
    "discovered",
    "last_turn",
    "made",
    "named",
    "real_call",
    "searched_needs",
    "turns_of",
    "users_own",
]

_HIT = re.compile(r'^- (?!\{)([^\s(]+)(?=\(|$)|^(?:- )?\{"name":"([^"]+)"', re.MULTILINE)
_EARLIER = re.compile(r"^\(Found earlier[^:]*: (.*?)(?: and [\d,]+ more)?\.\)", re.MULTILINE)
_NAMED = re.compile(
    rf"^(?:{re.escape(prompts.ALSO)}|{re.escape(prompts.beside(()).strip())}) (.+)$", re.MULTILINE
)
_FEW_WORDS = re.compile(r" \([^)]*\)(?=,|$)")
_SIGNATURE = re.compile(r"(?:: |; )([^\s(;:]+)\(")


@dataclass(frozen=True, slots=True)
class Made:
    """A call that a model made, and what came of it."""

    call: Call
    result: ResultMessage | None
    reply: int
    """Which reply of the model it was part of, from 0."""


def made(messages: Sequence[Message]) -> Iterator[Made]:
    """Yield the calls of a transcript, each with its result."""
    reply = -1
    for place, message in enumerate(messages):
        if not isinstance(message, ModelMessage):
            continue
        reply += 1
        after = messages[place + 1 : place + 1 + len(message.calls)]
        for i, call in enumerate(message.calls):
            result = after[i] if i < len(after) else None
            yield Made(call, result if isinstance(result, ResultMessage) else None, reply)


def real_call(call: Call) -> tuple[str, dict[str, Json]] | None:
    """Return the real tool that a call means, with its arguments; None for the other bridges."""
    arguments = read_arguments(call.arguments)
    if call.name != prompts.TOOL_CALL:
        other = call.name in prompts.BRIDGE_NAMES
        return None if other else (call.name, arguments if isinstance(arguments, dict) else {})
    if not isinstance(arguments, dict):
        return None
    given = read_arguments(arguments.get("arguments"))
    return str(arguments.get("name", "")), given if isinstance(given, dict) else {}


def searched_needs(call: Call) -> tuple[str, ...]:
    """Return the needs that a search asked for; empty where the call is no search."""
    arguments = read_arguments(call.arguments)
    if call.name != prompts.TOOL_SEARCH or not isinstance(arguments, dict):
        return ()
    query = arguments.get("query")
    texts = query if is_array(query) else str(query or "").split("|")
    return tuple(text for item in texts if (text := str(item).strip()))


def discovered(messages: Sequence[Message]) -> set[str]:
    """Return the names that a model has read in answers and notes, or has called with success."""
    names: set[str] = set()
    for message in messages:
        if isinstance(message, UserMessage):
            names.update(_SIGNATURE.findall(message.note))
    for item in made(messages):
        if item.result is None:
            continue
        text = item.result.text
        real = real_call(item.call)
        if real is None:
            names.update(one or other for one, other in _HIT.findall(text))
            names.update(n for found in _EARLIER.findall(text) for n in found.split(", "))
        elif not item.result.is_error:
            names.add(real[0])
        elif "Signature: " in text:  # a correction says how the tool is called
            names.update(_SIGNATURE.findall(text))
    return names


def named(messages: Sequence[Message]) -> set[str]:
    """Return the names that a model has read in answers without what the tools take."""
    names: set[str] = set()
    for item in made(messages):
        if item.result is not None and real_call(item.call) is None:
            for line in _NAMED.findall(item.result.text):
                names.update(_FEW_WORDS.sub("", line).split(", "))
    return names


def users_own(messages: Sequence[Message]) -> int:
    """Return how many messages the user has sent; a host's correction is none."""
    return sum(isinstance(m, UserMessage) and bool(m.text) for m in messages)


def turns_of(messages: Iterable[Message]) -> list[list[Message]]:
    """Return the turns of a transcript, each from the user's message on.

    What stands before the first of these belongs to no turn, and is left out.
    """
    turns: list[list[Message]] = []
    for message in messages:
        if isinstance(message, UserMessage) and message.text:
            turns.append([message])
        elif turns:
            turns[-1].append(message)
    return turns


def last_turn(messages: Sequence[Message]) -> Sequence[Message]:
    """Return what was said since the user's last message."""
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if isinstance(message, UserMessage) and message.text:
            return messages[place + 1 :]
    return messages
