"""Requests that nobody wrote, for the teacher to judge: the reader learns most from how many it sees.

None has a tool that is known to serve it. What the teacher says of each is all that is learnt.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

SHARE = {"keywords": 0.30, "spans": 0.14, "glosses": 0.08, "spliced": 0.50}
"""How often each kind is drawn, against the written groups of `reader_data.py`."""

NAMED = 8
"""So many tools at most are named that a request is to be judged with."""

KEYWORDS = 2
"""So many requests in keywords are drawn for each tool."""

SPLICED = 220_000
"""So many requests are joined of parts of two others."""

WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+|[^\W\d_]+")
_IDLE = frozenset(
    "a an and any are as at be by can for from has have in into is it its of on or that the their "
    "this to used using was which will with you your".split()
)


class Drawn(NamedTuple):
    """A request."""

    query: str
    named: Sequence[int]
    """Tools that are to be judged with it, among others that the table finds."""
    group: str


def plain(query: str) -> str:
    """Return a request as it is compared with others."""
    return " ".join(query.lower().split()).rstrip(" .?!")


def drawn(raw: dict[str, Any], glosses: Sequence[str]) -> Iterator[Drawn]:
    """Yield requests, in an order and number that depend on what is given alone.

    None of them is kept out; of short ones that nobody wrote some would be by chance.

    Args:
        raw: What `reader_data.py` wrote.
        glosses: What words mean.
    """
    kept_out = frozenset(raw["kept_out"])
    return (one for one in _every(raw, glosses) if plain(one.query) not in kept_out)


def _every(raw: dict[str, Any], glosses: Sequence[str]) -> Iterator[Drawn]:
    draw = random.Random(5)
    by_source: dict[str, list[int]] = defaultdict(list)
    for i, texts in enumerate(raw["tools"]):
        by_source[texts[1]].append(i)
    for i, texts in enumerate(raw["tools"]):
        siblings = by_source[texts[1]] if texts[1] else []
        some = draw.sample(siblings, min(len(siblings), NAMED - 1))
        named = (i, *(j for j in some if j != i))
        for _ in range(KEYWORDS):
            yield Drawn(_keywords(raw["tools"], named, draw), named, "keywords")
        yield Drawn(_span(texts, draw), named, "spans")
    yield from _spliced(raw, draw)
    for gloss in glosses:
        words = gloss.split()
        count = draw.randint(4, 12) if draw.random() < 0.4 else 24
        yield Drawn(" ".join(words[:count]), (), "glosses")


def _keywords(tools: Sequence[Sequence[str]], named: Sequence[int], draw: random.Random) -> str:
    """Return words of a tool as a model asks for it, some with a word of one of its siblings."""
    name, source, lead, _, parameters = tools[named[0]]
    own = _words(name)
    kept = sorted(draw.sample(range(len(own)), min(len(own), draw.randint(1, 4))))
    found = [own[i] for i in kept]
    told = _words(lead)[:20]
    found += draw.sample(told, min(len(told), draw.randint(0, 3)))
    if len(named) > 1 and draw.random() < 0.35:
        other = _words(tools[draw.choice(named[1:])][0])
        if other and found:
            found[draw.choice((0, -1))] = other[draw.choice((0, -1))]
    if draw.random() < 0.25:
        found += _words(source)[:2]
    if draw.random() < 0.15:
        found += draw.sample(asked := _words(parameters), min(len(asked), 1))
    return " ".join(dict.fromkeys(found)) or name


def _span(texts: Sequence[str], draw: random.Random) -> str:
    """Return some words on end of what a tool says of itself."""
    name, _, lead, rest, _ = texts
    words = f"{lead} {rest}".split() or [name]
    start = 0 if draw.random() < 0.4 else draw.randrange(max(len(words) - 3, 1))
    return " ".join(words[start : start + draw.randint(3, 12)])


def _spliced(raw: dict[str, Any], draw: random.Random) -> Iterator[Drawn]:
    """Yield the beginning of one request with the end of another, or with a word of it."""
    groups: dict[str, list[int]] = defaultdict(list)
    servers: dict[str, list[int]] = defaultdict(list)
    for i, (group, gold) in enumerate(zip(raw["group"], raw["gold"], strict=True)):
        groups[group].append(i)
        if gold and (source := raw["tools"][gold[0]][1]):
            servers[source].append(i)
    names = [name for name in groups if name not in ("joined", "traject-bench", "apibench")]
    weights = [raw["share"][name] for name in names]
    for name in draw.choices(names, weights, k=min(SPLICED, 2 * len(raw["queries"]))):
        one = draw.choice(groups[name])
        gold = raw["gold"][one]
        near = servers.get(raw["tools"][gold[0]][1], ()) if gold else ()
        other = draw.choice(near) if near and draw.random() < 0.6 else draw.choice(groups[name])
        words, others = raw["queries"][one].split(), raw["queries"][other].split()
        if draw.random() < 0.4:
            words[draw.randrange(len(words))] = draw.choice(others)
        else:
            words = words[: draw.randint(1, len(words))] + others[-draw.randint(1, len(others)) :]
        named = [*gold[:2], *raw["gold"][other][:2], *raw["against"][one][: NAMED - 4]]
        yield Drawn(" ".join(words[:24]), list(dict.fromkeys(named)), "spliced")


def _words(text: str) -> list[str]:
    return [word for word in map(str.lower, WORD.findall(text)) if word not in _IDLE]
