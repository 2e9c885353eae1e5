"""What a model is to the agent: something that streams a reply to a request."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from toolfold._json_values import compact
from toolfold.errors import ToolfoldError
from toolfold.folded import Folded
from toolfold.prompts import TOOL_SEARCH
from toolfold.runtime.messages import Message, ModelMessage, ResultMessage, UserMessage
from toolfold.tool import Json, Shape, is_object
from toolfold.wire.deferred import definition

__all__ = ["Model", "ModelError", "Reply", "Request", "Stop", "TextDelta", "Usage", "prompt_text"]

Stop = Literal["end", "calls", "length", "refused", "paused"]
"""Why a reply ended: the model was done, wants calls run, hit a limit, or would not; or its
provider paused, and goes on when it gets the reply back."""


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens of a reply, as the provider counted them."""

    prompt: int = 0
    """Tokens read, those from the provider's cache included."""

    completion: int = 0
    """Tokens written."""

    cached: int = 0
    """Of the tokens read: those that came from the provider's cache."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt + other.prompt,
            self.completion + other.completion,
            self.cached + other.cached,
        )


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent to a model."""

    messages: Sequence[Message]
    system: str = ""
    tools: Sequence[Json] = ()
    """In the model's wire shape."""
    max_tokens: int = 4096
    """The cap on the reply. A client stops reading where a server does not hold to it."""

    folded: Folded | None = field(default=None, repr=False, compare=False)
    """The fold that the tools are of: it says in which form what was found goes back."""


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer, as it arrives."""

    text: str


@dataclass(frozen=True, slots=True)
class Reply:
    """The whole reply; the last thing that a stream yields."""

    message: ModelMessage
    usage: Usage = field(default_factory=Usage)
    stop: Stop = "end"


class Model(Protocol):
    """Something that streams a reply.

    One that speaks an API of a provider which may defer tools also has `provider_api` and `host`,
    and renders what was found as `Request.folded` says; `address` tells two servers of one host
    apart. One whose window is known has `context_length`.
    """

    @property
    def name(self) -> str:
        """The model's name, for people and for its context window."""
        ...

    @property
    def shape(self) -> Shape:
        """The wire shape in which it takes tools."""
        ...

    def stream(self, request: Request) -> AsyncIterator[TextDelta | Reply]:
        """Yield the reply's text as it comes, then the `Reply`.

        Raises:
            ModelError: The model cannot be reached, or refuses the request.
        """
        ...


class ModelError(ToolfoldError):
    """A model cannot be reached, or refuses a request.

    Args:
        message: What went wrong.
        hint: What to do about it.
        status: The HTTP status, where there is one.
        body: What the server said, where it said something.
    """

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        status: int | None = None,
        body: str = "",
    ) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.body = body


def prompt_text(request: Request) -> str:
    """Return all that a model reads of a request, in the order in which it is cached.

    A tool that the provider defers is read where it is first found.
    """
    read = [tool for tool in request.tools if not _is_deferred(tool)]
    parts = [compact(read), request.system]
    loaded: set[str] = set()
    for message in request.messages:
        found = _loaded(message, request, loaded)
        parts.append(_said(message) if found is None else found)
    return "\n".join(parts)


def _is_deferred(tool: Json) -> bool:
    return is_object(tool) and tool.get("defer_loading") is True


def _loaded(message: Message, request: Request, loaded: set[str]) -> str | None:
    """Return what a model reads of a search that loaded tools; None where it loaded none.

    Args:
        message: What may be the search's result.
        request: What it stands in.
        loaded: The tools that were loaded before it; those of this search are added.
    """
    folded = request.folded
    if not isinstance(message, ResultMessage) or not message.found or folded is None:
        return None
    is_search = folded.bridge.role(message.name) == TOOL_SEARCH
    if folded.provider is None or folded.found_form == "text" or not is_search:
        return None
    answer = folded.replayed(message.text, message.found, message.note)
    new = [tool for tool in answer.found if tool.name not in loaded]
    loaded.update(tool.name for tool in new)
    definitions = compact([definition(tool, folded.provider.api) for tool in new])
    return f"result {message.call_id}: {definitions}{answer.note}" if answer.found else None


def _said(message: Message) -> str:
    if isinstance(message, UserMessage):
        return f"user: {message.text}\n{message.note}" if message.note else f"user: {message.text}"
    if isinstance(message, ResultMessage):
        return f"result {message.call_id}: {message.text}"
    made = "".join(f"\ncall {call.id} {call.name} {call.arguments}" for call in message.calls)
    return f"model: {message.text}{made}"
