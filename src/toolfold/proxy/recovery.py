"""Calls that a small model writes as text, where its upstream is set to be read so.

A text is a call only where a tool that is offered would be called by it, and never where it
stands in what the user or a tool said: whoever can write there could else make calls.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence

from toolfold.proxy.turns import ModelCall
from toolfold.runtime._lenient import recovered_calls
from toolfold.tool import Json, is_array, is_object

__all__ = ["Recovery"]

_SPOKEN_BY_THE_MODEL = ("assistant",)


class Recovery:
    """Reads calls in the texts of one answer.

    Args:
        is_known: Whether a tool of this name is offered, or one of ours.
        items: The conversation.
        seed: Makes the ids of the calls those of this answer alone.
    """

    def __init__(self, is_known: Callable[[str], bool], items: Sequence[Json], seed: str) -> None:
        self._is_known = is_known
        self._items = items
        self._seed = seed
        self._said: str | None = None
        self._made = 0

    def calls(self, text: str, prefix: str) -> tuple[ModelCall, ...]:
        """Return the calls that a text is, or holds in tags.

        Args:
            text: What the model wrote.
            prefix: What ids of calls begin with in this dialect.
        """
        found = recovered_calls(text, self._is_known)
        if not found or self._stood(text):
            return ()
        if any(self._stood_with(call.name, call.arguments) for call in found):
            return ()
        calls: list[ModelCall] = []
        for place, call in enumerate(found):
            self._made += 1
            mark = hashlib.sha256(f"{self._seed} {self._made}".encode()).hexdigest()[:24]
            calls.append(
                ModelCall(f"{prefix}{mark}", call.name, call.arguments, place=place, is_text=True)
            )
        return tuple(calls)

    def _stood(self, text: str) -> bool:
        return _bare(text) in self._others

    def _stood_with(self, name: str, arguments: str) -> bool:
        bare = _bare(arguments)
        return len(bare) > 2 and bare in self._others and name in self._others

    @property
    def _others(self) -> str:
        """All that others than the model said, without white space."""
        if self._said is None:
            self._said = "\n".join(map(_bare, _texts(self._items)))
        return self._said


def _bare(text: str) -> str:
    return "".join(text.split())


def _texts(value: Json) -> Iterator[str]:
    """Yield the texts in a value, but for what the model said."""
    if isinstance(value, str):
        yield value
    elif is_object(value):
        if value.get("role") not in _SPOKEN_BY_THE_MODEL:
            for inner in value.values():
                yield from _texts(inner)
    elif is_array(value):
        for inner in value:
            yield from _texts(inner)
