"""Can each tool be found? Asked of a search, tool by tool, with the tool's own words and others.

A tool is searched for by its description's first sentence and by paraphrases of it, in
which words give way to others of the same meaning. What stands above it shadows it; words
of the paraphrase that it nowhere has are worth adding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol

from toolfold._bounds import first_sentence
from toolfold.answer import Hit
from toolfold.search._document import document
from toolfold.search._synonyms import SYNONYMS
from toolfold.search._text import is_telling, raw_words, stem
from toolfold.tool import Tool

__all__ = ["Retrievability", "paraphrases", "retrievability"]

FOUND_WITHIN = 5
"""Among how many hits a tool must be to count as found."""

_SENTENCE_LIMIT = 300
_SHADOWS_AT_MOST = 3
_WORDS_AT_MOST = 5


class Retrievability(NamedTuple):
    """How well one tool can be found."""

    name: str
    by_description: int | None
    """Its place when searched for by its own first sentence; None where it is not found."""
    by_paraphrase: int | None
    """Its worst place over the paraphrases; None where one of them does not find it."""
    shadowed_by: tuple[str, ...]
    """The tools that most often stand above it."""
    words_to_add: tuple[str, ...]
    """Words of failed paraphrases that the tool nowhere has: aliases, or for its description."""

    @property
    def is_found(self) -> bool:
        """Whether every search found it."""
        return self.by_description is not None and self.by_paraphrase is not None


class _Search(Protocol):
    def __call__(self, need: str, limit: int) -> Sequence[Hit]: ...


def retrievability(
    tools: Sequence[Tool], search: _Search, *, progress: Callable[[], None] = lambda: None
) -> list[Retrievability]:
    """Return how well each tool can be found.

    Args:
        tools: The tools to look for.
        search: The search to ask, over a catalog that holds them.
        progress: Called after every tool.
    """
    found: list[Retrievability] = []
    names: dict[str, list[str]] = {}

    def names_of(need: str) -> list[str]:
        if need not in names:
            names[need] = [hit.name for hit in search(need, FOUND_WITHIN)]
        return names[need]

    for tool in tools:
        found.append(_looked_for(tool, names_of))
        progress()
    return found


def _looked_for(tool: Tool, names_of: Callable[[str], list[str]]) -> Retrievability:
    sentence = first_sentence(tool.description, _SENTENCE_LIMIT)
    said = sentence or " ".join(raw_words(tool.name))
    above: Counter[str] = Counter()
    missing: Counter[str] = Counter()
    held = {stem(term) for term in document(tool).terms}

    def place(need: str) -> int | None:
        names = names_of(need)
        if tool.name in names:
            above.update(names[: names.index(tool.name)])
            return names.index(tool.name) + 1
        above.update(names)
        words = (word for word in raw_words(need) if is_telling(word))
        missing.update(word for word in words if stem(word) not in held)
        return None

    own = place(said)
    others = [place(other) for other in paraphrases(said)]
    known = [rank for rank in others if rank is not None]
    worst = max(known, default=own) if len(known) == len(others) else None
    return Retrievability(
        tool.name,
        own,
        worst,
        tuple(name for name, _ in above.most_common(_SHADOWS_AT_MOST)),
        tuple(word for word, _ in missing.most_common(_WORDS_AT_MOST)),
    )


def paraphrases(sentence: str) -> Iterator[str]:
    """Yield the sentence in other words: each word that has synonyms gives way to one of them."""
    words = [word for word in raw_words(sentence) if is_telling(word)]
    turns = (tuple(_synonym(word, turn) for word in words) for turn in range(2))
    for other in dict.fromkeys(turns):
        if other != tuple(words):
            yield " ".join(other)


def _synonym(word: str, turn: int) -> str:
    options = _by_stem().get(stem(word), ())
    return options[turn % len(options)] if options else word


@lru_cache(maxsize=1)
def _by_stem() -> Mapping[str, tuple[str, ...]]:
    """Return synonyms in both directions: what people say for a word, and what it is for."""
    both: dict[str, list[str]] = {}
    for said, meant in SYNONYMS.items():
        for word in meant.split():
            both.setdefault(stem(word), []).append(said)
            both.setdefault(stem(said), []).append(word)
    return {key: tuple(dict.fromkeys(words)) for key, words in both.items()}
