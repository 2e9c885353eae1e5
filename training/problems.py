"""Search problems for fitting the scorer and the floor: requests a model has not seen, in catalogs of many sizes."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Container, Sequence
from typing import NamedTuple

import refine
from catalog import CORPORA, Tool, corpus, rows
from dataset import DATA, HELD, Dataset, bucket, held_tool
from synth import joined


class Problem(NamedTuple):
    """A catalog with requests; `group` names the source, for leaving one out."""

    group: str
    tools: list[Tool]
    queries: list[str]
    gold: list[list[int]]


def together(
    found: list[tuple[str, list[int]]], count: int, random_: random.Random
) -> list[tuple[str, list[int]]]:
    """Make requests with several needs out of single ones."""
    made = []
    for _ in range(count):
        chosen = random_.sample(found, random_.choice((2, 2, 3)))
        gold = sorted({g for _, golds in chosen for g in golds})
        made.append((joined([q for q, _ in chosen], random_), gold))
    return made


def held_out(data: Dataset, seed: int = 5, each: int = 350) -> list[Problem]:
    """Build catalogs around the sources that the fold models never saw, and seal-tools dev's even half."""
    random_ = random.Random(seed)
    others = [
        i
        for i, c in enumerate(data.catalog)
        if c in ("toucan-mcp", "toolbench", "toolsdk-registry", "aws", "google")
    ]
    by_source: dict[str, list[tuple[str, list[int]]]] = defaultdict(list)
    for row in rows(DATA / "pairs.jsonl.gz"):
        if row["source"] in HELD or (
            row["source"] == "metatool" and held_tool(data.docs[row["gold"][0]].name)
        ):
            by_source[row["source"]].append((row["query"], row["gold"]))
    found = []
    for source, asked in sorted(by_source.items()):
        own = [i for i, c in enumerate(data.catalog) if c == source]
        for distractors in (0, 400, 3000):
            chosen = own + random_.sample(others, distractors)
            random_.shuffle(chosen)
            place = {d: i for i, d in enumerate(chosen)}
            sample = random_.sample(asked, min(each, len(asked)))
            if source in ("hwu64", "metatool", "toolrl-rlla", "banking77"):
                single = [a for a in asked if len(a[1]) == 1 and len(a[0]) < 200]
                sample = sample[: each * 3 // 4] + together(single, each // 3, random_)
            found.append(
                Problem(
                    source,
                    [data.docs[i] for i in chosen],
                    [q for q, _ in sample],
                    [[place[g] for g in gs] for _, gs in sample],
                )
            )
    found.append(seal(0))
    for distractors in (0, 400, 3000):
        more = [data.docs[i] for i in random_.sample(others, distractors)]
        found.append(written(range(1, 3), more))
    return found + small(range(1, 3), served=True)


def written(buckets: Container[int], distractors: Sequence[Tool] = ()) -> Problem:
    """Return the requests of written tools in some buckets, asked of all written tools and more."""
    tools, queries, owner = refine.written()
    kept = [i for i in range(len(queries)) if refine.part(tools[owner[i]]) in buckets]
    catalog = [*tools, *distractors]
    order = random.Random(len(catalog)).sample(range(len(catalog)), len(catalog))
    place = {old: new for new, old in enumerate(order)}
    return Problem(
        "written",
        [catalog[i] for i in order],
        [queries[i] for i in kept],
        [[place[owner[i]]] for i in kept],
    )


def small(
    buckets: Container[int], served: bool, seed: int = 3, catalogs: int = 120
) -> list[Problem]:
    """Ask catalogs of 3 to 300 written tools what they serve, or what only others would.

    Requests of the same server's tools are never asked as strangers: whether one of its other
    tools would do is a matter of opinion.
    """
    tools, queries, owner = refine.written()
    requests: dict[int, list[str]] = defaultdict(list)
    for query, i in zip(queries, owner, strict=True):
        requests[i].append(query)
    pool = [i for i, tool in enumerate(tools) if refine.part(tool) in buckets]
    random_ = random.Random(seed + served)
    found = []
    for _ in range(catalogs):
        chosen = random_.sample(range(len(tools)), random_.choice((3, 6, 12, 25, 60, 150, 300)))
        if served:
            chosen = list(dict.fromkeys([*random_.sample(pool, 3), *chosen]))
            random_.shuffle(chosen)
            asked = [i for i in chosen if i in set(pool)]
        else:
            servers = {tools[i].server for i in chosen}
            asked = random_.sample([i for i in pool if tools[i].server not in servers], 8)
        place = {t: i for i, t in enumerate(chosen)}
        pairs = [(random_.choice(requests[i]), [place[i]] if served else []) for i in asked]
        group = "small" if served else "small-none"
        found.append(
            Problem(group, [tools[i] for i in chosen], [q for q, _ in pairs], [g for _, g in pairs])
        )
    return found


def seal(half: int) -> Problem:
    """Return one half of seal-tools dev."""
    tools, asked = corpus("seal-tools", ("dev",))
    kept = [r for r in asked if bucket(r.query) % 2 == half]
    return Problem("seal-tools", tools, [r.query for r in kept], [list(r.gold) for r in kept])


def strange(data: Dataset, seed: int = 9, each: int = 60) -> list[Problem]:
    """Ask single servers' catalogs what they do not serve, and what they do (queries of gold tools are synthetic)."""
    random_ = random.Random(seed)
    servers: dict[tuple[str, str], list[int]] = defaultdict(list)
    for i, c in enumerate(data.catalog):
        if c in ("toucan-mcp", "toolsdk-registry", "aws", "google"):
            servers[c, data.docs[i].server].append(i)
    big = [m for m in servers.values() if 15 <= len(m) <= 200]
    asked = [
        row["query"]
        for row in rows(DATA / "pairs.jsonl.gz")
        if row["source"] in ("clinc150", "hwu64", "banking77")
    ]
    asked += list(rows_text("out_of_scope"))
    return [
        Problem(
            "strange",
            [data.docs[i] for i in members],
            random_.sample(asked, each),
            [[] for _ in range(each)],
        )
        for members in random_.sample(big, 40)
    ]


def rows_text(name: str) -> list[str]:
    """Read a file of JSON strings."""
    return [str(r) for r in rows(DATA / f"{name}.jsonl.gz")]


def github(half: int) -> Problem:
    """Return one half of github-oos, which no tool serves."""
    tools, asked = corpus("github-oos", ("dev",))
    kept = [r.query for r in asked if bucket(r.query) % 2 == half]
    return Problem("github-oos", tools, kept, [[] for _ in kept])


__all__ = ["CORPORA", "Problem", "github", "held_out", "seal", "strange"]
