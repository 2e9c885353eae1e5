"""Where a memory is kept: a file of this machine, or a database that several processes share."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from toolfold.errors import ToolfoldError

__all__ = ["KeptMemory", "KeptRequest", "Ranked", "StoreError", "ToolKey"]

ToolKey = tuple[str, str]
"""A tool's name and its digest."""

Ranked = tuple[tuple[ToolKey, float], ...]
"""How a search without memory ranked tools: the logarithms of their shares of the belief."""


class StoreError(ToolfoldError):
    """The file could not be read or written; what it held is as it was."""


@dataclass(frozen=True, slots=True)
class KeptRequest:
    """One request that is kept, and what it led to."""

    id: int
    seq: int
    principal: str
    text: str
    at: float
    vector: bytes
    ranked: Ranked
    uses: tuple[tuple[ToolKey, int, int], ...]
    """The tools, and how often each worked and did not; the newest first."""


class KeptMemory(Protocol):
    """What searches led to, kept. Safe to share between threads and processes.

    Every method may raise `StoreError`, and `StoreAwayError` where it is shared.
    """

    @property
    def is_lasting(self) -> bool:
        """Whether what is kept outlives the process."""
        ...

    @property
    def place(self) -> str:
        """Where it is, for a person."""
        ...

    @property
    def path(self) -> Path | None:
        """The file, where there is one."""
        ...

    @property
    def problem(self) -> str:
        """Why it is not used, if it is not."""
        ...

    def close(self) -> None:
        """Close it."""
        ...

    def changes(self) -> tuple[int, int, int]:
        """Return what deletions raise, what new and changed requests raise, and what pairs do."""
        ...

    def writes(self) -> Hashable:
        """Return what changes when anybody has written."""
        ...

    def requests(self, *, after: int = 0) -> Iterator[KeptRequest]:
        """Yield the requests that were kept or changed after a sequence number, in that order."""
        ...

    def tools(self) -> Mapping[int, ToolKey]:
        """Return the tools that anything is kept of."""
        ...

    def text(self, request: int) -> str | None:
        """Return the text of a request."""
        ...

    def ranked(self, requests: Sequence[int]) -> Mapping[int, Ranked]:
        """Return how search ranked tools for requests, by their ids; at once."""
        ...

    def pairs(self) -> Sequence[tuple[str, ToolKey, ToolKey, int]]:
        """Return which tools were used in one task, for whom, and how often."""
        ...

    def put(
        self,
        principal: str,
        text: str,
        vector: bytes,
        ranked: Ranked | None,
        uses: Iterable[tuple[ToolKey, int, int]],
        at: float,
    ) -> int:
        """Keep that a request led to tools; what was kept of it is added to."""
        ...

    def pair(self, principal: str, one: ToolKey, other: ToolKey, times: int, at: float) -> None:
        """Keep that two tools were used in one task."""
        ...

    def seen(self, tools: Iterable[ToolKey], at: float) -> None:
        """Keep that tools are still there, so that they are not taken for gone."""
        ...

    def renew_vectors(self, version: str, made: Callable[[str], bytes]) -> None:
        """Make the vectors anew where another table made them."""
        ...

    def forget(
        self, *, tool: str | None = None, principal: str | None = None, before: float | None = None
    ) -> int:
        """Delete uses and pairs that all conditions hold for; return how many uses went."""
        ...

    def forget_tools(
        self, *, name: str | None = None, unseen: float | None = None, ids: Sequence[int] = ()
    ) -> int:
        """Delete all that is kept of tools of a name, not seen since a moment, or of some ids."""
        ...

    def forget_oldest(self, bound: int) -> int:
        """Delete the oldest requests beyond a bound, and a few more, so that it is seldom done."""
        ...

    def clear(self) -> int:
        """Delete everything; return how many uses went."""
        ...

    def scrub(self) -> None:
        """Leave nothing of what was deleted, as far as that is in our hands."""
        ...
