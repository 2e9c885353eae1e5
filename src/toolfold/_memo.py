"""A bounded store of things computed from content.

Keys are digests of content, never sessions or object identities, so a memo can only be
cold, not wrong. The oldest entries leave when there are too many, or when together they are
too large; the newest stays, whatever its size.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

__all__ = ["Memo"]

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Memo(Generic[K, V]):
    """A thread-safe mapping that holds at most `bound` entries.

    Args:
        bound: How many entries stay.
        room: How large they may be together, by `size`.
        size: Returns the size of a value, in bytes or nearly.
    """

    __slots__ = ("_bound", "_entries", "_held", "_lock", "_room", "_size")

    def __init__(
        self, bound: int, *, room: int = 0, size: Callable[[V], int] | None = None
    ) -> None:
        self._bound = bound
        self._room = room
        self._size = size
        self._held = 0
        self._entries: dict[K, V] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def held(self) -> int:
        """How large the entries are together; 0 where sizes are not counted."""
        return self._held

    def get(self, key: K) -> V | None:
        """Return what is stored under `key`, or None."""
        return self._entries.get(key)

    def put(self, key: K, value: V) -> V:
        """Store `value`, dropping the oldest entries beyond the bound."""
        with self._lock:
            self._pop(key)
            self._entries[key] = value
            self._held += self._size_of(value)
            while len(self._entries) > self._bound or (
                self._held > self._room and len(self._entries) > 1 and self._size is not None
            ):
                self._pop(next(iter(self._entries)))
        return value

    def _size_of(self, value: V) -> int:
        return 0 if self._size is None else self._size(value)

    def _pop(self, key: K) -> None:
        if key in self._entries:
            self._held -= self._size_of(self._entries.pop(key))

    def get_or(self, key: K, compute: Callable[[], V]) -> V:
        """Return what is stored under `key`, computing it where nothing is.

        Two threads that miss together both compute; either result is right.
        """
        found = self._entries.get(key)
        return self.put(key, compute()) if found is None else found

    def values(self) -> tuple[V, ...]:
        """Return what is stored, the oldest first."""
        with self._lock:
            return tuple(self._entries.values())

    def drop(self, key: K) -> None:
        """Forget what is stored under `key`."""
        with self._lock:
            self._pop(key)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._entries.clear()
            self._held = 0
