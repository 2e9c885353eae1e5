"""Words and pieces: how every text is cut, in training and at run time alike.

The vocabulary is BERT's word pieces, whole words that BERT would cut, and pairs of adjacent words ("pull request").
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(r"[぀-ヿ㐀-䶿一-鿿가-힯]|[^\W_぀-ヿ㐀-䶿一-鿿가-힯]+")
_SENTENCE = re.compile(r"(?<=[.!?。])\s+|\n+")
NUMBER = "[NUM]"


def words(text: str) -> list[str]:
    """Cut a text into lower-case words without accents; names in camelCase and snake_case fall apart too."""
    text = _CAMEL.sub(" ", text)
    if not text.isascii():
        text = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    return _WORD.findall(text.lower())


def lead(description: str) -> tuple[str, str]:
    """Part a description into its first sentence and the rest."""
    parts = _SENTENCE.split(description.strip(), maxsplit=1)
    return parts[0], parts[1] if len(parts) > 1 else ""


class Pieces:
    """Turn words into row numbers of the embedding table."""

    def __init__(self, vocabulary: list[str]) -> None:
        """Take the vocabulary in row order; a pair of words is written with a blank between."""
        self.row = {piece: i for i, piece in enumerate(vocabulary)}
        self.pieces = lru_cache(maxsize=65536)(self._pieces)

    def _pieces(self, word: str) -> tuple[int, ...]:
        row = self.row
        if word in row:
            return (row[word],)
        if word.isdigit():
            return (row[NUMBER],) if NUMBER in row else ()
        found: list[int] = []
        start = 0
        while start < len(word):
            end = min(len(word), start + 24)
            while end > start:
                piece = word[start:end] if start == 0 else "##" + word[start:end]
                if piece in row:
                    found.append(row[piece])
                    break
                end -= 1
            if end == start:
                return tuple(found)
            start = end
        return tuple(found)

    def rows(self, text: str, limit: int = 10_000) -> list[int]:
        """List the rows of a text: pieces of each word, and known pairs of neighbours."""
        row = self.row
        found: list[int] = []
        previous = ""
        for word in words(text):
            found.extend(self.pieces(word))
            if previous:
                pair = row.get(previous + " " + word)
                if pair is not None:
                    found.append(pair)
            previous = word
            if len(found) >= limit:
                return found[:limit]
        return found
