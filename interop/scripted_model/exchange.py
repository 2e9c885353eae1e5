"""What a model is asked and what it replies, whatever the dialect."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

__all__ = [
    "Asked",
    "Call",
    "Dialect",
    "Hang",
    "Offered",
    "Part",
    "Play",
    "Refuse",
    "Reply",
    "Result",
    "Say",
    "Think",
    "arguments_text",
    "sse",
]

Json: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Offered:
    """A tool as a request shows it to the model."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    namespace: str = ""
    """Where it stands, in dialects that have such."""

    takes_text: bool = False
    """Whether it is called with plain text in place of arguments."""

    is_deferred: bool = False
    """Whether the provider keeps it from the model until a search loads it."""

    record: Mapping[str, Any] = field(default_factory=dict)
    """The tool as it stood in the request."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a client sent back for a call."""

    call_id: str
    text: str
    content: Any = None
    """The same as it stood in the request."""

    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """One request for a reply."""

    dialect: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    """The very bytes."""

    content: Json
    """The bytes, read."""

    tools: Sequence[Offered] = ()
    """In their order."""

    results: Sequence[Result] = ()
    """What calls came to, all of the conversation's, the oldest first."""

    calls: Sequence[Call] = ()
    """The calls that the conversation holds, the oldest first."""

    is_streamed: bool = True

    @property
    def names(self) -> list[str]:
        """The names of the tools that the model can see, in order."""
        return [tool.name for tool in self.tools if not tool.is_deferred]

    def tool(self, ending: str) -> Offered | None:
        """Return the tool whose name ends so, as clients put their own before it."""
        found = [tool for tool in self.tools if tool.name == ending and not tool.is_deferred]
        found += [tool for tool in self.tools if tool.name.endswith(ending)]
        return next((tool for tool in found if not tool.is_deferred), None)

    def text_of(self, ending: str) -> str | None:
        """Return what the last call of a tool came to, if there was one."""
        ids = [call.id for call in self.calls if call.name.endswith(ending)]
        found = [result.text for result in self.results if result.call_id in ids]
        return found[-1] if found else None


@dataclass(frozen=True, slots=True)
class Say:
    """Text."""

    text: str


@dataclass(frozen=True, slots=True)
class Think:
    """Thinking, where the dialect has such, signed so that a change of it would show."""

    text: str
    signature: str = "c2lnbmVkIGJ5IHRoZSBzY3JpcHQ="


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool."""

    name: str
    arguments: Any = field(default_factory=dict)
    namespace: str = ""
    id: str = ""
    """Where it is empty, the server makes one."""

    takes_text: bool = False

    @classmethod
    def of(cls, tool: Offered, arguments: Any) -> Call:
        """Return a call of a tool that a request offers."""
        return cls(tool.name, arguments, tool.namespace, takes_text=tool.takes_text)


@dataclass(frozen=True, slots=True)
class Refuse:
    """An error of the provider in place of a reply."""

    status: int
    content: Json
    headers: Mapping[str, str] = field(default_factory=dict)


Part: TypeAlias = Say | Think | Call


@dataclass(frozen=True, slots=True)
class Hang:
    """A streamed reply of which the first half comes, and nothing more."""

    parts: Sequence[Part]


Reply: TypeAlias = Sequence[Part] | Refuse | Hang
Play: TypeAlias = Callable[[Asked], Reply]


class Dialect(Protocol):
    """How one provider's API is spoken."""

    name: str

    def takes(self, path: str) -> bool:
        """Whether requests to a path are for a reply in this dialect."""
        ...

    def read(self, path: str, headers: Mapping[str, str], body: bytes) -> Asked:
        """Return what a request asks."""
        ...

    def whole(self, asked: Asked, parts: Sequence[Part], number: int) -> Json:
        """Return a reply in one piece; no other has the same number."""
        ...

    def streamed(self, asked: Asked, parts: Sequence[Part], number: int) -> Iterator[bytes]:
        """Yield a reply piece by piece."""
        ...

    def answer(self, method: str, path: str) -> Json | None:
        """Return what the API answers beside replies: its models, a count of tokens."""
        ...


def arguments_text(call: Call) -> str:
    """Return a call's arguments as the text that a model writes."""
    given = call.arguments
    return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)


def sse(data: Json | str, event: str = "") -> bytes:
    """Return one event of a stream."""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    named = f"event: {event}\n" if event else ""
    return f"{named}data: {text}\n\n".encode()


def halves(text: str) -> Iterator[str]:
    """Yield a text in two pieces, so that a client must put them together."""
    middle = (len(text) + 1) // 2
    yield text[:middle]
    if text[middle:]:
        yield text[middle:]
