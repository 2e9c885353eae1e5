"""A model that says what a script says: every path of the runtime without a model.

A script is a list of replies, given in order. A reply is a text, calls, or both; it may
be a function of the request, and then can read what a search found before it calls.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from toolfold.runtime.messages import Call, ModelMessage, ResultMessage
from toolfold.runtime.model import ModelError, Reply, Request, TextDelta, Usage, prompt_text
from toolfold.tokens import estimate
from toolfold.tool import Json, Shape

__all__ = ["Says", "ScriptedModel", "calls", "says"]

_PIECE = 24


@dataclass(frozen=True, slots=True)
class Says:
    """One scripted reply."""

    text: str = ""
    calls: tuple[Call, ...] = ()


ScriptedReply: TypeAlias = Says | Callable[[Request], Says]
"""A reply, or a function that makes one of the request."""


def says(text: str) -> Says:
    """Return a reply that is a text."""
    return Says(text)


def calls(*named: tuple[str, Mapping[str, Json] | str], text: str = "") -> Says:
    """Return a reply that calls tools: names, with arguments as an object or as JSON text."""
    made = tuple(
        Call(name, given if isinstance(given, str) else json.dumps(given)) for name, given in named
    )
    return Says(text, made)


class ScriptedModel:
    """Replays a script, in the pieces and with the token counts that a real model would have.

    Args:
        script: The replies, in order.
        name: The model's name.
        shape: The wire shape in which it takes tools.
    """

    def __init__(
        self,
        script: Iterable[ScriptedReply],
        *,
        name: str = "scripted",
        shape: Shape = "openai-chat",
    ) -> None:
        self._script = list(script)
        self._next = 0
        self._name = name
        self._shape: Shape = shape
        self._last_prompt = ""
        self.requests: list[Request] = []
        """What was sent, oldest first."""

    @property
    def name(self) -> str:
        """The model's name."""
        return self._name

    @property
    def shape(self) -> Shape:
        """The wire shape in which it takes tools."""
        return self._shape

    @property
    def left(self) -> int:
        """How many replies the script still holds."""
        return len(self._script) - self._next

    async def stream(self, request: Request) -> AsyncIterator[TextDelta | Reply]:
        """Yield the next reply of the script."""
        self.requests.append(request)
        if not self.left:
            raise ModelError(
                f"the script has no reply number {self._next + 1}", hint="add a reply to it"
            )
        step = self._script[self._next]
        self._next += 1
        reply = step(request) if callable(step) else step
        for start in range(0, len(reply.text), _PIECE):
            yield TextDelta(reply.text[start : start + _PIECE])
        written = tuple(
            call if call.id else Call(call.name, call.arguments, f"call_{self._next}_{place}")
            for place, call in enumerate(reply.calls, 1)
        )
        message = ModelMessage(reply.text, written)
        yield Reply(message, self._usage(request, reply), "calls" if written else "end")

    def _usage(self, request: Request, reply: Says) -> Usage:
        prompt = prompt_text(request)
        shared = _common_prefix(self._last_prompt, prompt)
        self._last_prompt = prompt
        written = reply.text + "".join(call.name + call.arguments for call in reply.calls)
        return Usage(estimate(prompt), estimate(written), estimate(prompt[:shared]))


def results_of(request: Request) -> Sequence[ResultMessage]:
    """Return the results that a request ends with: those of the model's last calls."""
    ending: list[ResultMessage] = []
    for message in reversed(request.messages):
        if not isinstance(message, ResultMessage):
            break
        ending.insert(0, message)
    return ending


def _common_prefix(one: str, other: str) -> int:
    """Return how many characters two texts share from their start."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
