"""The floor: is a request served at all? Logistics for it, and others for what was read.

Both are fitted on the evidence of `fit.py`'s cases, one for sentences and one for keywords each. Where
they stand is the one thing that is chosen on dev sets (`cost.py`, `report.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import cost
import dataset
import numpy as np
from network import Array, Case, even, logistic

from toolfold import Settings
from toolfold.search._scorer import Scorer, floor_features, judged, read_features

BARS = cost.Bars(sentence=0.0, keywords=-1.3)
"""The logits that the default floor asks for, chosen on dev by what they cost and let pass. Higher
ones refuse requests in other words than the tools', of which the bundled catalog's own have most."""

READ_BARS = cost.Bars(sentence=-0.5, keywords=-0.4)
"""The same for the logistics of what was read, before they are weighed against the others'."""

AMONG_FEW = 0.5, 0.0
"""By so much these are higher among few tools, where what is near is a near miss more often."""

READ_INPUTS, FEW_COLUMN = 6, 3
"""How many inputs the logistics of what was read have, and which says how few tools there are."""

UNREAD = ("family", "real", "several", "unserved", "small talk")
"""How the groups of requests begin that the reader was not trained on."""

FOLDS = 4
"""In so many parts the sources are left out in turn, to see where the floor should be."""

UNSERVED = {
    "near": 2.0, "unserved, asked": 3.0, "unserved, people": 1.0, "everyday": 1.0, "asked": 1.0,
    "people": 0.3,
}  # fmt: skip
"""What each kind of request that nothing serves weighs in the floor: who asks is a model."""

READ_UNSERVED = UNSERVED | {"people": 3.0, "asked": 3.0}
"""The same for what was read. Reading tells near misses much better, and what is far hardly: with the
weights above it is believed there, too, and more of that passes than without."""

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


class Examples(NamedTuple):
    """What logistics are fitted on, one row a request."""

    x: Array
    """Their inputs."""
    served: Array
    """Whether a tool serves it."""
    keywords: Array
    """How far it is keywords."""
    groups: Array
    sources: Array

    def some(self, chosen: Array) -> Examples:
        """Return those that are chosen."""
        return Examples(*(column[chosen] for column in self))


def is_unread(group: str) -> bool:
    """Whether the reader was not trained on a group of requests, or not with tools like these."""
    is_elsewhere = " of vendors" in group or (group.startswith("older") and group.endswith("none"))
    return group.startswith(UNREAD) or is_elsewhere


def floor(cases: Sequence[Case], scorer: Scorer) -> Array:
    """Return the logistics for what was found, set where they were chosen to stand."""
    rows: list[Array] = []
    kept: list[Case] = []
    for case in cases:
        scores = scorer.scores(case.features)
        order = np.argsort(-scores, kind="stable")
        if is_lost(case, order):
            continue
        rows.append(floor_features(case.features, scores))
        kept.append(case)
    examples = examples_of(rows, kept)
    passes_without_source(examples, UNSERVED, BARS)
    return moved(logistics(examples, UNSERVED), BARS)


def read_floor(cases: Sequence[Case], scorer: Scorer, found: Array) -> Array:
    """Return the logistics for what was read, set where they were chosen to stand.

    Args:
        cases: The cases.
        scorer: Orders what was found.
        found: The logistics for what was found.
    """
    rows: list[Array] = []
    kept: list[Case] = []
    for case in cases:
        if case.read is None:
            continue
        scores = scorer.scores(case.features)
        # What is clear without reading is fitted on, too: that is where most is known.
        one = cost.read(case.features, scores, case.read, found, always=True)
        if not len(one.logits) or is_lost(case, one.order):
            continue
        rows.append(read_features(one.floor, case.features, one.logits))
        kept.append(case)
    examples = examples_of(rows, kept)
    print("what was read:")
    passes_without_source(examples, READ_UNSERVED, READ_BARS)
    coefficients = moved(logistics(examples, READ_UNSERVED), READ_BARS)
    coefficients[:, FEW_COLUMN] -= AMONG_FEW
    return coefficients


def is_lost(case: Case, order: Array) -> bool:
    """Whether a served request finds none of its tools: nothing is lost where it is refused."""
    return case.wanted > 0 and not case.gold[order[: cost.HITS]].any()


def examples_of(rows: Sequence[Array], cases: Sequence[Case]) -> Examples:
    """Return the inputs of cases with what is known of them."""
    return Examples(
        np.array(rows, np.float64),
        np.array([case.wanted > 0 for case in cases]),
        np.array([case.features[0, cost.KEYWORDS] for case in cases]),
        np.array([case.group for case in cases]),
        np.array([case.source for case in cases]),
    )


def moved(coefficients: Array, bars: cost.Bars) -> Array:
    """Return logistics by which a request at the bar is as probable as the default floor asks for."""
    wanted = Settings().relevance_floor
    coefficients[:, -1] += np.log(wanted / (1 - wanted)) - np.array(bars)
    return coefficients


def logistics(examples: Examples, unserved: Mapping[str, float]) -> Array:
    """Return the logistics for sentences and for keywords: of the same examples, weighed apart.

    Args:
        examples: The examples.
        unserved: What each kind of request that nothing serves weighs.
    """
    served, groups = examples.served.astype(float), examples.groups.tolist()
    each = (shares(groups, own, unserved) for own in WEIGHED)
    return np.stack([logistic(examples.x, served, own) for own in each])


def passes_without_source(
    examples: Examples, unserved: Mapping[str, float], bars: cost.Bars
) -> None:
    """Print what passes a floor that was fitted without the sources it is tried on."""
    part = np.array([dataset.bucket(source) % FOLDS for source in examples.sources.tolist()])
    logits = np.zeros(len(part))
    for fold in range(FOLDS):
        coefficients = logistics(examples.some(part != fold), unserved)
        own = examples.some(part == fold)
        logits[part == fold] = judged(coefficients, own.x, own.keywords)
    is_passed = logits >= bars.of(examples.keywords)
    for group in sorted(set(examples.groups.tolist())):
        share = np.mean(is_passed[examples.groups == group])
        print(f"{group:36s} passes {share:.3f} without its source")


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


def shares(names: Sequence[str], weighed: Weighed, unserved: Mapping[str, float]) -> Array:
    """Return what each case weighs in the floor: half of it the served, half of it the others.

    Args:
        names: The groups of the cases.
        weighed: What some of them weigh in this logistic.
        unserved: What each kind of request that nothing serves weighs.
    """
    groups, kinds = np.array(names), np.array([kind(name) for name in names])
    weight = np.zeros(len(groups))
    for own in ("", *unserved):
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
        share = unserved[own] / sum(unserved.values()) if own else 1
        weight[members] = mine / mine.sum() * share
    return weight / 2
