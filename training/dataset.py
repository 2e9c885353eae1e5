"""What the models train on: documents (tools and glosses), queries, positives and sampling weights."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import written
from catalog import Tool, bucket, rows, tool_of
from synth import first_senses, joined, requests
from text import words

DATA = Path(__file__).parent / ".data"
HELD = ("traject-bench", "toolrl-rlla", "apibench", "hwu64", "banking77")
"""Sources that the `fold` models never see: fusion, rerank and floor are fitted on them."""

SHARE = {
    "metatool": 0.14,
    "clinc150": 0.10,
    "hwu64": 0.08,
    "banking77": 0.03,
    "traject-bench": 0.06,
    "apibench": 0.02,
    "toolrl-rlla": 0.03,
    "synthetic": 0.34,
    "gloss": 0.12,
    "joined": 0.16,
    "written, people": 0.10,
    "written, asked": 0.08,
    "registry, people": 0.14,
    "registry, asked": 0.12,
}


@dataclass(slots=True)
class Dataset:
    """Documents and queries; `gold[i]` lists the documents that serve query i."""

    docs: list[Tool] = field(default_factory=list)
    catalog: list[str] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)
    gold: list[list[int]] = field(default_factory=list)
    source: list[str] = field(default_factory=list)
    dev: list[tuple[str, str, list[int]]] = field(default_factory=list)
    """Requests kept out of training: source, query, gold."""

    def weights(self) -> np.ndarray:
        """Give each query its share of the sampling."""
        names, inverse, counts = np.unique(self.source, return_inverse=True, return_counts=True)
        share = np.array([SHARE[n] for n in names]) / counts
        weight = share[inverse]
        return weight / weight.sum()


def held_tool(name: str) -> bool:
    """Tell whether a metatool tool is kept from the `fold` models."""
    return bucket("tool " + name) % 2 == 0


def load(fold: bool, synthetic: int = 2, seed: int = 0, ours: bool = False) -> Dataset:
    """Assemble the training set.

    Args:
        fold: Without the held-out sources.
        synthetic: How many requests each tool gets by rule.
        seed: Of what is drawn.
        ours: With the requests that we wrote.
    """
    random_ = random.Random(seed)
    data = Dataset()
    for row in rows(DATA / "tools.jsonl.gz"):
        data.catalog.append(row[0])
        data.docs.append(Tool(row[1], row[2], tuple((p[0], p[1]) for p in row[3]), row[4]))
    if ours:
        _add_ours(data, fold)
    tools = len(data.docs)
    for row in rows(DATA / "pairs.jsonl.gz"):
        source, query, gold = row["source"], row["query"], row["gold"]
        held = source in HELD or (source == "metatool" and held_tool(data.docs[gold[0]].name))
        if bucket(query) == 0 or (fold and held):
            data.dev.append((source, query, gold))
        else:
            data.queries.append(query)
            data.gold.append(gold)
            data.source.append(source)
    glosses = list(rows(DATA / "glosses.jsonl.gz"))
    synonyms = first_senses(glosses)
    for i in range(tools):
        if fold and (
            data.catalog[i] in HELD
            or (data.catalog[i] == "metatool" and held_tool(data.docs[i].name))
        ):
            continue
        for query in requests(data.docs[i], synonyms, random_, synthetic):
            data.queries.append(query)
            data.gold.append([i])
            data.source.append("synthetic")
    single = [i for i, g in enumerate(data.gold) if len(g) == 1 and len(data.queries[i]) < 200]
    chance = data.weights()[single]
    picks = random_.choices(single, weights=chance.tolist(), k=50_000 * 3) if synthetic else []
    for start in range(0, len(picks), 3):
        chosen = picks[start : start + random_.choice((2, 2, 3))]
        data.queries.append(joined([data.queries[i] for i in chosen], random_))
        data.gold.append(sorted({data.gold[i][0] for i in chosen}))
        data.source.append("joined")
    for lemmas, definition, example in glosses:
        first = lemmas.split(", ")[0]
        flip = random_.random() < 0.5
        data.docs.append(Tool(lemmas, "") if flip else Tool("", definition))
        data.catalog.append("gloss")
        data.queries.append(
            definition if flip else (example if example and random_.random() < 0.3 else first)
        )
        data.gold.append([len(data.docs) - 1])
        data.source.append("gloss")
    return data


def _add_ours(data: Dataset, fold: bool) -> None:
    """Add what we wrote: requests for tools of registries and vendors, and for tools of our own."""
    place = {
        (catalog, tool.server, tool.name): i
        for i, (catalog, tool) in enumerate(zip(data.catalog, data.docs, strict=True))
    }
    asked = [("registry", place[key], own) for key, own in written.registry().items()]
    for member in written.taught(fold):
        data.docs.append(member.tool)
        data.catalog.append("written")
        asked.append(("written", len(data.docs) - 1, member))
    for kind, i, own in asked:
        for voice in ("people", "asked"):
            queries = own.requests if voice == "people" else own.asked
            data.queries += queries
            data.gold += [[i]] * len(queries)
            data.source += [f"{kind}, {voice}"] * len(queries)


def passage(tool: Tool) -> str:
    """Write a tool as the sentence-like text that the transformer reads."""
    head = " ".join(words(tool.name))
    if tool.server:
        head += f" ({' '.join(words(tool.server))})" if head else ""
    parameters = ", ".join(" ".join(words(name)) for name, _ in tool.parameters[:10])
    description = " ".join(tool.description.split())[:400]
    text = ": ".join(p for p in (head, description) if p)
    return text + (f" | {parameters}" if parameters else "")


def dev_corpora() -> dict[str, tuple[list[Tool], list[str], list[list[int]]]]:
    """Load seal-tools dev and metatool dev as carried to the device machine."""
    found = {}
    for name in ("seal-tools", "metatool"):
        tools = [tool_of(row) for row in rows(DATA / f"dev/{name}.tools.jsonl")]
        place = {t.name: i for i, t in enumerate(tools)}
        asked = list(rows(DATA / f"dev/{name}.queries.jsonl"))
        found[name] = (
            tools,
            [r["query"] for r in asked],
            [[place[g] for g in r["gold"]] for r in asked],
        )
    return found


def dev_sets(
    data: Dataset, distractors: int = 2000, limit: int = 1000
) -> dict[str, tuple[list[Tool], list[str], list[list[int]]]]:
    """Make a search problem of each source's held-out requests: its own tools among other catalogs' tools."""
    random_ = random.Random(7)
    tools = [i for i, c in enumerate(data.catalog) if c not in SHARE]
    found = dev_corpora()
    for source in sorted({s for s, _, _ in data.dev}):
        asked = [(q, g) for s, q, g in data.dev if s == source]
        random_.shuffle(asked)
        if source == "metatool":
            continue
        own = [i for i, c in enumerate(data.catalog) if c == source]
        chosen = sorted(set(own) | set(random_.sample(tools, distractors)))
        place = {d: i for i, d in enumerate(chosen)}
        found[source] = (
            [data.docs[i] for i in chosen],
            [q for q, _ in asked[:limit]],
            [[place[i] for i in g] for _, g in asked[:limit]],
        )
    return found


def recall(scores: np.ndarray, gold: list[list[int]], k: int = 5) -> float:
    """Mean share of the gold tools among the first k."""
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return float(
        np.mean(
            [len(set(o) & set(g)) / len(g) for o, g in zip(order.tolist(), gold, strict=True) if g]
        )
    )
