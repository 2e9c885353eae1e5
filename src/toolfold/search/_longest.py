"""The longest known word at a place, for scripts that put nothing between their words."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["LongestWords"]


class LongestWords:
    """Finds words of two letters or more, the longest first.

    Args:
        meanings: The words, with what they mean.
    """

    def __init__(self, meanings: Mapping[str, str]) -> None:
        self._meanings = meanings
        self._longest: dict[str, int] = {}
        for word in meanings:
            self._longest[word[0]] = max(len(word), self._longest.get(word[0], 0))

    def size_at(self, letters: str, start: int) -> int:
        """Return how long the longest known word at a place is; 0 where none is known."""
        longest = self._longest.get(letters[start], 0)
        for end in range(min(start + longest, len(letters)), start + 1, -1):
            if letters[start:end] in self._meanings:
                return end - start
        return 0
