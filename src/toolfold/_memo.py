"""A bounded store of things computed from content.

Keys are digests of content, never sessions or object identities, so a memo can only be
cold, not wrong. The oldest entry leaves when the bound is reached.
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
    """

    __slots__ = ("_bound", "_entries", "_lock")

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self._entries: dict[K, V] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K) -> V | None:
        """Return what is stored under `key`, or None."""
        return self._entries.get(key)

    def put(self, key: K, value: V) -> V:
        """Store `value`, dropping the oldest entries beyond the bound."""
        with self._lock:
            self._entries[key] = value
            while len(self._entries) > self._bound:
                del self._entries[next(iter(self._entries))]
        return value

    def get_or(self, key: K, compute: Callable[[], V]) -> V:
        """Return what is stored under `key`, computing it where nothing is.

        Two threads that miss together both compute; either result is right.
        """
        found = self._entries.get(key)
        return self.put(key, compute()) if found is None else found

    def drop(self, key: K) -> None:
        """Forget what is stored under `key`."""
        with self._lock:
            self._entries.pop(key, None)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._entries.clear()
