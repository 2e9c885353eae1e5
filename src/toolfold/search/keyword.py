"""The simple ranker of the stub strategy: words in the name count three, elsewhere one.

Predictable rather than clever: each word of the query that begins a word of the name scores
3, else 1 if it begins a word of the description; one of up to two letters must be that word; a
query that is exactly a name gets 100 more; what scores less than half of the best is dropped;
eight tools at most. Where no tool scores, words are looked for inside others, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from toolfold.search.ranker import Match
from toolfold.tool import Tool

__all__ = ["Keyword", "KeywordSearcher"]

NAME_SCORE = 3
DESCRIPTION_SCORE = 1
EXACT_NAME_BONUS = 100
HITS_AT_MOST = 8
"""The most that a search finds, and the most that a stub search reveals at once."""

_Fits = Callable[[str, str], bool]
_DESCRIPTION_LIMIT = 4_000
_SHORT = 3
_WRAPPING = "\"'`.,;:!?()[]{}<>*"


@dataclass(frozen=True)
class Keyword:
    """Ranks by which words of the query the name and the description hold."""

    name = "keyword"
    calibrated = False
    waits = False

    def searcher(self, tools: Sequence[Tool]) -> KeywordSearcher:
        """Return a searcher over the tools."""
        texts = [(t.name.lower(), t.description[:_DESCRIPTION_LIMIT].lower()) for t in tools]
        return KeywordSearcher(texts)


class KeywordSearcher:
    """Answers queries over one list of tools.

    Args:
        texts: The name and the description of each tool, in lower case.
    """

    def __init__(self, texts: Sequence[tuple[str, str]]) -> None:
        self._texts = texts

    def search(self, query: str, limit: int) -> Sequence[Match]:
        """Return the tools that score at least half of the best one."""
        matches = self._matches(query, _begins) or self._matches(query, _holds)
        if not matches:
            return ()
        matches.sort(key=lambda match: -match.score)
        least = -(-matches[0].score // 2)
        kept = [match for match in matches if match.score >= least]
        return kept[: min(limit, HITS_AT_MOST)]

    def _matches(self, query: str, fits: _Fits) -> list[Match]:
        """Return the tools that score, in the order of the list."""
        wanted = _words(query)
        whole = query.lower().strip().strip(_WRAPPING)
        matches: list[Match] = []
        for position, (name, description) in enumerate(self._texts):
            score = sum(score for _, score in _shares(wanted, name, description, fits))
            score += EXACT_NAME_BONUS if whole == name else 0
            if score:
                matches.append(Match(position, float(score)))
        return matches

    def explain(self, query: str, position: int) -> str:
        """Name the words that match, each with its score."""
        name, description = self._texts[position]
        wanted = _words(query)
        shares = _shares(wanted, name, description, _begins)
        shares = shares or _shares(wanted, name, description, _holds)
        return "words " + ", ".join(f"{word} {score}" for word, score in shares)


def _words(query: str) -> list[str]:
    words = (word.strip(_WRAPPING) for word in query.lower().split())
    return [word for word in words if word]


def _begins(word: str, text: str) -> bool:
    """Whether a word begins a word of a text, or is one where it is short.

    A plural's end and the like may follow; `a` begins too many words to tell of any.
    """
    place = text.find(word)
    if place < 0 or not _is_spaced(word):
        return place >= 0
    may_follow, length = len(word) >= _SHORT, len(word)
    while place >= 0:
        is_start = not (place and text[place - 1].isalnum() and word[0].isalnum())
        if is_start and (may_follow or not text[place + length : place + length + 1].isalpha()):
            return True
        place = text.find(word, place + 1)
    return False


def _is_spaced(word: str) -> bool:
    """Whether a word is of a script that has spaces between words."""
    return word < "\u0e00"


def _holds(word: str, text: str) -> bool:
    return word in text


def _shares(
    wanted: Sequence[str], name: str, description: str, fits: _Fits
) -> list[tuple[str, int]]:
    shares: list[tuple[str, int]] = []
    for word in wanted:
        if fits(word, name):
            shares.append((word, NAME_SCORE))
        elif fits(word, description):
            shares.append((word, DESCRIPTION_SCORE))
    return shares
