"""Search problems for fitting the scorer and the floor: requests a model has not seen, at every size.

A problem is a catalog with requests. Each is made twice: with the tools that serve its
requests, and without them and whatever is near them, so that what is served and what is not
differ in nothing else: not in words, not in size, not in whose tools stand around.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import written
from catalog import CORPORA, Tool, corpus, rows
from dataset import DATA, HELD, Dataset, bucket, held_tool
from synth import joined
from text import words

SIZES = (1, 2, 4, 8, 15, 40, 120, 400, 1500, 5000)
"""How many tools a catalog has."""

REQUESTS = 24
"""Requests of each source at each size."""

TOGETHER = {1: 1, 2: 2, 4: 3, 8: 5, 15: 10}
"""How many requests are asked of one small catalog; of larger ones, all."""

NEAR = (0.4, 0.5, 0.6)
"""A tool that is nearer than this to one that serves a request is taken for one that may."""

MISSES = ((0.2, 0.35), (0.3, 0.45))
"""How near a tool is to one that serves a request where it is a near miss."""

NEIGHBOURS = 5_000
"""Of so many tools the near misses are taken."""

TOOLS_AROUND, SERVER_AT_MOST = 2_000, 150
"""So many tools of each vendor's catalog stand around, of servers that have no more than these."""

VENDORS = ("aws", "google", "toucan-mcp", "toolsdk-registry", "docker-mcp-registry")
FAMILY_SIZES = (0, 0, 120, 400, 1500, 5000)
"""How many tools stand in the catalogs of a family; 0 are its own alone."""

REAL_SIZES = (0, 0, 40, 120, 400, 1500, 5000)
"""The same for a real server."""

INFRASTRUCTURE = ("aws",)
"""Catalogs that serve nobody's everyday requests."""

_FILLERS = frozenset(
    "a an and any are as at be by for from get gets given has have if in into is it its of on or "
    "return returns specific specified that the their this to used using which with your".split()
)


class Problem(NamedTuple):
    """A catalog with requests; `group` names the source, for leaving one out."""

    group: str
    tools: list[Tool]
    queries: list[str]
    gold: list[list[int]]
    source: str = ""
    """Who wrote it, where a group has several sources; else the group's name."""


class Asked(NamedTuple):
    """A request, and the tools that serve it, as numbers in the pool."""

    query: str
    gold: tuple[int, ...]


class Pool:
    """All tools there are, whose they are, and how near they are to each other.

    Args:
        data: The tools of the training set.
        embed: Returns the unit vectors of tools.
        is_fold: Whether the model has not seen the held-out sources; else only requests that
            no model is trained on count as unseen.
    """

    def __init__(
        self, data: Dataset, embed: Callable[[Sequence[Tool]], np.ndarray], is_fold: bool
    ) -> None:
        self.tools = [t for t, c in zip(data.docs, data.catalog, strict=True) if c != "gloss"]
        self.catalog = [c for c in data.catalog if c != "gloss"]
        self.requests: dict[str, list[Asked]] = defaultdict(list)
        self._embed = embed
        self._vectors: dict[int, np.ndarray] = {}
        self._pairs(is_fold)
        self._written(is_fold)
        self._seal()
        self.servers: dict[str, list[list[int]]] = {}
        for catalog in (*VENDORS, "toolbench"):
            by_server: dict[str, list[int]] = defaultdict(list)
            for i, c in enumerate(self.catalog):
                if c == catalog:
                    by_server[self.tools[i].server].append(i)
            self.servers[catalog] = self._some(list(by_server.values()))
        self._vendors()

    @staticmethod
    def _some(servers: list[list[int]]) -> list[list[int]]:
        """Return some of the servers: each of their tools is read and embedded, which takes time."""
        random.Random(77).shuffle(servers)
        kept: list[list[int]] = []
        for server in servers:
            if len(server) <= SERVER_AT_MOST and sum(map(len, kept)) < TOOLS_AROUND:
                kept.append(server)
        return kept

    def _pairs(self, is_fold: bool) -> None:
        for row in rows(DATA / "pairs.jsonl.gz"):
            source, gold = row["source"], tuple(row["gold"])
            held = source in HELD or (source == "metatool" and held_tool(self.tools[gold[0]].name))
            if held if is_fold else bucket(row["query"]) == 0:
                self.requests[source].append(Asked(row["query"], gold))

    def _written(self, is_fold: bool) -> None:
        tools, queries, owner = written.written()
        first = len(self.tools)
        self.tools += tools
        self.catalog += ["written"] * len(tools)
        kept = (1, 2) if is_fold else (0,)
        for query, i in zip(queries, owner, strict=True):
            if written.part(tools[i]) in kept:
                short = len(query.split()) <= 5
                group = "written-asked" if short else "written"
                self.requests[group].append(Asked(query, (first + i,)))
        self._own = {"written-asked": "written"}

    def _seal(self) -> None:
        tools, asked = corpus("seal-tools", ("dev",))
        first = len(self.tools)
        self.tools += tools
        self.catalog += ["seal-tools"] * len(tools)
        for request in asked:
            if bucket(request.query) % 2 == 0 and request.gold:
                gold = tuple(first + g for g in request.gold)
                self.requests["seal-tools"].append(Asked(request.query, gold))

    def _vendors(self) -> None:
        """Ask for vendors' tools as a model would, in a few of their own words."""
        draw = random.Random(4)
        for catalog in VENDORS[:4]:
            members = [m for m in self.servers[catalog] if len(m) >= 8]
            for server in draw.sample(members, min(len(members), 250)):
                for i in draw.sample(server, 2):
                    if query := in_few_words(self.tools[i], draw):
                        self.requests[f"{catalog}-asked"].append(Asked(query, (i,)))
        self._own |= {f"{catalog}-asked": catalog for catalog in VENDORS[:4]}

    def vectors(self, places: Sequence[int]) -> np.ndarray:
        """Return the vectors of tools, each made once."""
        missing = [i for i in places if i not in self._vectors]
        if missing:
            made = self._embed([self.tools[i] for i in missing])
            self._vectors.update(zip(missing, made, strict=True))
        return np.stack([self._vectors[i] for i in places])

    def own(self, group: str) -> list[int]:
        """Return the tools of a group's own catalog."""
        catalog = self._own.get(group, group)
        return [i for i, c in enumerate(self.catalog) if c == catalog]

    def problems(self, seed: int = 5) -> Iterator[tuple[Problem, Problem]]:
        """Yield each problem with the tools that serve its requests, and without them."""
        for group, asked in sorted(self.requests.items()):
            draw = random.Random(f"{seed} {group}")
            own = self.own(group)
            single = [a for a in asked if len(a.gold) == 1 and len(a.query) < 200]
            for size in SIZES:
                together = TOGETHER.get(size, REQUESTS)
                for _ in range(REQUESTS // together):
                    chosen = draw.sample(asked, min(together, len(asked)))
                    if (
                        "asked" not in group
                        and size >= 15
                        and len(single) > 20
                        and draw.random() < 0.25
                    ):
                        chosen = [several(single, draw) for _ in chosen]
                    yield self._pair(group, chosen, size, own, draw)

    def _pair(
        self, group: str, asked: Sequence[Asked], size: int, own: list[int], draw: random.Random
    ) -> tuple[Problem, Problem]:
        gold = list(dict.fromkeys(g for a in asked for g in a.gold))
        others = self._others(size, own, gold, draw)
        kept = [*gold, *others[: max(size - len(gold), 0)]]
        limit = draw.choice(NEAR)
        gold_vectors = self.vectors(gold)
        near = (self.vectors(others) @ gold_vectors.T).max(1) if others else np.zeros(0)
        far = [i for i, n in zip(others, near.tolist(), strict=True) if n < limit][:size]
        is_named = draw.random() < 0.5 or group.endswith("-asked") or group == "written"
        return (
            self._problem(group, kept, asked, is_named, draw),
            self._problem(f"{group}, none", far, [Asked(a.query, ()) for a in asked], is_named, draw),
        )  # fmt: skip

    def _others(
        self, size: int, own: list[int], gold: Sequence[int], draw: random.Random
    ) -> list[int]:
        """Return tools to stand around: of the same source, or whole servers of others."""
        wanted = 2 * size + 20
        found: list[int] = []
        if draw.random() < 0.5:
            found += draw.sample(own, min(len(own), wanted))
        catalog = draw.choice([*VENDORS, "toolbench"])
        servers = self.servers[catalog]
        while len(found) < wanted:
            found += draw.choice(servers)
            if draw.random() < 0.02:
                servers = self.servers[draw.choice([*VENDORS, "toolbench"])]
        held = set(gold)
        return [i for i in dict.fromkeys(found) if i not in held][:wanted]

    def _problem(
        self, group: str, places: Sequence[int], asked: Sequence[Asked], is_named: bool,
        draw: random.Random,
    ) -> Problem:  # fmt: skip
        order = draw.sample(list(places), len(places))
        place = {old: new for new, old in enumerate(order)}
        tools = [self.tools[i] for i in order]
        if not is_named or not all(t.server for t in tools):
            # Where some have no source, none has: a source must not tell who serves.
            tools = [Tool(t.name, t.description, t.parameters) for t in tools]
        return Problem(
            group, tools, [a.query for a in asked], [[place[g] for g in a.gold] for a in asked]
        )

    def near_misses(self, seed: int = 7) -> Iterator[tuple[Problem, Problem]]:
        """Yield small catalogs of tools that are near to what serves, and do something else."""
        sample = random.Random(seed).sample(range(len(self.tools)), NEIGHBOURS)
        around = self.vectors(sample)
        for group, asked in sorted(self.requests.items()):
            draw = random.Random(f"{seed} {group}")
            for _ in range(2 * REQUESTS):
                one = draw.choice(asked)
                near = (around @ self.vectors(one.gold).T).max(1)
                low, high = draw.choice(MISSES)
                others = [sample[i] for i in np.flatnonzero((near > low) & (near < high))]
                chosen = draw.sample(others, min(len(others), draw.choice((1, 1, 2, 3, 5))))
                if not chosen:
                    continue
                served = [*one.gold, *chosen[1:]]
                yield (
                    self._problem(f"{group}, near", served, [one], False, draw),
                    self._problem(f"{group}, near, none", chosen, [Asked(one.query, ())], False, draw),
                )  # fmt: skip

    def everyday(self, seed: int = 9) -> Iterator[Problem]:
        """Yield vendors' catalogs of every size with requests that no vendor serves."""
        draw = random.Random(seed)
        asked = [str(text) for text in rows(DATA / "out_of_scope.jsonl.gz")]
        kinds = {"small talk": asked}
        for row in rows(DATA / "pairs.jsonl.gz"):
            if row["source"] in ("clinc150", "hwu64", "banking77") and bucket(row["query"]) == 0:
                kinds.setdefault(f"{row['source']} of vendors", []).append(row["query"])
        for kind, queries in kinds.items():
            for size in SIZES:
                for _ in range(2 if size >= 30 else 6):
                    count = REQUESTS // (2 if size >= 30 else 6)
                    chosen = draw.sample(queries, count)
                    found: list[int] = []
                    while len(found) < size:
                        found += draw.choice(self.servers[draw.choice(INFRASTRUCTURE)])
                    asking = [Asked(q, ()) for q in chosen]
                    yield self._problem(f"{kind}, none", found[:size], asking, True, draw)


class Families:
    """Problems of tools that are siblings, and of requests that were written to be unserved.

    Args:
        pool: The tools to stand around, and their vectors.
        embed: Returns the unit vectors of tools.
        seed: Of what is drawn.
    """

    def __init__(
        self, pool: Pool, embed: Callable[[Sequence[Tool]], np.ndarray], seed: int = 11
    ) -> None:
        self._pool = pool
        self._embed = embed
        self._draw = random.Random(seed)
        self._kinds = [pool.servers[c] for c in (*VENDORS, "toolbench")]
        self._families = written.unseen()
        self._all = [m.tool for own in self._families.values() for m in own]

    def problems(self) -> Iterator[Problem]:
        """Yield every kind of problem of every family."""
        for key, members in sorted(self._families.items()):
            for voice in ("people", "asked"):
                yield from self._served(key[0], members, voice)
                yield from self._far(f"family, {voice}", key[0], members, voice, 10)
                chosen = self._draw.sample(members, min(11, len(members)))
                others = [m.tool for m in members]
                for one in chosen:
                    yield from self._few(f"family, {voice}", key[0], one, others, voice)
        yield from self._several()
        yield from self._older()
        yield from self._unserved()
        yield from self._near_misses()
        yield from self._real_servers()

    def _served(
        self, source: str, members: Sequence[written.Member], voice: str
    ) -> Iterator[Problem]:
        tools = [m.tool for m in members]
        pairs = [(q, m.tool) for m in members for q in said(m, voice)]
        group = f"family, {voice}"
        for size in FAMILY_SIZES:
            chosen = self._draw.sample(pairs, min(18, len(pairs)))
            wanted = max(size - len(tools), 0)
            if size and size <= 400 and self._draw.random() < 0.5:
                around = self._draw.sample(self._all, min(len(self._all), wanted))
            else:
                around = self._vendors(wanted)
            is_named = self._draw.random() < 0.75
            yield self._problem(group, [*tools, *around], chosen, source, is_named)
        chosen = self._draw.sample(pairs, min(35, len(pairs)))
        for i in range(0, len(chosen), 5):
            part = chosen[i : i + 5]
            few = self._draw.sample(tools, min(self._draw.choice((1, 3, 6, 12)), len(tools)))
            yield self._problem(group, [*(t for _, t in part), *few], part, source, True)

    def _far(
        self, group: str, source: str, members: Sequence[written.Member], voice: str, count: int
    ) -> Iterator[Problem]:
        """Yield the requests of a family with tools of others that are not near to its own."""
        for size in (1, 4, 15, 40, 120, 400, 1500, 5000):
            chosen = self._draw.sample(members, min(count, len(members)))
            around = self._vendors(2 * size + 20)
            near = (self._embed(around) @ self._embed([m.tool for m in chosen]).T).max(1)
            limit = self._draw.choice(NEAR)
            far = [t for t, n in zip(around, near.tolist(), strict=True) if n < limit][:size]
            asked = [(self._draw.choice(said(m, voice)), None) for m in chosen]
            if far:
                yield self._problem(f"{group}, none", far, asked, source, True)

    def _few(
        self, group: str, source: str, one: written.Member, others: Sequence[Tool], voice: str
    ) -> Iterator[Problem]:
        """Yield a request with a few tools that do something else, and with its own among them."""
        rest = [t for t in others if t != one.tool]
        few = self._draw.sample(rest, min(len(rest), self._draw.choice((1, 1, 2, 3, 5))))
        query = self._draw.choice(said(one, voice))
        if few:
            yield self._problem(f"{group}, near, none", few, [(query, None)], source, False)
            served = [one.tool, *few[1:]]
            yield self._problem(f"{group}, near", served, [(query, one.tool)], source, False)

    def _older(self) -> Iterator[Problem]:
        """Yield requests whose tools a table has seen, where they are not among the tools."""
        every = written.families("")
        for file in sorted({file for file, _ in every if file < "k"}):
            members = [m for key, own in every.items() if key[0] == file for m in own]
            vectors = self._embed([m.tool for m in members])
            for voice in ("people", "asked"):
                group = f"older, {voice}"
                yield from self._far(group, file, members, voice, 10)
                for i in self._draw.sample(range(len(members)), min(36, len(members))):
                    near = vectors @ vectors[i]
                    low, high = self._draw.choice(((0.1, 0.3), (0.2, 0.45), (0.3, 0.5)))
                    around = np.flatnonzero((near > low) & (near < high)).tolist()
                    others = [members[j].tool for j in around]
                    yield from self._few(group, file, members[i], others, voice)

    def _several(self) -> Iterator[Problem]:
        by_server = {server: own for (_, server), own in written.families("").items()}
        asked: dict[str, list[tuple[str, list[Tool]]]] = defaultdict(list)
        for server, request, names in written.several():
            own = {m.tool.name: m.tool for m in by_server.get(server, ())}
            if all(name in own for name in names):
                asked[server].append((request, [own[name] for name in names]))
        for server, pairs in sorted(asked.items()):
            tools = [m.tool for m in by_server[server]]
            for size in (0, 300, 1500):
                catalog = self._catalog([*tools, *self._vendors(size)])
                place = {tool: i for i, tool in enumerate(catalog)}
                gold = [[place[t] for t in golds] for _, golds in pairs]
                yield Problem("several", catalog, [q for q, _ in pairs], gold, server)

    def _unserved(self) -> Iterator[Problem]:
        """Yield catalogs of every size with requests that were written to be served by none."""
        technical = [self._pool.servers[c] for c in ("aws", "google", "toolsdk-registry")]
        for (kind, voice), queries in sorted(written.unserved().items()):
            for size in SIZES:
                for turn in range(6 if size < 40 else 3):
                    asked = self._draw.sample(queries, 6 if size < 40 else 14)
                    if size <= 400 and turn % 2:
                        own = self._draw.choice(list(self._families.values()))
                        around = [m.tool for m in own]
                        others = min(size, len(self._all)) if len(own) < size else 0
                        around += self._draw.sample(self._all, others)
                        around = self._draw.sample(around, min(size, len(around)))
                    else:
                        around = self._vendors(size, self._draw.choice(technical))
                    yield self._problem(
                        f"unserved {kind}, {voice}, none",
                        around,
                        [(q, None) for q in asked],
                        kind,
                        True,
                    )

    def _near_misses(self) -> Iterator[Problem]:
        """Yield a tool or a few of one domain, with what one serves and with what none does."""
        for domain, members in sorted(written.near_misses().items()):
            for one in members:
                others = [m.tool for m in members if m is not one]
                for voice in ("people", "asked"):
                    for count in (0, self._draw.choice((1, 2, 3))):
                        tools = [one.tool, *self._draw.sample(others, min(count, len(others)))]
                        served = [(one.served[voice], one.tool)]
                        missed = [(miss[voice], None) for miss in one.unserved]
                        group = f"domain, {voice}, near"
                        yield self._problem(group, tools, served, domain, False)
                        yield self._problem(f"{group}, none", tools, missed, domain, False)

    def _real_servers(self) -> Iterator[Problem]:
        """Yield real servers with what they serve, alone and among others; and others with it.

        What a model asks is asked need by need, as the search does.
        """
        tools: dict[tuple[str, str], dict[str, Tool]] = defaultdict(dict)
        for tool, catalog in zip(self._pool.tools, self._pool.catalog, strict=True):
            tools[catalog, tool.server][tool.name] = tool
        for key, members in sorted(written.real().items()):
            own = tools[key]
            for voice in ("people", "asked"):
                served = [
                    (need, [own[name] for name in one.tools])
                    for one in members
                    for need in needs_of(one.served[voice], voice)
                ]
                group = f"real, {voice}"
                for size in self._draw.sample(REAL_SIZES, 3):
                    around = self._vendors(max(size - len(own), 0))
                    catalog = self._catalog([*own.values(), *around])
                    place = {tool: i for i, tool in enumerate(catalog)}
                    gold = [[place[tool] for tool in golds] for _, golds in served]
                    yield Problem(group, catalog, [q for q, _ in served], gold, key[1])
                golds = self._embed([tool for _, golds in served for tool in golds])
                for size in self._draw.sample(SIZES[1:], 3):
                    around = [t for t in self._vendors(2 * size + 20) if t.server != key[1]]
                    near = (self._embed(around) @ golds.T).max(1)
                    limit = self._draw.choice(NEAR)
                    far = [t for t, n in zip(around, near.tolist(), strict=True) if n < limit]
                    asked = [(q, None) for q, _ in served]
                    if far:
                        yield self._problem(f"{group}, none", far[:size], asked, key[1], True)
                missed = [
                    (need, None)
                    for one in members
                    for need in needs_of(one.unserved[voice], voice)[:1]
                ]
                yield self._problem(
                    f"{group}, near, none", list(own.values()), missed, key[1], True
                )

    def _vendors(self, count: int, servers: list[list[int]] | None = None) -> list[Tool]:
        """Return some tools of vendors, whole servers of them."""
        servers = servers or self._draw.choice(self._kinds)
        found: list[int] = []
        while len(found) < count:
            found += self._draw.choice(servers)
            if self._draw.random() < 0.02:
                servers = self._draw.choice(self._kinds)
        return [self._pool.tools[i] for i in found[:count]]

    def _catalog(self, tools: Sequence[Tool]) -> list[Tool]:
        found = list(dict.fromkeys(tools))
        self._draw.shuffle(found)
        return found

    def _problem(
        self, group: str, tools: Sequence[Tool], asked: Sequence[tuple[str, Tool | None]],
        source: str, is_named: bool,
    ) -> Problem:  # fmt: skip
        catalog = self._catalog(tools)
        place = {tool: i for i, tool in enumerate(catalog)}
        shown = (
            catalog if is_named else [Tool(t.name, t.description, t.parameters) for t in catalog]
        )
        gold = [[place[tool]] if tool else [] for _, tool in asked]
        return Problem(group, shown, [q for q, _ in asked], gold, source)


def needs_of(said: str, voice: str) -> list[str]:
    """Return the needs of a request, each of which is searched for."""
    return [said] if voice == "people" else [need.strip() for need in said.split("|")]


def said(member: written.Member, voice: str) -> tuple[str, ...]:
    """Return what is asked of a tool, in people's words or as a model asks."""
    return member.requests if voice == "people" else member.asked


def several(found: Sequence[Asked], draw: random.Random) -> Asked:
    """Make a request with several needs out of single ones."""
    chosen = draw.sample(found, draw.choice((2, 2, 3)))
    gold = tuple(dict.fromkeys(g for a in chosen for g in a.gold))
    return Asked(joined([a.query for a in chosen], draw), gold)


def in_few_words(tool: Tool, draw: random.Random) -> str:
    """Return what a model might send to a search tool: a few words of the tool's, in any order."""
    name = [w for w in words(tool.name) if w.isalpha()]
    said = [w for w in words(tool.description)[:16] if w.isalpha() and w not in _FILLERS]
    kind = draw.random()
    if kind < 0.35:
        chosen = draw.sample(name, min(len(name), 4))
    elif kind < 0.7:
        chosen = list(dict.fromkeys(said))[: draw.choice((3, 4, 5))]
    else:
        both = list(dict.fromkeys([*draw.sample(name, min(len(name), 2)), *said[:4]]))
        chosen = both[: draw.choice((3, 4, 5))]
    if tool.server and draw.random() < 0.4:
        chosen = [w for w in words(tool.server) if w.isalpha()][:2] + chosen
    return " ".join(dict.fromkeys(chosen)) if len(set(chosen)) > 1 else ""


def dev(is_fold: bool) -> Iterator[Problem]:
    """Yield problems to look at, of sources that are fitted on, but of other requests."""
    tools, asked = corpus("seal-tools", ("dev",))
    kept = [r for r in asked if bucket(r.query) % 2 == 1]
    yield Problem("seal-tools", tools, [r.query for r in kept], [list(r.gold) for r in kept])
    if is_fold:
        tools, queries, owner = written.written()
        own = [i for i in range(len(queries)) if written.part(tools[owner[i]]) == 0]
        yield Problem("written", tools, [queries[i] for i in own], [[owner[i]] for i in own])


__all__ = ["CORPORA", "Families", "Pool", "Problem", "dev"]
