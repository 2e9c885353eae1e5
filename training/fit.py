"""Fit the scorer and the floor on problems that the model has not seen.

    python training/fit.py static FOLD.npz OUT.json
    python training/fit.py minilm FOLD.onnx OUT.json

The evidence is gathered by the package's own searcher, so that what is fitted is what runs.
The network is trained on listwise softmax over each request's candidates, groups (sources)
weighing the same; the floor is a logistic that tells served requests from others.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import dataset
import numpy as np
import pack
import problems
import torch
from catalog import package_tool

from toolfold.search._columns import columns_of
from toolfold.search._dense import texts_of
from toolfold.search._document import document
from toolfold.search._scorer import FEATURES, Scorer, floor_features
from toolfold.search._vectors import Vectors
from toolfold.search.hybrid import Evidence, HybridSearcher
from toolfold.search.lexical import Words

Array = np.ndarray
LOSS = 0.008
"""Mean recall@5 that the floor may cost on the fitting problems."""


class Case(NamedTuple):
    """One request's candidates, which of them are gold, and how many gold tools there are."""

    group: str
    evidence: Evidence
    gold: Array
    wanted: int


class StaticModel:
    """A table as trained, asked as the package asks its own."""

    def __init__(self, path: Path) -> None:
        """Write it the package's way, and read that."""
        with np.load(path) as arrays, tempfile.TemporaryDirectory() as folder:
            self.table = pack.write(dict(arrays), Path(folder))
        self.query = self.table.query

    def tools(self, tools: Sequence[Any]) -> Array:
        """Embed tools of the package."""
        return np.stack([self.table.tool(texts_of(tool)) for tool in tools])


def cases(found: Sequence[problems.Problem], model: Any, empty: Scorer) -> list[Case]:
    """Run every problem's requests up to the evidence."""
    made = []
    for problem in found:
        tools = [package_tool(tool) for tool in problem.tools]
        words = Words(columns_of([document(tool) for tool in tools]))
        order = sorted(range(len(tools)), key=lambda i: tools[i].digest)
        names = [tool.name for tool in tools]
        vectors = Vectors(model.tools(tools).astype(np.float32))
        searcher = HybridSearcher(words, vectors, names, order, model.query, empty)
        for query, gold in zip(problem.queries, problem.gold, strict=True):
            evidence = searcher.evidence(query)
            made.append(Case(problem.group, evidence, np.isin(evidence.places, gold), len(gold)))
    return made


def untrained() -> dict[str, Any]:
    """Return weights of the right shape."""
    count = len(FEATURES)
    return {
        "mean": np.zeros(count), "deviation": np.ones(count), "w1": np.zeros((count, 1)), "b1": np.zeros(1),
        "w2": np.zeros(1), "linear": np.zeros(count), "floor": np.zeros(17),
    }  # fmt: skip


def order(case: Case, scores: Array, k: int = 5) -> Array:
    """Return the best k candidates as the package orders them."""
    return np.lexsort((case.evidence.places, -scores))[:k]


def recalls(found: Sequence[Case], scorer: Scorer) -> dict[str, float]:
    """Return recall@5 by group."""
    by_group: dict[str, list[float]] = {}
    for case in found:
        if case.wanted:
            best = order(case, scorer.scores(case.evidence.features))
            by_group.setdefault(case.group, []).append(float(case.gold[best].sum()) / case.wanted)
    return {g: round(float(np.mean(v)), 4) for g, v in sorted(by_group.items())}


def network(
    found: Sequence[Case], hidden: int = 16, epochs: int = 25, seed: int = 0, decay: float = 1e-2
) -> dict[str, Any]:
    """Train the scorer."""
    torch.manual_seed(seed)
    kept = [c for c in found if c.gold.any()]
    groups = [c.group for c in kept]
    weight = np.array([1.0 / groups.count(g) for g in groups])
    weight *= len(weight) / weight.sum()
    width = max(len(c.gold) for c in kept)
    count = len(FEATURES)
    x = np.zeros((len(kept), width, count), np.float32)
    gold = np.zeros((len(kept), width), bool)
    real = np.zeros((len(kept), width), bool)
    for i, case in enumerate(kept):
        n = len(case.gold)
        x[i, :n], gold[i, :n], real[i, :n] = case.evidence.features, case.gold, True
    mean, deviation = x[real].mean(0), x[real].std(0) + 1e-3
    xt = torch.from_numpy((x - mean) / deviation)
    gt, rt, wt = torch.from_numpy(gold), torch.from_numpy(real), torch.from_numpy(weight).float()
    w1 = torch.nn.Parameter(torch.randn(count, hidden) * 0.15)
    b1 = torch.nn.Parameter(torch.zeros(hidden))
    w2 = torch.nn.Parameter(torch.randn(hidden) * 0.1)
    linear = torch.nn.Parameter(torch.zeros(count))
    optimiser = torch.optim.AdamW([w1, b1, w2, linear], lr=6e-3, weight_decay=decay)
    batch = 256
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(
        optimiser, epochs * (len(kept) // batch + 1)
    )
    for _ in range(epochs):
        for part in torch.randperm(len(kept)).split(batch):
            score = (torch.tanh(xt[part] @ w1 + b1) @ w2 + xt[part] @ linear).masked_fill(
                ~rt[part], -1e4
            )
            # Each gold candidate against all candidates that are not gold.
            others = score.masked_fill(gt[part], -1e4).logsumexp(1, keepdim=True)
            each = torch.nn.functional.softplus(others - score)
            loss = ((each * gt[part]).sum(1) / gt[part].sum(1) * wt[part]).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
    return untrained() | {
        "mean": mean, "deviation": deviation, "w1": w1.detach().numpy(), "b1": b1.detach().numpy(),
        "w2": w2.detach().numpy(), "linear": linear.detach().numpy(),
    }  # fmt: skip


def floor(found: Sequence[Case], scorer: Scorer) -> Array:
    """Fit the logistic: is the request served at all?"""
    rows, labels, groups = [], [], []
    for case in found:
        rows.append(floor_features(case.evidence.features, scorer.scores(case.evidence.features)))
        labels.append(float(case.wanted > 0))
        groups.append(case.group)
    x, y = torch.tensor(np.array(rows)), torch.tensor(labels)
    mean, deviation = x.mean(0), x.std(0) + 1e-3
    weight = torch.tensor([1.0 / groups.count(g) for g in groups])
    weight[y > 0] /= weight[y > 0].sum()
    weight[y == 0] /= weight[y == 0].sum()
    coefficients = torch.nn.Parameter(torch.zeros(x.shape[1] + 1))
    optimiser = torch.optim.LBFGS([coefficients], max_iter=300)

    def closure() -> Any:
        optimiser.zero_grad()
        logit = ((x - mean) / deviation) @ coefficients[:-1] + coefficients[-1]
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logit, y, reduction="none")
        total = (loss * weight).sum() + 1e-3 * (coefficients[:-1] ** 2).sum()
        total.backward()
        return total

    optimiser.step(closure)
    # The package knows nothing of means and deviations here: they go into the coefficients.
    slopes = coefficients.detach()[:-1] / deviation
    return torch.cat((slopes, coefficients.detach()[-1:] - slopes @ mean)).numpy()


def chances(found: Sequence[Case], scorer: Scorer) -> Array:
    """Return the probability of each case that it is served."""
    return np.array(
        [scorer.probability(c.evidence.features, scorer.scores(c.evidence.features)) for c in found]
    )


def bar(found: Sequence[Case], scorer: Scorer, loss: float = LOSS) -> float:
    """Return the highest probability below which little recall lies."""
    parts = [c.gold[order(c, scorer.scores(c.evidence.features))].sum() / c.wanted for c in found]
    groups = [c.group for c in found]
    share = np.array([1 / groups.count(g) for g in groups]) / len(set(groups)) * np.array(parts)
    chance = chances(found, scorer)
    ascending = np.argsort(chance)
    return float(chance[ascending][int(np.searchsorted(np.cumsum(share[ascending]), loss))])


def gathered(model: Any) -> dict[str, list[Case]]:
    """Return the cases to fit on, those to look at, and those that nothing serves."""
    empty = Scorer(untrained())
    data = dataset.load(True, 0)
    sets = {
        "fit": problems.held_out(data),
        "strange": [
            *problems.strange(data),
            problems.github(0),
            *problems.small(range(1, 3), served=False),
        ],
        "seal dev, other half": [problems.seal(1)],
        "written dev": [problems.written(range(1))],
        "small dev": problems.small(range(1), served=True),
        "small dev, not served": problems.small(range(1), served=False),
        "github-oos, other half": [problems.github(1)],
    }
    return {name: cases(found, model, empty) for name, found in sets.items()}


def main() -> None:
    """Fit, report on dev, and write the scorer."""
    kind, path, out = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    if kind == "static":
        model: Any = StaticModel(path)
    else:
        from encoder import Encoder

        model = Encoder(path)
    sets = gathered(model)
    weights = network(sets["fit"])
    weights["floor"] = floor([*sets["fit"], *sets["strange"]], Scorer(weights))
    scorer = Scorer(weights)
    print("fit", recalls(sets["fit"], scorer))
    for name in ("seal dev, other half", "written dev", "small dev"):
        print(name, recalls(sets[name], scorer))
    print(f"bar for a loss of {LOSS}: {bar(sets['fit'], scorer):.3f}")
    for level in (0.1, 0.15, 0.2, 0.25, 0.3, 0.4):
        passed = {
            name: round(float((chances(found, scorer) >= level).mean()), 3)
            for name, found in sets.items()
        }
        print(f"floor {level}: passes {passed}")
    plain = {
        key: np.round(np.asarray(value, dtype=float), 6).tolist() for key, value in weights.items()
    }
    out.write_text(json.dumps(plain), encoding="utf-8")


if __name__ == "__main__":
    main()
