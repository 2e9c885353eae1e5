"""The scorer's network and the floor's logistics, fitted with numpy.

The network is trained on listwise softmax: each gold candidate against all candidates of the
same request that are not gold. The floor tells requests whose best hits hold a gold tool from
requests that nothing serves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray
Weights = dict[str, Any]
_NEVER = -1e4


class Case(NamedTuple):
    """One request's candidates, which of them are gold, and how many gold tools there are."""

    group: str
    tools: int
    features: Array
    gold: Array
    wanted: int
    source: str = ""
    """Who wrote the request, for leaving sources out."""
    read: Array | None = None
    """What the reader says of each candidate, nothing (`nan`) of those far behind."""


class Padded(NamedTuple):
    """Cases as arrays: candidates are padded to the same number."""

    x: Array
    gold: Array
    real: Array
    weight: Array
    """What each case weighs: groups weigh the same."""


def padded(cases: Sequence[Case]) -> Padded:
    """Return the cases that have a gold candidate as arrays."""
    kept = [case for case in cases if case.gold.any()]
    width = max(len(case.gold) for case in kept)
    x = np.zeros((len(kept), width, kept[0].features.shape[1]), np.float32)
    gold, real = np.zeros((2, len(kept), width), bool)
    for i, case in enumerate(kept):
        n = len(case.gold)
        x[i, :n], gold[i, :n], real[i, :n] = case.features, case.gold, True
    return Padded(x, gold, real, even([case.group for case in kept]))


def even(groups: Sequence[str]) -> Array:
    """Return weights, one at the mean, by which every group weighs the same."""
    _, place, count = np.unique(groups, return_inverse=True, return_counts=True)
    weight = 1 / count[place]
    return weight * len(weight) / weight.sum()


class Adam:
    """The usual optimiser, over a list of arrays that it changes."""

    def __init__(self, parameters: Sequence[Array]) -> None:
        self.parameters = parameters
        self._first = [np.zeros_like(p) for p in parameters]
        self._second = [np.zeros_like(p) for p in parameters]
        self._steps = 0

    def step(self, gradients: Sequence[Array], rate: float, decay: float) -> None:
        """Take one step."""
        self._steps += 1
        a, b = 1 - 0.9**self._steps, 1 - 0.999**self._steps
        for p, g, m, v in zip(self.parameters, gradients, self._first, self._second, strict=True):
            m += 0.1 * (g - m)
            v += 0.001 * (g * g - v)
            p -= rate * ((m / a) / (np.sqrt(v / b) + 1e-8) + decay * p)


def pull(scores: Array, gold: Array, real: Array, weight: Array) -> Array:
    """Return the gradient of the listwise loss by each score."""
    others = np.where(real & ~gold, scores, _NEVER)
    top = others.max(1, keepdims=True)
    powers = np.exp(others - top)
    total = powers.sum(1, keepdims=True)
    missed = gold / (1 + np.exp(np.clip(scores - top - np.log(total), -50, 50)))
    count = np.maximum(gold.sum(1, keepdims=True), 1)
    slope = (powers / total * missed.sum(1, keepdims=True) - missed) / count
    return np.where(real, slope * weight[:, None], 0).astype(np.float32)


def network(
    cases: Sequence[Case],
    hidden: int = 16,
    epochs: int = 25,
    rate: float = 6e-3,
    decay: float = 1e-2,
    seed: int = 0,
) -> Weights:
    """Train the scorer's network."""
    random = np.random.default_rng(seed)
    x, gold, real, weight = padded(cases)
    mean, deviation = x[real].mean(0), x[real].std(0) + 1e-3
    x = (x - mean) / deviation
    count, batch = x.shape[2], 256
    w1 = (random.standard_normal((count, hidden)) * 0.15).astype(np.float32)
    b1, w2 = np.zeros(hidden, np.float32), (random.standard_normal(hidden) * 0.1).astype(np.float32)
    linear = np.zeros(count, np.float32)
    optimiser = Adam([w1, b1, w2, linear])
    steps, step = epochs * -(-len(x) // batch), 0
    for _ in range(epochs):
        order = random.permutation(len(x))
        for part in (order[i : i + batch] for i in range(0, len(x), batch)):
            inner = np.tanh(x[part] @ w1 + b1)
            scores = inner @ w2 + x[part] @ linear
            slope = pull(scores, gold[part], real[part], weight[part] / len(part))
            back = slope[..., None] * w2 * (1 - inner * inner)
            flat, flat_slope = x[part].reshape(-1, count), slope.reshape(-1)
            gradients = [
                flat.T @ back.reshape(-1, hidden),
                back.sum((0, 1)),
                inner.reshape(-1, hidden).T @ flat_slope,
                flat.T @ flat_slope,
            ]
            optimiser.step(gradients, rate * 0.5 * (1 + np.cos(np.pi * step / steps)), decay)
            step += 1
    return {"mean": mean, "deviation": deviation, "w1": w1, "b1": b1, "w2": w2, "linear": linear}


def residual(
    cases: Sequence[Case],
    scores: Sequence[Array],
    columns: Sequence[int],
    weights: Sequence[float],
    steps: int = 200,
    ridge: float = 3e-2,
) -> tuple[float, Array]:
    """Return what some features add to scores that are given, each by one slope.

    The given scores are scaled, too: by the first number, which is below 1 where they are too sure.
    """
    kept = [i for i, case in enumerate(cases) if case.gold.any()]
    x, gold, real, _ = padded([cases[i] for i in kept])
    weight = np.array([weights[i] for i in kept])
    weight /= weight.mean()
    x = x[:, :, list(columns)]
    deviation = x[real].std(0) + 1e-3
    base = np.zeros(gold.shape, np.float32)
    for row, i in enumerate(kept):
        base[row, : len(scores[i])] = scores[i]
    both = np.concatenate((base[..., None] / base[real].std(), x / deviation), axis=2)
    slopes = np.append(base[real].std(), np.zeros(len(columns))).astype(np.float32)
    optimiser = Adam([slopes])
    for step in range(steps):
        each = pull(np.where(real, both @ slopes, _NEVER), gold, real, weight / len(x))
        gradient = np.einsum("ij,ijk->k", each, both) + ridge * np.append(0, slopes[1:])
        optimiser.step([gradient.astype(np.float32)], 0.05 * (1 - step / steps), 0.0)
    return float(slopes[0] / base[real].std()), slopes[1:] / deviation


def logistic(x: Array, served: Array, weight: Array, penalty: float = 1e-4) -> Array:
    """Return the coefficients of a logistic, the constant last, by Newton's method."""
    mean, deviation = x.mean(0), x.std(0) + 1e-3
    z = np.c_[(x - mean) / deviation, np.ones(len(x))]
    ridge = np.full(z.shape[1], 2 * penalty)
    ridge[-1] = 0
    beta = np.zeros(z.shape[1])
    for _ in range(50):
        chance = 1 / (1 + np.exp(-np.clip(z @ beta, -30, 30)))
        gradient = z.T @ (weight * (chance - served)) + ridge * beta
        curvature = (z * (weight * chance * (1 - chance))[:, None]).T @ z
        beta -= np.linalg.solve(curvature + np.diag(ridge + 1e-9), gradient)
    slopes = beta[:-1] / deviation
    # The package knows nothing of means and deviations here: they go into the coefficients.
    return np.append(slopes, beta[-1] - slopes @ mean)
