"""As many tools as one asks for: a large corpus, and after it copies of it that differ.

A copy has other sources, and in names and texts other words and numbers; which ones depends on the
number of the copy alone. Words come from tools of the same category as often as they stand there,
so that what is common stays common and what is rare stays rare. Tools are yielded one by one, and
nothing is held but the corpus.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import accumulate, count, islice
from random import Random
from typing import Any

from bench import data

__all__ = ["CORPUS", "Copies"]

CORPUS = "scale-46936"
"""What is copied."""

_SEED = "toolfold"
_CHANGED = 0.25
"""How many of the words of a copy are others."""

_WORD = re.compile(r"[A-Za-z]{4,}|\d+")


class Copies:
    """The corpus and its copies.

    Args:
        rows: The tools that are copied; those of the corpus where none are given.
    """

    def __init__(self, rows: Sequence[data.Tool] | None = None) -> None:
        self.rows = data.catalog(CORPUS).tools if rows is None else rows
        counted: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for row in self.rows:
            words = _WORD.findall(f"{row.get('raw_name') or row['name']} {row['description']}")
            counted[_category(row)].update(w.lower() for w in words if not w.isdigit())
        self._words = {name: _Words(own) for name, own in counted.items()}

    def tools(self, most: int) -> Iterator[data.Tool]:
        """Yield so many tools: the corpus, its first copy, its second, and so on."""
        return islice((tool for number in count() for tool in self.copy(number)), most)

    def copy(self, number: int) -> Iterator[data.Tool]:
        """Yield one copy; number 0 is the corpus itself."""
        if not number:
            yield from self.rows
            return
        chance = Random(f"{_SEED} {number}")
        sources: dict[str, str] = {}
        taken: set[str] = set()
        for row in self.rows:
            words = self._words[_category(row)]
            source = row.get("server") or ""
            if source not in sources:
                sources[source] = f"{source} {words.drawn(chance).capitalize()} {number}"
            own = self._varied(row.get("raw_name") or row["name"], words, chance)
            name = f"{sources[source]}.{own}"
            while name in taken:
                name = f"{sources[source]}.{own} {chance.randrange(10_000)}"
            taken.add(name)
            yield {
                "name": name,
                "description": self._varied(str(row["description"]), words, chance),
                "parameters": row["parameters"],
                "server": sources[source],
            }

    def _varied(self, text: str, words: _Words, chance: Random) -> str:
        def other(match: re.Match[str]) -> str:
            word = match[0]
            if chance.random() >= _CHANGED:
                return word
            if word.isdigit():
                return str(chance.randrange(10 ** min(len(word), 9)))
            drawn = words.drawn(chance)
            return drawn.capitalize() if word[0].isupper() else drawn

        return _WORD.sub(other, text)


class _Words:
    """The words of a category, drawn as often as they stand there."""

    def __init__(self, counts: Counter[str]) -> None:
        self._names = sorted(counts) or ["other"]
        self._edges = list(accumulate(counts[name] or 1 for name in self._names))

    def drawn(self, chance: Random) -> str:
        return self._names[bisect(self._edges, chance.randrange(self._edges[-1]))]


def _category(row: dict[str, Any]) -> str:
    return str(row.get("category") or "")
