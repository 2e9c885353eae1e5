"""Gather what the reader trains on: requests, the tools that serve them, and tools that do not.

    python training/reader_data.py

Writes .data/reader/data.json for `reader.py`. In it is no request that searches are judged by: none
of `real.jsonl`, of the families and tools that no table is taught, of those that `dataset.load`
keeps as dev, nor of a dev or test split, which are read for nothing else. Tools are written as the
package reads them.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import dataset
import written
from catalog import CORPORA, Tool, package_tool, rows
from dataset import Dataset
from problems import needs_of
from reader_drawn import plain
from synth import JOINTS

from toolfold.search._dense import texts_of

FILE = dataset.DATA / "reader" / "data.json"

SHARE = {
    "metatool": 0.10,
    "clinc150": 0.08,
    "hwu64": 0.06,
    "banking77": 0.03,
    "traject-bench": 0.02,
    "apibench": 0.02,
    "toolrl-rlla": 0.03,
    "synthetic": 0.22,
    "joined": 0.03,
    "written, people": 0.14,
    "written, asked": 0.16,
    "registry, people": 0.16,
    "registry, asked": 0.20,
    "near, people": 0.08,
    "near, asked": 0.08,
}
"""How often each group is drawn, against the others. Requests of several needs are few: they are not
read."""

AGAINST = 16
"""So many tools at most are named that a request is not for."""

VOICES = ("people", "asked")

_LEAD, _REST, _PARAMETERS = 400, 200, 300
"""So many characters are written of a text: neither the reader nor its teacher reads more."""


class KeptOut:
    """The requests that nothing is taught; many short ones were thought of more than once.

    Args:
        data: The training set, with its dev requests.
    """

    _JOINT = re.compile("|".join(map(re.escape, sorted(JOINTS, key=len, reverse=True))))

    def __init__(self, data: Dataset) -> None:
        self.queries = {plain(query) for query in _kept_out(data)}

    def __contains__(self, query: str) -> bool:
        """Whether a request is one of them, or is joined of several of which one is."""
        return any(plain(part) in self.queries for part in (query, *self._JOINT.split(query)))


@dataclass(slots=True)
class Gathered:
    """Requests and tools; everything of a request stands at the same place of each list."""

    tools: list[Tool]
    kept_out: KeptOut
    queries: list[str] = field(default_factory=list)
    gold: list[list[int]] = field(default_factory=list)
    """The tools that serve a request; none where no tool does."""
    against: list[list[int]] = field(default_factory=list)
    """Tools that are near, and do not serve it."""
    group: list[str] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    """How many requests of each group are kept out."""

    def add(self, query: str, gold: Sequence[int], against: Sequence[int], group: str) -> None:
        """Add a request, unless it is kept out."""
        if query in self.kept_out:
            self.left_out[group] += 1
            return
        self.queries.append(query)
        self.gold.append(list(gold))
        self.against.append(list(against))
        self.group.append(group)

    def value(self) -> dict[str, Any]:
        """Return everything as a JSON value."""
        return {
            "queries": self.queries,
            "tools": [_texts(tool) for tool in self.tools],
            "gold": self.gold,
            "group": self.group,
            "against": self.against,
            "share": SHARE,
            "kept_out": sorted(self.kept_out.queries),
        }


class Siblings:
    """The tools of each server: near to each other, and each for something else.

    Args:
        data: The training set.
        seed: Of which siblings are drawn.
    """

    def __init__(self, data: Dataset, seed: int = 0) -> None:
        self._data = data
        self._draw = random.Random(seed)
        self._members: dict[tuple[str, str], list[int]] = defaultdict(list)
        for i, (catalog, tool) in enumerate(zip(data.catalog, data.docs, strict=True)):
            if tool.server:
                self._members[catalog, tool.server].append(i)

    def of(self, gold: Sequence[int]) -> list[int]:
        """Return siblings of tools, but none that is a twin of one of them."""
        own = [self._data.docs[i] for i in gold]
        names = {tool.name for tool in own}
        texts = {tool.description for tool in own}
        servers = dict.fromkeys((self._data.catalog[i], self._data.docs[i].server) for i in gold)
        members = [i for server in servers for i in self._members.get(server, ())]
        found = [
            i
            for i in self._draw.sample(members, min(len(members), 2 * AGAINST))
            if self._data.docs[i].name not in names and self._data.docs[i].description not in texts
        ]
        return found[:AGAINST]


def gathered(synthetic: int) -> Gathered:
    """Return everything that the reader trains on.

    Args:
        synthetic: How many requests each tool gets by rule.
    """
    data = dataset.load(fold=False, synthetic=synthetic, ours=True)
    # The glosses are no tools; they come last.
    tools = [tool for tool, c in zip(data.docs, data.catalog, strict=True) if c != "gloss"]
    found = Gathered(tools, KeptOut(data))
    siblings = Siblings(data)
    for query, gold, source in zip(data.queries, data.gold, data.source, strict=True):
        if source != "gloss":
            found.add(query, gold, siblings.of(gold), source)
    _add_near_misses(found, random.Random(1))
    return found


def _kept_out(data: Dataset) -> Iterator[str]:
    for _, query, _ in data.dev:
        yield query
    for members in written.real().values():
        for one in members:
            for said in (one.served, one.unserved):
                for voice in VOICES:
                    yield said[voice]
                    yield from needs_of(said[voice], voice)
    taught = {member.tool for member in written.taught(is_fold=False)}
    for family in written.families("").values():
        for member in family:
            if member.tool not in taught:
                yield from (*member.requests, *member.asked)
    for path in sorted(CORPORA.glob("*/*.jsonl")):
        for row in rows(path):
            if "query" in row and not row["split"].startswith("train"):
                yield from (row["query"], *needs_of(row["query"], "asked"))


def _add_near_misses(found: Gathered, draw: random.Random) -> None:
    """Add the tools of each domain, with what each serves and with what none of them does."""
    for _, members in sorted(written.near_misses().items()):
        first = len(found.tools)
        found.tools += [member.tool for member in members]
        places = range(first, len(found.tools))
        for i, member in zip(places, members, strict=True):
            for voice in VOICES:
                others = [j for j in places if j != i]
                against = draw.sample(others, min(len(others), AGAINST))
                found.add(member.served[voice], (i,), against, f"near, {voice}")
                for said in member.unserved:
                    few = draw.sample(others, min(len(others), AGAINST - 1))
                    found.add(said[voice], (), (i, *few), f"near, {voice}")


def _texts(tool: Tool) -> list[str]:
    """Return the texts of a tool that are read: name, source, lead, rest and parameters."""
    name, source, lead, rest, parameters, _ = texts_of(package_tool(tool))
    return [name, source, lead[:_LEAD], rest[:_REST], parameters[:_PARAMETERS]]


def main() -> None:
    """Write the file and print how many requests each group has."""
    if not CORPORA.is_dir():
        raise SystemExit(f"{CORPORA} is not there: its dev and test splits are to be kept out")
    found = gathered(synthetic=2)
    FILE.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(found.value(), ensure_ascii=False, separators=(",", ":"))
    FILE.write_text(text, encoding="utf-8")
    counts = Counter(found.group)
    served = Counter(g for g, gold in zip(found.group, found.gold, strict=True) if gold)
    against = Counter(g for g, own in zip(found.group, found.against, strict=True) if own)
    print(f"{'group':18s}  share requests   served  against left out")
    for name, share in SHARE.items():
        row = (counts[name], served[name], against[name], found.left_out[name])
        print(f"{name:18s} {share:6.2f}" + "".join(f" {count:8d}" for count in row))
    print(f"{len(found.queries)} requests, {len(found.tools)} tools, {len(text):,} characters")


if __name__ == "__main__":
    main()
