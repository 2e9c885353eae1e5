"""A mapping that is as frozen as the settings it is in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

__all__ = ["FrozenMapping"]

V = TypeVar("V")


@dataclass(frozen=True, slots=True, eq=False)
class FrozenMapping(Mapping[str, V], Generic[V]):
    """A mapping that never changes and can be hashed, given values that can.

    The order of its keys is part of it: two of another order differ.
    """

    pairs: tuple[tuple[str, V], ...] = ()

    def __getitem__(self, key: str) -> V:
        for own, value in self.pairs:
            if own == key:
                return value
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        return (key for key, _ in self.pairs)

    def __len__(self) -> int:
        return len(self.pairs)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, FrozenMapping):
            return self.pairs == other.pairs  # pyright: ignore[reportUnknownMemberType]
        return isinstance(other, Mapping) and dict(self.pairs) == other

    def __hash__(self) -> int:
        return hash(self.pairs)
