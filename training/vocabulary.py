"""Choose the table's rows: BERT's pieces, words that BERT would cut, pairs of words that belong together."""

from __future__ import annotations

import json
import math
from collections import Counter
from itertools import pairwise
from pathlib import Path

from catalog import rows
from text import NUMBER, Pieces, words

DATA = Path(__file__).parent / ".data"
WORDS, PAIRS = 7000, 13000
STOP = frozenset(
    """
    a an the of to in for on at by with and or from is are be as it its this that your you i
    me my we our can will if not no any all has have was were which who what when where how
    do does did there their they them s t e g use used using
    """.split()
)


def build(bert: list[str]) -> list[str]:
    """Return the vocabulary in row order."""
    kept = [NUMBER] + [
        p
        for p in bert
        if not p.startswith("[") and (p.startswith("##") or words(p) == [p]) and not p.isdigit()
    ]
    known = Pieces(kept)
    single: Counter[str] = Counter()
    pair: Counter[tuple[str, str]] = Counter()
    texts = [" . ".join((t[1], t[4], t[2])) for t in rows(DATA / "tools.jsonl.gz")]
    texts += [p["query"] for p in rows(DATA / "pairs.jsonl.gz")]
    texts += [" . ".join(g) for g in rows(DATA / "glosses.jsonl.gz")]
    for text in texts:
        for sentence in set(text.split(".")):
            found = words(sentence)[:80]
            single.update(found)
            pair.update(set(pairwise(found)))
    whole = [
        w for w, n in single.most_common() if n >= 12 and w.isalpha() and len(known.pieces(w)) > 1
    ][:WORDS]
    total = sum(single.values())
    scored = []
    for (left, right), n in pair.items():
        if (
            n < 15
            or left in STOP
            or right in STOP
            or not (left.isalpha() and right.isalpha())
            or left == right
        ):
            continue
        if min(len(left), len(right)) < 2:
            continue
        information = math.log(n * total / (single[left] * single[right]))
        if information > 2.0:
            scored.append((math.log(n) * information, left + " " + right))
    scored.sort(key=lambda s: (-s[0], s[1]))
    return kept + whole + [p for _, p in scored[:PAIRS]]


if __name__ == "__main__":
    vocabulary = build((DATA / "vocab.txt").read_text(encoding="utf-8").splitlines())
    (DATA / "vocabulary.json").write_text(
        json.dumps(vocabulary, ensure_ascii=False), encoding="utf-8"
    )
