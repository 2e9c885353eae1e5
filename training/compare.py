"""Compare models through the package's own search: recall@5 and milliseconds, set by set.

python training/compare.py static TABLE.npz SCORER.json --split dev
python training/compare.py minilm MODEL.onnx SCORER.json --split test
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np
from catalog import CORPORA, TEST_SETS
from fit import StaticModel

from toolfold.evaluation import load_corpus
from toolfold.evaluation.measure import recall
from toolfold.search._columns import columns_of
from toolfold.search._document import document
from toolfold.search._scorer import Scorer
from toolfold.search._sources import SourceMeans
from toolfold.search._vectors import Vectors
from toolfold.search.hybrid import HybridSearcher
from toolfold.search.lexical import Words


def main() -> None:
    """Print a row a corpus, and the mean."""
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=("static", "minilm"))
    parser.add_argument("model", type=Path)
    parser.add_argument("scorer", type=Path)
    parser.add_argument("--split", default="dev")
    arguments = parser.parse_args()
    if arguments.kind == "static":
        model: Any = StaticModel.read(arguments.model)
    else:
        from encoder import Encoder

        model = Encoder(arguments.model)
    scorer = Scorer(json.loads(arguments.scorer.read_text(encoding="utf-8")))
    names = ("seal-tools", "metatool") if arguments.split == "dev" else TEST_SETS
    means = []
    for name in names:
        corpus = load_corpus(CORPORA / name, split=arguments.split)
        tools = corpus.catalog.tools
        started = time.perf_counter()
        vectors = model.tools(tools).astype(np.float32)
        a_tool = (time.perf_counter() - started) / len(tools) * 1e3
        order = sorted(range(len(tools)), key=lambda i: tools[i].digest)
        words = Words(columns_of([document(tool) for tool in tools]))
        places = [tool.name for tool in tools]
        sources = SourceMeans(vectors, [tool.source or "" for tool in tools])
        searcher = HybridSearcher(words, Vectors(vectors), places, order, model, scorer, sources)
        found, times = [], []
        for request in corpus.requests:
            started = time.perf_counter()
            matches = searcher.search(request.query, 5)
            times.append((time.perf_counter() - started) * 1e3)
            found.append(recall(request, [places[m.position] for m in matches], 5))
        means.append(fmean(found))
        print(
            f"{name:16s} recall@5 {means[-1]:.3f}  {median(times):.2f} ms a request, "
            f"{a_tool:.2f} ms a tool",
            flush=True,
        )
    print(f"mean recall@5, no floor: {fmean(means):.4f}")


if __name__ == "__main__":
    main()
