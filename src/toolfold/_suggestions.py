"""Which tools a name may mean that no tool has: found by search, as a need would be.

A name that was made up says what its maker wants. So its words are spelt as the catalog's
names spell them, and searched for; where arguments came with it, once more together with
those, which say what the name leaves out. A suggestion never does more than the name that
was asked for: to get something is answered with nothing that merges or deletes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher

from toolfold._bounds import one_line
from toolfold._memo import Memo
from toolfold.catalog import Catalog
from toolfold.search import RANKERS, Ranker, index_of
from toolfold.settings import Settings
from toolfold.tool import Json, Tool, is_object

__all__ = ["names_like", "suggested", "words_of"]

_NAME_LIMIT = 200
_WORDS_AT_MOST = 12
_SEARCHED = 8
_ARGUMENTS_AT_MOST = 8
_VALUE_LIMIT = 80
_NEAR_TO_THE_BEST = 0.5
_SPELT_ALIKE = 0.8
_AS_A_NAME = 0.3
"""How probable a tool must be that a name is taken for: a name says less than a request."""

_SHORTEST = 3
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_PREFIX = re.compile(r"(.+?)(?:__|[./:])+(.+)", re.DOTALL)
_READS = frozenset(
    "get list read search find show fetch view query describe check count look lookup".split()
)
_ACTS = frozenset(
    "accept add answer approve archive assign book call close comment commit convert copy create "
    "deploy disable edit enable execute import insert install invite lock make merge modify move "
    "open pay pin post publish push put rename replace reply reset respond restart restore retry "
    "review run save schedule send set share start stop submit transfer trigger turn update "
    "upload write".split()
)
_DESTROYS = frozenset(
    "ban block cancel clear delete destroy drop erase kill purge remove revoke terminate "
    "uninstall wipe".split()
)
_VOCABULARIES: Memo[str, frozenset[str]] = Memo(32)


def suggested(
    catalog: Catalog,
    name: str,
    ranker: Ranker,
    *,
    arguments: Json = None,
    floor: float = 0.0,
    limit: int = 3,
) -> tuple[Tool, ...]:
    """Return the tools that a made-up name may mean, the likeliest first.

    Args:
        catalog: The tools that there are for the caller.
        name: The name.
        ranker: How to rank.
        arguments: What the name was called with.
        floor: How probable the likeliest must be, where the ranker knows.
        limit: How many to return.
    """
    name = name[:_NAME_LIMIT]
    prefix, bare = _parted(catalog, name)
    words = _spelt(_words(bare), catalog, prefix)
    if not words:
        return ()
    index = index_of(catalog.tools, catalog.fingerprint, ranker)
    scores: dict[int, float] = {}
    for query in (" ".join(words), _with_arguments(words, arguments)):
        for match in index.search(query, _SEARCHED) if query else ():
            scores[match.position] = max(match.score, scores.get(match.position, 0.0))
    best = max(scores.values(), default=0.0)
    if ranker.calibrated and floor and best < max(floor, _AS_A_NAME):
        scores.clear()
    found = sorted(scores, key=lambda position: (-scores[position], position))
    least = best * _NEAR_TO_THE_BEST
    hits = [catalog.tools[position] for position in found if scores[position] >= least]
    same = [tool for tool in (catalog.meant(name), catalog.meant(" ".join(words))) if tool]
    # Of the source that was named, before any other's.
    hits.sort(key=lambda tool: prefix is not None and tool.source != prefix)
    level = _level(words)
    tools = dict.fromkeys([*same, *(tool for tool in hits if _does(tool) <= level)])
    return tuple(tools)[:limit]


def _with_arguments(words: list[str], arguments: Json) -> str:
    """Return a name's words with what its arguments are called and say; empty where none do."""
    if not is_object(arguments):
        return ""
    said: list[str] = []
    for key, value in list(arguments.items())[:_ARGUMENTS_AT_MOST]:
        said += _words(key)
        if isinstance(value, str) and len(value) <= _VALUE_LIMIT:
            said.append(one_line(value, _VALUE_LIMIT))
    return " ".join((*words, *said)) if said else ""


def words_of(name: str) -> list[str]:
    """Return the words that a name is made of."""
    return _words(name[:_NAME_LIMIT])


def names_like(catalog: Catalog, name: str) -> tuple[str, ...]:
    """Return the names of the tools that a made-up name may mean, for a person."""
    settings = Settings()
    found = suggested(catalog, name, RANKERS["hybrid"](settings), floor=settings.relevance_floor)
    return tuple(tool.name for tool in found)


def _parted(catalog: Catalog, name: str) -> tuple[str | None, str]:
    """Return the source that a name begins with, if there is one, and the rest."""
    parts = _PREFIX.fullmatch(name)
    if parts is None:
        return None, name
    known = {source.lower(): source for source in catalog.sources}
    return known.get(parts[1].lower()), parts[2]


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)[:_WORDS_AT_MOST]]


def _spelt(words: Iterable[str], catalog: Catalog, source: str | None) -> list[str]:
    """Return words as the names of a source spell them, or else those of any."""
    known = _VOCABULARIES.get_or(catalog.fingerprint, lambda: _vocabulary(catalog))
    named = [tool for tool in catalog if source is not None and tool.source == source]
    own = frozenset(word for tool in named for word in _words(tool.bare_name))
    return [
        word if word in known else _nearest(word, own) or _nearest(word, known) or word
        for word in words
    ]


def _vocabulary(catalog: Catalog) -> frozenset[str]:
    return frozenset(word for tool in catalog for word in _words(tool.name))


def _nearest(word: str, known: frozenset[str]) -> str | None:
    if len(word) < _SHORTEST:
        return None
    matcher = SequenceMatcher(b=word, autojunk=False)
    best, nearest = _SPELT_ALIKE, None
    for other in sorted(known):
        if other[0] == word[0] and abs(len(other) - len(word)) <= 2:
            if len(word) > _SHORTEST and _is_slip(word, other):
                return other
            matcher.set_seq1(other)
            if matcher.quick_ratio() > best and (ratio := matcher.ratio()) > best:
                best, nearest = ratio, other
    return nearest


def _is_slip(word: str, other: str) -> bool:
    """Whether two words differ in one letter, or in two that have changed places."""
    if len(word) != len(other):
        return False
    places = [i for i, (a, b) in enumerate(zip(word, other, strict=True)) if a != b]
    return len(places) == 1 or (
        len(places) == 2
        and places[1] == places[0] + 1
        and word[places[0]] == other[places[1]]
        and word[places[1]] == other[places[0]]
    )


def _level(words: list[str]) -> int:
    """Return how much a name says that it does: 0 reads, 1 acts, 2 destroys."""
    for word in (words[0], words[-1]):
        for level, verbs in ((2, _DESTROYS), (0, _READS), (1, _ACTS)):
            if word in verbs:
                return level
    return 1


def _does(tool: Tool) -> int:
    """Return how much a tool does, by its hints and by the verb that its name begins with."""
    if tool.is_read_only:
        return 0
    if tool.says_destructive:
        return 2
    first = next(iter(_words(tool.bare_name)), "")
    return 2 if first in _DESTROYS else int(first in _ACTS)
