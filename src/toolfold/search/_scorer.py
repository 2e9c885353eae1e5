"""What the evidence for a candidate is worth: a small network and logistics, all trained.

One logistic judges sentences, one keywords: what speaks for a hit is not the same in both. Where
the best candidates were read, two others judge by what that says.
The weights are in `weights/scorer.json`; the training is in `training/`.
"""

from __future__ import annotations

import json
from functools import lru_cache
from math import exp, tanh
from typing import TYPE_CHECKING, Any

from toolfold.search._dense import WEIGHTS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

__all__ = [
    "FEATURES",
    "KEYWORDS",
    "NAME_SHARE",
    "OF_THE_BEST",
    "SURE_WITHOUT",
    "Scorer",
    "floor_features",
    "floor_logits",
    "judged",
    "judged_as_keywords",
    "lift",
    "probability",
    "read_features",
    "read_logit",
    "scorer",
]

FEATURES = (
    "lex_top", "lex_log", "coverage", "coverage_gap", "cosine", "cosine_gap", "cosine_z",
    "name_said", "name_share", "lex_rank", "dense_rank", "clause_cosine", "clause_gap",
    "clause_lex", "clause_coverage", "clause_rank", "best_coverage", "best_cosine", "best_z",
    "length", "clauses", "size", "head_coverage", "head_gap", "verb", "source_gap",
    "against", "met", "name_cosine", "keywords", "unmet", "unmet_source", "unmet_list", "verbless",
    "background_gap",
)  # fmt: skip
"""What speaks for a candidate, in the order of the network's inputs."""

# What a number is divided by brings it near 1. Any other divisor would do as well: the network
# and the logistic were fitted on numbers brought to mean 0 and deviation 1, and the divisor is
# part of those. All the numbers below are part of the weights: with others, fit them again.

SIZE_DECADES = 4
"""The evidence `size` is 1 at 10 to this power of tools: the order of the largest catalogs."""

SCORES = 10
"""Divides scores of the network and their differences in the floor's evidence."""

COMPARED_WITH = 5
"""Places behind the best at which its lead is taken: behind as many hits as a search shows."""

FEW_TOOLS = 20
"""At so many tools the evidence `few` is one half; it goes to 1 below and to 0 above."""

SURE_FROM, SURER = 1.0, 0.3
"""From this logit on (a probability of 0.73) more evidence counts by this share: that a request is
served becomes certain long before it is certain that the first hit serves it."""

GAP = 0.2
"""By so much another kind of tool is clearly nearer, or the hit is; beyond it little more is said:
a hit far nearer than all of the background may still do another thing with the same subject."""

LIFT = 0.4, 0.5
"""By so much reading raises the floor's logit at most, of sentences and of keywords. One that says
nothing of any tool ("what number did it get?") may be read as anything."""

SURE_WITHOUT, FADES_WITHIN = 1.5, 1.0
"""From this logit on reading changes nothing of it, and close below it little."""

BELIEVED_OF_KEYWORDS = 0.5
"""So much of what reading says of keywords counts: of few words it is no surer than the floor."""

LOGIT_BOUND = 50.0
"""Beyond it a probability is 0 or 1 in any precision, and `exp` comes near its limit."""

_COLUMN = {name: i for i, name in enumerate(FEATURES)}
NAME_SHARE = _COLUMN["name_share"]
"""The column of `FEATURES` that says how much of a request a tool's name holds."""

OF_THE_BEST = (
    "coverage", "cosine", "cosine_z", "name_said", "clause_cosine", "clause_coverage",
    "best_coverage", "best_cosine", "length", "size", "against", "met", "name_cosine",
    "keywords", "unmet", "unmet_source", "unmet_list",
)  # fmt: skip
"""The evidence of the best candidate that the floor looks at: its first inputs."""
_OF_THE_BEST = [_COLUMN[name] for name in OF_THE_BEST]
_KEYWORDS = _COLUMN["keywords"]
KEYWORDS = OF_THE_BEST.index("keywords")
"""The floor's input that says how far a request is keywords."""


class Scorer:
    """One hidden layer over `FEATURES`, the logistics of the floor, and those of what was read.

    Args:
        weights: As read from JSON.
    """

    def __init__(self, weights: dict[str, Any]) -> None:
        import numpy as np

        def array(key: str) -> Any:
            return np.array(weights[key], dtype=np.float32)

        # The network was fitted on numbers brought to mean 0 and deviation 1; its first layer
        # does that, too.
        mean, deviation = array("mean"), array("deviation")
        self._w1 = array("w1") / deviation[:, None]
        self._b1 = array("b1") - mean @ self._w1
        self._w2, self._floor = array("w2"), array("floor")
        self._linear = array("linear") / deviation
        self._constant = -float(mean @ self._linear)
        self._read = array("read")

    def scores(self, features: Floats) -> Floats:
        """Return the score of each candidate."""
        import numpy as np

        hidden = np.tanh(features @ self._w1 + self._b1)
        return hidden @ self._w2 + (features @ self._linear + self._constant)

    def floor_logit(self, features: Floats, scores: Floats) -> float:
        """Return the logit that the best candidate serves the request."""
        return float(floor_logits(self._floor, floor_features(features, scores)))

    def read_logit(self, logit: float, features: Floats, read: Floats) -> float:
        """Return the same after the best candidates were read.

        Args:
            logit: The floor's without.
            features: What speaks for the candidates.
            read: The logits of what was read, in the order that they led to.
        """
        return read_logit(self._read, logit, features, read)


def floor_features(features: Floats, scores: Floats) -> Floats:
    """Say in a few numbers how well the best candidates fit: what the floor's logistics see."""
    import numpy as np

    row = features[int(scores.argmax())].tolist()
    ordered = np.sort(scores)[::-1]
    best = float(ordered[0])
    ahead = best - float(ordered[min(COMPARED_WITH, len(ordered) - 1)])
    next_behind = best - float(ordered[min(1, len(ordered) - 1)])
    coverage, cosine = row[_COLUMN["coverage"]], row[_COLUMN["cosine"]]
    size, gap = row[_COLUMN["size"]], row[_COLUMN["background_gap"]]
    few = _few(size)
    picked = [row[column] for column in _OF_THE_BEST]
    rest = (
        best / SCORES, ahead / SCORES, min(next_behind / SCORES, 1.0),
        few, few * cosine, few * ahead / SCORES,
        coverage * cosine, coverage * row[_COLUMN["length"]], size * cosine, size * coverage,
        gap, tanh(gap / GAP),
    )  # fmt: skip
    # Whether the tool does what is asked for: sentences and keywords say it in words of their own.
    verb, keywords = row[_COLUMN["verb"]], row[_COLUMN["keywords"]]
    same, other = max(verb, 0.0), max(-verb, 0.0)
    of_sentences = (same, other, row[_COLUMN["verbless"]], row[_COLUMN["name_said"]])
    by_voice = [(1 - keywords) * value for value in of_sentences]
    by_voice += [keywords * same, keywords * other]
    among_few = [few * value for value in by_voice]
    return np.array([*picked, *rest, *by_voice, *among_few], dtype=np.float32)


def floor_logits(floor: NDArray[Any], x: NDArray[Any]) -> Any:
    """Return the floor's logit of each row of inputs, or of the only one.

    Args:
        floor: The coefficients for sentences and those for keywords, each with its constant last.
        x: The inputs.
    """
    return judged(floor, x, x[..., KEYWORDS])


def read_features(logit: float, features: Floats, read: Floats) -> Floats:
    """Say in a few numbers what was read of the best candidates: what the logistics for it see.

    Args:
        logit: The floor's without.
        features: What speaks for the candidates.
        read: The logits of what was read, in the order that they led to.
    """
    import numpy as np

    first, best = float(read[0]), float(read.max())
    few = _few(float(features[0, _COLUMN["size"]]))
    x = (logit, first, best, few, few * first, few * logit)
    return np.array(x, dtype=np.float32)


def read_logit(logistics: NDArray[Any], logit: float, features: Floats, read: Floats) -> float:
    """Return the logit that the best candidate serves the request, after some were read.

    Args:
        logistics: For sentences and for keywords.
        logit: The floor's without.
        features: What speaks for the candidates.
        read: The logits of what was read, in the order that they led to.
    """
    x = read_features(logit, features, read)
    own = float(judged(logistics, x, features[0, _KEYWORDS]))
    keywords = float(judged_as_keywords(features[0, _KEYWORDS]))
    believed = min(max((SURE_WITHOUT - logit) / FADES_WITHIN, 0.0), 1.0)
    believed *= 1 - keywords * (1 - BELIEVED_OF_KEYWORDS)
    return min(believed * own + (1 - believed) * logit, logit + lift(features))


def lift(features: Floats) -> float:
    """Return by how much reading raises the floor's logit at most."""
    keywords = float(judged_as_keywords(features[0, _KEYWORDS]))
    return (1 - keywords) * LIFT[0] + keywords * LIFT[1]


def judged(logistics: NDArray[Any], x: NDArray[Any], keywords: Any) -> Any:
    """Return the logit of each row of inputs, or of the only one.

    Args:
        logistics: The coefficients for sentences and for keywords, each with its constant last.
        x: The inputs.
        keywords: How far each request is keywords.
    """
    both = x @ logistics[:, :-1].T + logistics[:, -1]
    share = judged_as_keywords(keywords)
    return (1 - share) * both[..., 0] + share * both[..., 1]


def _few(size: float) -> float:
    """Return how far a catalog is one of few tools, by the evidence of its size.

    Among few tools little nearness tells much: what stands out there need not be near.
    """
    return FEW_TOOLS / (FEW_TOOLS + 10 ** (SIZE_DECADES * size))


def probability(logit: float) -> float:
    """Return the probability that the first hit serves, by the logit that the request is served."""
    logit = min(logit, SURE_FROM + SURER * (logit - SURE_FROM))
    return 1 / (1 + exp(-min(max(logit, -LOGIT_BOUND), LOGIT_BOUND)))


def judged_as_keywords(keywords: Any) -> Any:
    """Return how far the floor judges a request as keywords: wholly where half of it is."""
    import numpy as np

    return np.minimum(2 * keywords, 1)


@lru_cache(maxsize=1)
def scorer() -> Scorer:
    """Return the scorer of the package, loaded once."""
    return Scorer(json.loads((WEIGHTS / "scorer.json").read_text(encoding="utf-8")))
