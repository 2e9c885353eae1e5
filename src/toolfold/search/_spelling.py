"""A request in the words that the tools have: typing errors mended, compounds joined.

Only a word that neither a tool nor the embedding table knows is taken for a typing error, and
only where one swapped, missing, wrong or surplus letter makes it a word of the tools, or one
swap a word of the table. What the tools write in one word (`github`, `email`) is searched in
one word, however a request writes it (`GitHub`, `e-mail`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice

from toolfold.search._text import STOPWORDS, is_compound, stem

__all__ = ["Spelling"]

_TOKEN = re.compile(r"[A-Za-z]+")
_SHORTEST = 5
_LONGEST = 24
_WORDS_AT_MOST = 128
_MENDED_AT_MOST = 2
_LETTERS = "abcdefghijklmnopqrstuvwxyz"

IsKnown = Callable[[str], bool]


class Spelling:
    """Spells requests as a list of tools does.

    Args:
        is_held: Whether any tool holds a term.
        is_word: Whether the embedding table has a word.
    """

    def __init__(self, is_held: IsKnown, is_word: IsKnown) -> None:
        self._is_held = is_held
        self._is_word = is_word

    def spelt(self, query: str) -> str:
        """Return the request in the words of the tools; itself where nothing is to be changed."""
        tokens = list(islice(_TOKEN.finditer(query), _WORDS_AT_MOST))
        changes: list[tuple[int, int, str]] = []
        strange: list[re.Match[str]] = []
        skip = False
        for place, token in enumerate(tokens):
            if skip:
                skip = False
                continue
            word = token[0]
            after = tokens[place + 1] if place + 1 < len(tokens) else None
            if after and after.start() == token.end() + 1 and self._are_one(query, token, after):
                changes.append((token.start(), after.end(), f"{word}{after[0]}".lower()))
                skip = True
            elif not word.islower() and is_compound(word) and self._is_held(stem(word.lower())):
                changes.append((token.start(), token.end(), word.lower()))
            elif self._is_strange(query, token):
                strange.append(token)
        # More than a few strange words are names or another language, not errors.
        if strange and len(strange) <= max(1, len(tokens) // 3):
            changes += [
                (token.start(), token.end(), mended)
                for token in strange[:_MENDED_AT_MOST]
                if (mended := self._mended(token[0]))
            ]
        for start, end, text in sorted(changes, reverse=True):
            query = query[:start] + text + query[end:]
        return query

    def _are_one(self, query: str, token: re.Match[str], after: re.Match[str]) -> bool:
        """Whether two neighbours are one word to the tools, which do not have both of them."""
        joint, first, second = query[token.end()], token[0].lower(), after[0].lower()
        if joint != "-" and (joint != " " or first in STOPWORDS or second in STOPWORDS):
            return False
        if len(first) + len(second) < _SHORTEST:
            return False
        if self._is_held(stem(first)) and self._is_held(stem(second)):
            return False
        return self._is_held(stem(first + second))

    def _is_strange(self, query: str, token: re.Match[str]) -> bool:
        word = token[0].lower()
        if not _SHORTEST <= len(word) <= _LONGEST or self._is_word(word):
            return False
        if self._is_word(stem(word)) or self._is_held(stem(word)) or is_compound(token[0]):
            return False
        # Part of an identifier, an address or a word of another script: no word to be mended.
        around = query[max(token.start() - 1, 0) : token.start()] + query[token.end() :][:1]
        return not any(c.isalnum() or c in "_@/.'" for c in around.rstrip(".'"))

    def _mended(self, written: str) -> str | None:
        """Return the word that was meant, or None where none is near."""
        word = written.lower()
        swapped = [word[:i] + word[i + 1] + word[i] + word[i + 2 :] for i in range(len(word) - 1)]
        others = [other for other in swapped if other != word]
        for other in others:
            if self._is_held(stem(other)):
                return other
        for other in others:
            if self._is_word(other):
                return other
        if written != word:
            return None  # a name, more likely than an error
        root = stem(word)
        ending = word[len(root) :] if word.startswith(root) else ""
        for other in _near(root):
            if len(other) >= _SHORTEST - 1 and self._is_held(other):
                return other + ending
        return None


def _near(word: str) -> Iterator[str]:
    """Yield the words that a surplus, a missing or a wrong letter makes of a word."""
    # Errors are rare in the first letter, and the last ones of a stem are those of its form.
    for i in range(1, len(word) - 1):
        yield word[:i] + word[i + 1 :]
    for i in range(1, len(word) - 1):
        for letter in _LETTERS:
            yield word[:i] + letter + word[i:]
    for i in range(1, len(word) - 1):
        for letter in _LETTERS:
            yield word[:i] + letter + word[i + 1 :]
