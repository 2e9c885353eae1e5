"""Chinese and Japanese, read in English word by word.

Nothing stands between their words: at each place the longest known one is taken.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from toolfold.search._longest import LongestWords

__all__ = ["HAS_CJK", "HAS_KANA", "TOKEN", "Unspaced"]

_CJK = "\u3005\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"

HAS_CJK = re.compile(f"[{_CJK}]")
"""Finds a letter of Chinese or Japanese."""

HAS_KANA = re.compile("[\u3040-\u30ff]")
"""Finds a letter that only Japanese has."""

TOKEN = re.compile(f"[{_CJK}]+|[^\\W_{_CJK}]+")
"""Finds a run of these letters, or a word of others."""

_HIRAGANA = re.compile("[\u3040-\u309f]+")


class Unspaced:
    """The words of one of the two languages.

    Args:
        meanings: The words in English.
        folded: Returns a text as the words are written, letter for letter.
    """

    def __init__(
        self, meanings: Mapping[str, str], folded: Callable[[str], str] | None = None
    ) -> None:
        self._meanings = meanings
        self._folded = folded
        self._longest = LongestWords(meanings)

    def translated(self, text: str) -> str | None:
        """Return a text with the words that are known in English; None where none is."""
        out: list[str] = []
        end = 0
        is_read = False
        for run in TOKEN.finditer(text):
            out.append(text[end : run.start()])
            end = run.end()
            if not HAS_CJK.match(run[0]):
                out.append(run[0])
                continue
            letters = self._folded(run[0]) if self._folded else run[0]
            start = 0
            while start < len(letters):
                size = self._longest.size_at(letters, start) or 1
                meaning = self._meanings.get(letters[start : start + size])
                if meaning is None:
                    # It stays as it is written, but for endings and particles.
                    out.append(_HIRAGANA.sub(" ", run[0][start : start + size]))
                else:
                    out.append(f" {meaning} ")
                    is_read = is_read or bool(meaning)
                start += size
        return "".join([*out, text[end:]]) if is_read else None
