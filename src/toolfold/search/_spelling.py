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
        words = [token[0].lower() for token in tokens]
        held = [self._is_held(stem(word)) for word in words]
        changes: list[tuple[int, int, str]] = []
        strange: list[re.Match[str]] = []
        skip = False
        for place, token in enumerate(tokens):
            if skip:
                skip = False
                continue
            after = place + 1
            # What the tools hold both parts of is no one word to them.
            if (
                after < len(tokens)
                and not (held[place] and held[after])
                and tokens[after].start() == token.end() + 1
                and self._are_one(query[token.end()], words[place], words[after])
            ):
                joined = words[place] + words[after]
                changes.append((token.start(), tokens[after].end(), joined))
                skip = True
            elif held[place]:
                if token[0] != words[place] and is_compound(token[0]):
                    changes.append((token.start(), token.end(), words[place]))
            elif self._is_strange(query, token, words[place]):
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

    def _are_one(self, joint: str, first: str, second: str) -> bool:
        """Whether two neighbours, which the tools do not have both, are one word to them."""
        if joint != "-" and (joint != " " or first in STOPWORDS or second in STOPWORDS):
            return False
        if len(first) + len(second) < _SHORTEST:
            return False
        return self._is_held(stem(first + second))

    def _is_strange(self, query: str, token: re.Match[str], word: str) -> bool:
        """Whether a word that no tool holds is unknown to the table, too, and no identifier."""
        if not _SHORTEST <= len(word) <= _LONGEST or self._is_word(word):
            return False
        if self._is_word(stem(word)) or is_compound(token[0]):
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
