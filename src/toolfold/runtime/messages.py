"""What is said in a conversation, whoever's model it is held with.

A transcript is a list of messages. A model's message keeps what the model wrote, byte for
byte, with its ids; its calls are followed by exactly one result each, in the same order.
What a provider must get instead (an id where none was written) is the client's affair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from toolfold.tool import Json

__all__ = ["Call", "Message", "ModelMessage", "ResultMessage", "UserMessage"]


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call, as the model wrote it."""

    name: str
    """The name it called: a tool's, or one of the bridge's."""

    arguments: str = "{}"
    """The arguments, as text; not always JSON."""

    id: str = ""
    """The model's id for it; empty where it gave none."""

    recovered: bool = False
    """Whether it was read out of plain text."""


@dataclass(frozen=True, slots=True)
class UserMessage:
    """What the user said."""

    text: str

    note: str = ""
    """What the host adds behind it, such as the tools that may help."""


@dataclass(frozen=True, slots=True)
class ModelMessage:
    """What the model said."""

    text: str = ""

    calls: tuple[Call, ...] = ()

    native: Sequence[Json] = ()
    """The provider's own content blocks, where it wants them back as they were."""

    origin: str = ""
    """Whose blocks these are: the API, the host and the model, since nobody else can read what
    is sealed in them. Empty where nobody says; then their shape tells."""


@dataclass(frozen=True, slots=True)
class ResultMessage:
    """What one call came to."""

    text: str

    call_id: str = ""
    """The id of the call, as the model wrote it."""

    name: str = ""
    """The name that the model called."""

    is_error: bool = False

    found: tuple[str, ...] | None = None
    """The tools that a discovery named; None where this is the result of a real tool."""

    note: str = ""
    """What of a discovery's text is said whatever form its result takes on the wire."""


Message: TypeAlias = UserMessage | ModelMessage | ResultMessage
"""One entry of a transcript."""
