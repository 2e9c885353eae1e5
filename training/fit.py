"""Fit the scorer and the floor on problems that the model has not seen.

    python training/fit.py static FOLD.npz OUT.json
    python training/fit.py minilm FOLD.onnx OUT.json
    python training/fit.py package OUT.json

The evidence is gathered by the package's own searcher, so that what is fitted is what runs.
With a fold model the network is fitted, on the sources that it never saw (`network.json` is the
one in use). The package's own table has seen the tools of nearly all sources, which makes it look
surer than it is: there that network is kept, and only its scale, what new evidence adds to it, and
the floor are fitted, on requests that no table is trained on, and what the floor makes of what was
read, on those that the reader was not trained on. Where the floors stand is the one thing that is
chosen on dev sets. The same data give the same weights.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any

import background
import cost
import dataset
import floor
import numpy as np
import pack
import problems
from catalog import Tool, package_tool
from network import Array, Case, Weights, even, network, residual

from toolfold import Settings
from toolfold.search._columns import columns_of
from toolfold.search._dense import Table, texts_of
from toolfold.search._document import Document, document
from toolfold.search._excerpts import excerpt
from toolfold.search._reading import ToolReading
from toolfold.search._scorer import (
    FEATURES,
    Scorer,
    floor_features,
    probability,
)
from toolfold.search._sources import SourceMeans
from toolfold.search._vectors import Vectors
from toolfold.search.hybrid import CLAUSES, Evidence, HybridSearcher
from toolfold.search.lexical import Words

NETWORK = Path(__file__).with_name("network.json")
"""The network that is kept."""

ADDED = ("verb", "against", "met", "name_cosine")
"""Evidence that is added to a network which is kept."""

PROCESSES = 2
"""How many gather at a time."""

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
        return np.stack([self.table.tool(self.table.cut(texts_of(tool))) for tool in tools])


class Gatherer:
    """Runs problems up to the evidence; tools are read and embedded once.

    Args:
        model: Embeds tools and requests.
        kept: Says which candidates are worth reading; without it none is read.
    """

    def __init__(self, model: Any, kept: Scorer | None) -> None:
        self._model = model
        self._kept = kept
        self._excerpts: dict[str, Array] = {}
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
            text = searcher.readings(query)[0]
            evidence = searcher.evidence(text)
            held = np.isin(evidence.places, gold)
            source = problem.source or problem.group.removesuffix(", none").removesuffix(", near")
            read = self._read(tools, text, evidence) if floor.is_unread(problem.group) else None
            yield Case(problem.group, len(tools), evidence.features, held, len(gold), source, read)

    def _read(self, tools: Sequence[Any], text: str, evidence: Evidence) -> Array | None:
        if self._kept is None:
            return None
        table: Table = self._model.table
        for tool in tools:
            if tool.digest not in self._excerpts:
                self._excerpts[tool.digest] = excerpt(table.cut(texts_of(tool)))
        reading = ToolReading(np.stack([self._excerpts[tool.digest] for tool in tools]))
        return cost.read_first(reading, text, evidence, self._kept)

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
        "read": np.zeros((2, floor.READ_INPUTS + 1)),
    }  # fmt: skip


def gathered(kind: str, path: Path | None) -> list[Case]:
    """Return the cases to fit on, gathered by some processes, each of them a part."""
    with ProcessPoolExecutor(PROCESSES) as processes:
        futures = [processes.submit(gathered_part, kind, path, i) for i in range(PROCESSES)]
        return [case for future in futures for case in future.result()]


def gathered_part(kind: str, path: Path | None, part: int) -> list[Case]:
    """Return the cases of every so many-th problem."""
    kept = Scorer(padded(read_network())) if kind == "package" else None
    gatherer = Gatherer(read_model(kind, path), kept)
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


def read_network() -> Weights:
    """Return the network that is kept."""
    return json.loads(NETWORK.read_text(encoding="utf-8"))


def padded(kept: Weights) -> Weights:
    """Return a network that is kept with room for new evidence, which counts nothing."""
    weights = untrained() | {key: np.asarray(value, np.float64) for key, value in kept.items()}
    for key, fill in (("mean", 0.0), ("deviation", 1.0), ("linear", 0.0)):
        new = len(FEATURES) - len(weights[key])
        weights[key] = np.append(weights[key], np.full(max(new, 0), fill))
    new = len(FEATURES) - len(weights["w1"])
    weights["w1"] = np.pad(weights["w1"], ((0, max(new, 0)), (0, 0)))
    return weights


def with_added(kept: Weights, cases: Sequence[Case]) -> Weights:
    """Return a network that is kept, with what new evidence adds to it."""
    weights = padded(kept)
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


def report(cases: Sequence[Case], scorer: Scorer, found: Array) -> None:
    """Print by group what passes the default floor where nothing is read, and what is found.

    Args:
        cases: The cases.
        scorer: Orders what was found.
        found: The logistics of the floor.
    """
    passed: dict[str, list[bool]] = {}
    hits: dict[str, list[tuple[float, float]]] = {}
    hits_read: dict[str, list[tuple[float, float]]] = {}
    for case in cases:
        scores = scorer.scores(case.features)
        chance = probability(scorer.floor_logit(case.features, scores))
        passed.setdefault(case.group, []).append(chance >= Settings().relevance_floor)
        if not case.wanted:
            continue
        best = np.argsort(-scores, kind="stable")
        hits.setdefault(case.group, []).append(first_and_recall(case, best))
        if case.read is not None:
            one = cost.read(case.features, scores, case.read, found, always=False)
            hits_read.setdefault(case.group, []).append(first_and_recall(case, one.order))
    for group, values in sorted(passed.items()):
        line = f"{group:36s} passes {np.mean(values):.3f}"
        for label, own in (("first, recall@5", hits), ("with reading", hits_read)):
            if group in own:
                line += " {} {:.3f} {:.3f}".format(label, *np.mean(own[group], axis=0))
        print(line)


def first_and_recall(case: Case, order: Array) -> tuple[float, float]:
    """Return whether the first candidate is right, and how many of the right ones come early."""
    return float(case.gold[order[0]]), float(case.gold[order[: cost.HITS]].sum()) / case.wanted


def fitted(cases: Sequence[Case], kept: Weights | None) -> Weights:
    """Return the weights: a new network, or one that is kept, with a new floor."""
    served = [case for case in cases if case.wanted and not case.group.endswith(", near")]
    weights = untrained() | (with_added(kept, served) if kept else network(served))
    scorer = Scorer(weights)
    weights["floor"] = floor.floor(cases, scorer)
    if kept:  # of a fold model the network is kept; where its floor stands is of no consequence
        weights["read"] = floor.read_floor(cases, scorer, weights["floor"])
        needs = cost.needs(Scorer(padded(kept)))
        found = cost.judged(needs, scorer, cost.Floor(weights["floor"], weights["read"]))
        wanted = float(np.log(1 / (1 / Settings().relevance_floor - 1)))
        print(
            f"{floor.BARS} and {floor.READ_BARS} cost {cost.lost(needs, found, cost.Bars(wanted, wanted))}"
        )
    return weights


def main() -> None:
    """Fit, report, and write the scorer."""
    kind, *paths = sys.argv[1:]
    kept: Weights | None = None
    if kind == "package":
        kept = read_network()
    cases = gathered(kind, Path(paths[0]) if kept is None else None)
    weights = fitted(cases, kept)
    report(cases, Scorer(weights), weights["floor"])
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
