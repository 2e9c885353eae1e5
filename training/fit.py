"""Fit the scorer and the floor on problems that the model has not seen.

    python training/fit.py static FOLD.npz OUT.json
    python training/fit.py minilm FOLD.onnx OUT.json
    python training/fit.py package OUT.json

The evidence is gathered by the package's own searcher, so that what is fitted is what runs.
With a fold model everything is fitted, on the sources that it never saw. The package's own
table has seen the tools of nearly all sources, which makes it look surer than it is: there the
network of the package is kept, and only what new evidence adds to it and the floor are
fitted, on requests that no table is trained on.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import dataset
import numpy as np
import pack
import problems
from catalog import Tool, package_tool
from network import Array, Case, Weights, even, logistic, network, residual

from toolfold import Settings
from toolfold.search._columns import columns_of
from toolfold.search._dense import WEIGHTS, Table, texts_of
from toolfold.search._document import document
from toolfold.search._scorer import FEATURES, Scorer, floor_features
from toolfold.search._sources import SourceMeans
from toolfold.search._vectors import Vectors
from toolfold.search.hybrid import HybridSearcher
from toolfold.search.lexical import Words

LOSS = 0.0065
"""Share of the requests whose tool is found that the floor may refuse on the fitting problems."""

ADDED = ("head_gap", "source_gap")
"""Evidence that is added to a network which is kept."""

VERB = 0.4
"""What the verb adds there. Few of the fitting problems have siblings that differ in it; this was
chosen where many do, on the dev set of a vendor's server."""

INTENTS = ("clinc150", "banking77")
"""SourceMeans whose tools are one line each: they say nothing about descriptions and servers."""

RIDDLES = "written"
"""Requests in words that tools do not have; no floor can tell many of them from what nothing
serves, so they weigh less, and do not count where it is placed."""


class StaticModel:
    """A table as trained, asked as the package asks its own."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.query, self.has_word = table.query, table.has_word

    @classmethod
    def read(cls, path: Path) -> StaticModel:
        """Write a trained table the package's way, and read that."""
        with np.load(path) as arrays, tempfile.TemporaryDirectory() as folder:
            return cls(pack.write(dict(arrays), Path(folder)))

    def tools(self, tools: Sequence[Any]) -> Array:
        """Embed tools of the package."""
        return np.stack([self.table.tool(texts_of(tool)) for tool in tools])


class Gatherer:
    """Runs problems up to the evidence; tools are read and embedded once."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._tools: dict[Tool, Any] = {}
        self._vectors: dict[str, Array] = {}
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
            Words(columns_of([document(tool) for tool in tools])),
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
            yield Case(problem.group, len(tools), evidence.features, held, len(gold))

    def _package(self, tool: Tool) -> Any:
        if tool not in self._tools:
            self._tools[tool] = package_tool(tool)
        return self._tools[tool]


def untrained() -> Weights:
    """Return weights of the right shape."""
    count = len(FEATURES)
    return {
        "mean": np.zeros(count), "deviation": np.ones(count), "w1": np.zeros((count, 1)), "b1": np.zeros(1),
        "w2": np.zeros(1), "linear": np.zeros(count), "floor": np.zeros(17),
    }  # fmt: skip


def gathered(model: Any, is_fold: bool) -> list[Case]:
    """Return the cases to fit on."""
    gatherer = Gatherer(model)
    pool = problems.Pool(dataset.load(True, 0), gatherer.vectors, is_fold)
    made: list[Case] = []
    for pairs in (pool.problems(), pool.near_misses()):
        for pair in pairs:
            made += [case for problem in pair for case in gatherer.cases(problem)]
    for problem in pool.everyday():
        made += gatherer.cases(problem)
    return made


def with_added(kept: Weights, cases: Sequence[Case]) -> Weights:
    """Return a network that is kept, with what new evidence adds to it."""
    weights = {key: np.asarray(value, np.float32) for key, value in kept.items()}
    for key, fill in (("mean", 0.0), ("deviation", 1.0), ("linear", 0.0)):
        new = len(FEATURES) - len(weights[key])
        weights[key] = np.append(weights[key], np.full(max(new, 0), fill, np.float32))
    new = len(FEATURES) - len(weights["w1"])
    weights["w1"] = np.pad(weights["w1"], ((0, max(new, 0)), (0, 0)))
    columns = [FEATURES.index(name) for name in ADDED]
    weights["linear"][columns] = 0
    verb = FEATURES.index("verb")
    weights["linear"][verb] = VERB * weights["deviation"][verb]
    own = [case for case in cases if case.tools >= 4 and case.group not in INTENTS]
    scorer = Scorer(weights)
    slopes = residual(own, [scorer.scores(case.features) for case in own], columns)
    print("added", dict(zip(ADDED, slopes.round(2).tolist(), strict=True)))
    weights["linear"][columns] = slopes * weights["deviation"][columns]
    return weights


def share(group: str) -> float:
    """Return what a group weighs in the floor, among those that are served or those that are not."""
    if group.endswith(", near, none"):
        return 0.25
    if group.endswith(", none"):
        return 1.0 if " of vendors" in group or group.startswith("small talk") else 0.2
    least = 0.3 if group.endswith(", near") else 1.0
    return least * (0.6 if group.removesuffix(", near") == RIDDLES else 1.0)


def floor(cases: Sequence[Case], scorer: Scorer) -> Array:
    """Fit the logistic: is the request served at all?"""
    rows: list[Array] = []
    groups: list[str] = []
    served: list[bool] = []
    for case in cases:
        scores = scorer.scores(case.features)
        if case.wanted and not case.gold[np.argsort(-scores, kind="stable")[:5]].any():
            continue  # nothing is lost where it is refused
        rows.append(floor_features(case.features, scores))
        groups.append(case.group)
        served.append(case.wanted > 0)
    x, y, names = np.array(rows, np.float64), np.array(served), np.array(groups)
    weight = np.zeros(len(y))
    for kind in (True, False):
        own = even(groups_of := names[y == kind].tolist()) * [share(g) for g in groups_of]
        weight[y == kind] = own / own.sum() / 2
    coefficients = logistic(x, y.astype(float), weight)
    counted = y & ~np.char.startswith(names, RIDDLES) & ~np.char.endswith(names, ", near")
    logits = x[counted] @ coefficients[:-1] + coefficients[-1]
    order = np.argsort(logits)
    lost = np.cumsum(even(names[counted].tolist())[order]) / counted.sum()
    bar = logits[order][int(np.searchsorted(lost, LOSS))]
    wanted = Settings().relevance_floor
    # The default floor is where the loss is what it may be.
    coefficients[-1] += np.log(wanted / (1 - wanted)) - bar
    print(f"a floor of {1 / (1 + np.exp(-bar)):.3f} would cost {LOSS}: moved to {wanted}")
    return coefficients


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
    weights = with_added(kept, served) if kept else untrained() | network(served)
    weights["floor"] = floor(cases, Scorer(weights))
    return weights


def main() -> None:
    """Fit, report, and write the scorer."""
    kind, *paths = sys.argv[1:]
    kept: Weights | None = None
    if kind == "package":
        model: Any = StaticModel(Table())
        kept = json.loads((WEIGHTS / "scorer.json").read_text(encoding="utf-8"))
    elif kind == "static":
        model = StaticModel.read(Path(paths[0]))
    else:
        from encoder import Encoder

        model = Encoder(Path(paths[0]))
    cases = gathered(model, is_fold=kind != "package")
    weights = fitted(cases, kept)
    report(cases, Scorer(weights))
    write(weights, Path(paths[-1]))


def write(weights: Weights, out: Path) -> None:
    """Write the weights as the package reads them."""
    plain = {
        key: np.round(np.asarray(value, dtype=float), 6).tolist() for key, value in weights.items()
    }
    out.write_text(json.dumps(plain, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
