"""Fit the scorer and the floor on problems that the model has not seen.

    python training/fit.py static FOLD.npz OUT.json
    python training/fit.py minilm FOLD.onnx OUT.json
    python training/fit.py package OUT.json

The evidence is gathered by the package's own searcher, so that what is fitted is what runs.
With a fold model the network is fitted, on the sources that it never saw (`network.json` is the
one in use). The package's own table has seen the tools of nearly all sources, which makes it look
surer than it is: there that network is kept, and only its scale, what new evidence adds to it, and
the floor are fitted, on requests that no table is trained on. Where the floor stands is the one
thing that is chosen on dev sets. The same data give the same weights.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import background
import cost
import dataset
import numpy as np
import pack
import problems
from catalog import Tool, package_tool
from network import Array, Case, Weights, even, logistic, network, residual

from toolfold import Settings
from toolfold.search._columns import columns_of
from toolfold.search._dense import Table, texts_of
from toolfold.search._document import Document, document
from toolfold.search._scorer import FEATURES, KEYWORDS, Scorer, floor_features, floor_logits
from toolfold.search._sources import SourceMeans
from toolfold.search._vectors import Vectors
from toolfold.search.hybrid import CLAUSES, HybridSearcher
from toolfold.search.lexical import Words

BARS = cost.Bars(sentence=0.0, keywords=-1.3)
"""The logits that the default floor asks for, chosen on dev by what they cost and let pass. Higher
ones refuse requests in other words than the tools', of which the bundled catalog's own have most."""

NETWORK = Path(__file__).with_name("network.json")
"""The network that is kept."""

ADDED = ("verb", "against", "met", "name_cosine")
"""Evidence that is added to a network which is kept."""

PROCESSES = 2
"""How many gather at a time."""

FOLDS = 4
"""In so many parts the sources are left out in turn, to see where the floor should be."""

INTENTS = ("clinc150", "banking77")
"""SourceMeans whose tools are one line each: they say nothing about descriptions and servers."""

UNSERVED = {
    "near": 2.0, "unserved, asked": 3.0, "unserved, people": 1.0, "everyday": 1.0, "asked": 1.0,
    "people": 0.3,
}  # fmt: skip
"""What each kind of request that nothing serves weighs in the floor: who asks is a model."""

SERVED = {
    "family, asked": 2.0, "several": 0.7, "family, people, near": 0.5,
    "family, asked, near": 0.5, "domain, people, near": 0.6, "domain, asked, near": 0.6,
} | dict.fromkeys(("clinc150", "banking77", "hwu64"), 0.3)  # fmt: skip
"""What groups of served requests weigh in it, where that is not 1, or 0.3 among few tools."""

MISSES = 4.0
"""What the near misses of `near.jsonl` weigh among the others, which are found by nearness alone."""


class Weighed(NamedTuple):
    """What groups of requests weigh in one of the floor's logistics."""

    real: float
    """Those for real servers, where people's words are further from the tools' than in ours."""
    written: float
    """The served ones in other words than the tools'."""


WEIGHED = (Weighed(real=3.0, written=1.0), Weighed(real=0.5, written=0.4))
"""For sentences and for keywords: the more the real ones weigh, the fewer near misses pass."""

ORDERED = (
    {"family, people": 4.0, "family, asked": 4.0, "several": 1.5}
    | dict.fromkeys(("clinc150", "banking77", "hwu64"), 0.5)
    | dict.fromkeys(("real, people", "real, asked"), 0.0)
)
"""What groups weigh in the order, where that is not 1."""


class StaticModel:
    """A table as trained, asked as the package asks its own."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.query, self.has_word, self.weight = table.query, table.has_word, table.weight
        self.words, self.names, self.background = table.words, table.names, table.background

    @classmethod
    def read(cls, path: Path) -> StaticModel:
        """Write a trained table the package's way, and read that."""
        with np.load(path) as arrays, tempfile.TemporaryDirectory() as folder:
            table = pack.write(dict(arrays), Path(folder))
            background.write(table, Path(folder), is_fold=True)
            return cls(table)

    def tools(self, tools: Sequence[Any]) -> Array:
        """Embed tools of the package."""
        return np.stack([self.table.tool(texts_of(tool)) for tool in tools])


class Gatherer:
    """Runs problems up to the evidence; tools are read and embedded once."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._tools: dict[Tool, Any] = {}
        self._vectors: dict[str, Array] = {}
        self._documents: dict[str, Document] = {}
        self._empty = Scorer(untrained())

    def vectors(self, tools: Sequence[Tool]) -> Array:
        """Return the vectors of tools."""
        own = [self._package(tool) for tool in tools]
        missing = {tool.digest: tool for tool in own if tool.digest not in self._vectors}
        if missing:
            made = self._model.tools(list(missing.values())).astype(np.float32)
            self._vectors.update(zip(missing, made, strict=True))
        return np.stack([self._vectors[tool.digest] for tool in own])

    def cases(self, problem: problems.Problem) -> Iterator[Case]:
        """Yield the evidence of a problem's requests."""
        if not problem.tools:
            return
        tools = [self._package(tool) for tool in problem.tools]
        vectors = self.vectors(problem.tools)
        searcher = HybridSearcher(
            Words(columns_of([self._document(tool) for tool in tools])),
            Vectors(vectors),
            [tool.name for tool in tools],
            sorted(range(len(tools)), key=lambda i: tools[i].digest),
            self._model,
            self._empty,
            SourceMeans(vectors, [tool.source or "" for tool in tools]),
        )
        for query, gold in zip(problem.queries, problem.gold, strict=True):
            evidence = searcher.evidence(searcher.readings(query)[0])
            held = np.isin(evidence.places, gold)
            source = problem.source or problem.group.removesuffix(", none").removesuffix(", near")
            yield Case(problem.group, len(tools), evidence.features, held, len(gold), source)

    def _document(self, tool: Any) -> Document:
        if tool.digest not in self._documents:
            self._documents[tool.digest] = document(tool)
        return self._documents[tool.digest]

    def _package(self, tool: Tool) -> Any:
        if tool not in self._tools:
            self._tools[tool] = package_tool(tool)
        return self._tools[tool]


def untrained() -> Weights:
    """Return weights of the right shape."""
    count = len(FEATURES)
    inputs = len(floor_features(np.zeros((1, count), np.float32), np.zeros(1, np.float32)))
    return {
        "mean": np.zeros(count), "deviation": np.ones(count), "w1": np.zeros((count, 1)), "b1": np.zeros(1),
        "w2": np.zeros(1), "linear": np.zeros(count), "floor": np.zeros((2, inputs + 1)),
    }  # fmt: skip


def gathered(kind: str, path: Path | None) -> list[Case]:
    """Return the cases to fit on, gathered by some processes, each of them a part."""
    with ProcessPoolExecutor(PROCESSES) as processes:
        futures = [processes.submit(gathered_part, kind, path, i) for i in range(PROCESSES)]
        return [case for future in futures for case in future.result()]


def gathered_part(kind: str, path: Path | None, part: int) -> list[Case]:
    """Return the cases of every so many-th problem."""
    gatherer = Gatherer(read_model(kind, path))
    pool = problems.Pool(dataset.load(True, 0), gatherer.vectors, kind != "package")
    families = problems.Families(pool, gatherer.vectors)
    paired = (one for pair in chain(pool.problems(), pool.near_misses()) for one in pair)
    every = chain(paired, pool.everyday(), families.problems())
    own = (problem for i, problem in enumerate(every) if i % PROCESSES == part)
    return [case for problem in own for case in gatherer.cases(problem)]


def read_model(kind: str, path: Path | None) -> Any:
    """Return the model whose evidence is gathered."""
    if path is None:
        return StaticModel(Table())
    if kind == "static":
        return StaticModel.read(path)
    from encoder import Encoder

    return Encoder(path)


def with_added(kept: Weights, cases: Sequence[Case]) -> Weights:
    """Return a network that is kept, with what new evidence adds to it."""
    weights = untrained() | {key: np.asarray(value, np.float64) for key, value in kept.items()}
    for key, fill in (("mean", 0.0), ("deviation", 1.0), ("linear", 0.0)):
        new = len(FEATURES) - len(weights[key])
        weights[key] = np.append(weights[key], np.full(max(new, 0), fill))
    new = len(FEATURES) - len(weights["w1"])
    weights["w1"] = np.pad(weights["w1"], ((0, max(new, 0)), (0, 0)))
    columns = [FEATURES.index(name) for name in ADDED]
    weights["linear"][columns] = 0
    one = 1 / CLAUSES  # of several needs this evidence says nothing
    own = [case for case in cases if (case.features[:, FEATURES.index("clauses")] <= one).all()]
    scorer = Scorer(weights)
    scores = [scorer.scores(case.features) for case in own]
    shares = even([c.group for c in own]) * [ORDERED.get(c.group, 1.0) for c in own]
    scale, slopes = residual(own, scores, columns, shares.tolist())
    print(
        "scale", round(scale, 3), "added", dict(zip(ADDED, slopes.round(2).tolist(), strict=True))
    )
    weights["w2"], weights["linear"] = weights["w2"] * scale, weights["linear"] * scale
    weights["linear"][columns] = slopes * weights["deviation"][columns]
    return weights


def kind(group: str) -> str:
    """Return the kind of a group of requests that nothing serves, or nothing where they are served."""
    if not group.endswith(", none"):
        return ""
    if group.endswith(", near, none"):
        return "near"
    if group.startswith("unserved"):
        return "unserved, asked" if "asked" in group else "unserved, people"
    if " of vendors" in group or group.startswith("small talk"):
        return "everyday"
    return "asked" if "asked" in group else "people"


def shares(names: Sequence[str], weighed: Weighed) -> Array:
    """Return what each case weighs in the floor: half of it the served, half of it the others.

    Args:
        names: The groups of the cases.
        weighed: What some of them weigh in this logistic.
    """
    groups, kinds = np.array(names), np.array([kind(name) for name in names])
    weight = np.zeros(len(groups))
    for own in ("", *UNSERVED):
        members = kinds == own
        if not members.any():
            continue
        mine = even(groups[members].tolist())
        mine *= [MISSES if g.startswith("domain") and own else 1.0 for g in groups[members]]
        mine *= [weighed.real if g.startswith("real") else 1.0 for g in groups[members]]
        if not own:
            near = [0.3 if g.endswith(", near") else 1.0 for g in groups[members]]
            served = SERVED | {"written": weighed.written}
            mine *= [served.get(g, n) for g, n in zip(groups[members], near, strict=True)]
        weight[members] = mine / mine.sum() * (UNSERVED[own] / sum(UNSERVED.values()) if own else 1)
    return weight / 2


def floor(cases: Sequence[Case], scorer: Scorer, needs: Sequence[cost.Need]) -> Array:
    """Fit the logistics: is the request served at all? And set them where they were chosen to stand."""
    rows: list[Array] = []
    kept: list[Case] = []
    for case in cases:
        scores = scorer.scores(case.features)
        if case.wanted and not case.gold[np.argsort(-scores, kind="stable")[:5]].any():
            continue  # nothing is lost where it is refused
        rows.append(floor_features(case.features, scores))
        kept.append(case)
    x, names = np.array(rows, np.float64), [case.group for case in kept]
    y = np.array([case.wanted > 0 for case in kept])
    coefficients = logistics(x, y, names)
    passes_without_source(x, y, kept)
    wanted = Settings().relevance_floor
    if needs:
        lost = cost.lost(needs, cost.judged(needs, scorer, coefficients), BARS)
        print(f"{BARS} cost {lost}: moved to {wanted}")
    coefficients[:, -1] += np.log(wanted / (1 - wanted)) - np.array(BARS)
    return coefficients


def logistics(x: Array, y: Array, names: Sequence[str]) -> Array:
    """Return the logistics for sentences and for keywords: of the same cases, weighed apart."""
    return np.stack([logistic(x, y.astype(float), shares(names, own)) for own in WEIGHED])


def passes_without_source(x: Array, y: Array, kept: Sequence[Case]) -> None:
    """Print what passes a floor that was fitted without the sources it is tried on."""
    names = np.array([case.group for case in kept])
    part = np.array([dataset.bucket(case.source) % FOLDS for case in kept])
    logits = np.zeros(len(y))
    for fold in range(FOLDS):
        own = part != fold
        coefficients = logistics(x[own], y[own], names[own].tolist())
        logits[~own] = floor_logits(coefficients, x[~own])
    for group in sorted(set(names.tolist())):
        passed = np.mean((logits >= BARS.of(x[:, KEYWORDS]))[names == group])
        print(f"{group:36s} passes {passed:.3f} without its source")


def report(cases: Sequence[Case], scorer: Scorer) -> None:
    """Print recall@5 and what passes the default floor, by group."""
    found: dict[str, list[float]] = {}
    passed: dict[str, list[bool]] = {}
    for case in cases:
        scores = scorer.scores(case.features)
        chance = scorer.probability(case.features, scores)
        passed.setdefault(case.group, []).append(chance >= Settings().relevance_floor)
        if case.wanted:
            best = np.argsort(-scores, kind="stable")[:5]
            found.setdefault(case.group, []).append(float(case.gold[best].sum()) / case.wanted)
    for group, values in sorted(passed.items()):
        recalled = f"recall@5 {np.mean(found[group]):.3f}" if group in found else ""
        print(f"{group:36s} passes {np.mean(values):.3f} {recalled}")


def fitted(cases: Sequence[Case], kept: Weights | None) -> Weights:
    """Return the weights: a new network, or one that is kept, with a new floor."""
    served = [case for case in cases if case.wanted and not case.group.endswith(", near")]
    weights = untrained() | (with_added(kept, served) if kept else network(served))
    # Of a fold model the network is kept; where its floor stands is of no consequence.
    weights["floor"] = floor(cases, Scorer(weights), cost.needs() if kept else [])
    return weights


def main() -> None:
    """Fit, report, and write the scorer."""
    kind, *paths = sys.argv[1:]
    kept: Weights | None = None
    if kind == "package":
        kept = json.loads(NETWORK.read_text(encoding="utf-8"))
    cases = gathered(kind, Path(paths[0]) if kept is None else None)
    weights = fitted(cases, kept)
    report(cases, Scorer(weights))
    write(weights, Path(paths[-1]), Table().background.digest if kept else "")


def write(weights: Weights, out: Path, background_digest: str) -> None:
    """Write the weights as the package reads them, with the background that the floor belongs to."""
    plain: dict[str, Any] = {
        key: np.round(np.asarray(value, dtype=float), 6).tolist() for key, value in weights.items()
    }
    plain["background"] = background_digest
    out.write_text(json.dumps(plain, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
