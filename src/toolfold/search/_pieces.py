"""Texts cut into the rows of the embedding table.

The vocabulary is word pieces, whole words and pairs of words that belong together ("pull
request"). Training cuts texts with this very module, so it imports nothing of toolfold.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container, Sequence
from functools import lru_cache

__all__ = ["NUMBER", "Pieces", "lead", "words"]

NUMBER = "[NUM]"
"""The row that stands for every number."""

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_HUMP = re.compile("[A-Za-z0-9][A-Z]")
"""What every change of case inside a word holds."""
_COMPOUND = re.compile(r"(?<![^\W_])[A-Z][a-z]+[A-Z]+[a-z]*(?![^\W_])")
_WORD = re.compile(rf"[{_CJK}]|[^\W_{_CJK}]+")
_SENTENCE = re.compile(r"(?<=[.!?。])\s+|\n+")
_PIECE_LIMIT = 24
_TEXT_LIMIT = 8_000
_WORDS_KEPT = 16_384
_WORD_KEPT = 40


def words(text: str, whole: Container[str] = ()) -> list[str]:
    """Return the words of a text in lower case, without accents, split at case changes.

    Args:
        text: The text.
        whole: Words that are not split: `github` leaves `GitHub` as it is.
    """
    text = text[:_TEXT_LIMIT]
    if _HUMP.search(text):
        if whole and not text.isupper():
            text = _COMPOUND.sub(lambda m: m[0].lower() if m[0].lower() in whole else m[0], text)
        text = _CAMEL.sub(" ", text)
    if not text.isascii():
        decomposed = unicodedata.normalize("NFKD", text)
        text = "".join(c for c in decomposed if not unicodedata.combining(c))
    return _WORD.findall(text.lower())


def lead(description: str) -> tuple[str, str]:
    """Return the first sentence of a description, and the rest."""
    parts = _SENTENCE.split(description.strip(), maxsplit=1)
    return parts[0], parts[1] if len(parts) > 1 else ""


class Pieces:
    """Turns words into row numbers of the embedding table.

    Args:
        vocabulary: The pieces, in the order of the rows. One that continues a word begins
            with `##`; a pair of words has a blank between them.
    """

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self.row = {piece: i for i, piece in enumerate(vocabulary)}
        self._kept = lru_cache(maxsize=_WORDS_KEPT)(self._pieces)

    def pieces(self, word: str, limit: int = _TEXT_LIMIT) -> tuple[int, ...]:
        """Return the rows of a word; of a long one, the first `limit` of them."""
        # A stranger may write words of any length: those are cut again each time.
        return self._kept(word) if len(word) <= _WORD_KEPT else self._pieces(word, limit)

    def rows(self, text: str, limit: int) -> list[int]:
        """Return the rows of a text: the pieces of each word, and known pairs of neighbours."""
        row = self.row
        found: list[int] = []
        previous = ""
        for word in words(text, row):
            found.extend(self.pieces(word, limit))
            pair = row.get(f"{previous} {word}") if previous else None
            if pair is not None:
                found.append(pair)
            previous = word
            if len(found) >= limit:
                return found[:limit]
        return found

    def _pieces(self, word: str, limit: int = _TEXT_LIMIT) -> tuple[int, ...]:
        row = self.row
        if word in row:
            return (row[word],)
        if word.isdigit():
            return (row[NUMBER],) if NUMBER in row else ()
        found: list[int] = []
        start = 0
        while start < len(word) and len(found) < limit:
            end = min(len(word), start + _PIECE_LIMIT)
            mark = "##" if start else ""
            while end > start and mark + word[start:end] not in row:
                end -= 1
            if end == start:
                break
            found.append(row[mark + word[start:end]])
            start = end
        return tuple(found)
