"""The index of a list of tools: places and numbers, keyed by content.

An index never holds a tool. It answers with places in the list that it was made of, and
whoever asks takes the tools at those places from its own catalog, which has the same
fingerprint and so the same order: a search can only ever return what is live.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from toolfold._memo import Memo
from toolfold.search.ranker import Ranker, Searcher
from toolfold.tool import Tool

__all__ = ["index_of", "is_indexed"]

_TOOL_BYTES = 4 * 1024
"""What a tool takes in an index, nearly."""


class _Index(NamedTuple):
    searcher: Searcher
    size: int


_INDEXES: Memo[tuple[str, Hashable], _Index] = Memo(
    32, room=64 * 1024 * 1024, size=lambda index: index.size
)


def index_of(tools: Sequence[Tool], fingerprint: str, ranker: Ranker) -> Searcher:
    """Return the index of a list of tools, built once per content and ranker.

    Args:
        tools: The tools.
        fingerprint: The digest of their content and order.
        ranker: How to rank. Rankers of one class that are equal share an index; one that
            cannot be hashed has its own, and one that says `kept = False` is made anew.
    """
    if not getattr(ranker, "kept", True):
        return ranker.searcher(tools)
    size = _TOOL_BYTES * len(tools)
    return _INDEXES.get_or(
        (fingerprint, _key(ranker)), lambda: _Index(ranker.searcher(tools), size)
    ).searcher


def is_indexed(fingerprint: str, ranker: Ranker) -> bool:
    """Whether the index of these tools is there, so that asking it builds nothing."""
    return _INDEXES.get((fingerprint, _key(ranker))) is not None


class _Itself:
    """A ranker as a key that equals nothing but itself.

    It holds the ranker, so that no other can come to have its identity while the key is kept.
    """

    __slots__ = ("_ranker",)

    def __init__(self, ranker: Ranker) -> None:
        self._ranker = ranker

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and other._ranker is self._ranker

    def __hash__(self) -> int:
        return id(self._ranker)


def _key(ranker: Ranker) -> Hashable:
    try:
        hash(ranker)
    except TypeError:
        return _Itself(ranker)
    # Two classes may think themselves equal and still rank in two ways.
    return type(ranker), ranker
