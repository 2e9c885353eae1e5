"""What words for tools are worth, and what bad ones cost: scripted authors, one corpus a line.

`python -m bench.authors metatool azure-mcp` prints recall@1 and recall@5 without words, and the
change in points with each author's. Half of a corpus's requests are written for the tools that
serve them; the other half is searched for.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping, Sequence

from bench import data
from toolfold import Tool
from toolfold._bounds import first_sentence
from toolfold.evaluation import load_corpus
from toolfold.evaluation.corpus import LabelledRequest
from toolfold.search import Searcher
from toolfold.search._dense import tool_vectors
from toolfold.search._tool_words import ToolWords, WordsEntry, clean_phrases, content_digest
from toolfold.search.enriched import Enriched, EnrichedSearcher
from toolfold.search.hybrid import Hybrid

Author = Mapping[str, Sequence[str]]

_EACH, _TAKEN, _TESTED, _SEED = 8, 2_400, 300, 7
_SPLITS = {"metatool": "dev", "seal-tools": "dev"}
_SAME = ("create a new report of the user account", "get the list of all", "send a message")


def main() -> None:
    """Print a line a corpus and author."""
    folder = data.corpora()
    if folder is None:
        print("note: skipped, the corpora are absent", file=sys.stderr)
        return
    for name in sys.argv[1:] or ("metatool", "azure-mcp"):
        corpus = load_corpus(folder / name, split=_SPLITS.get(name))
        requests = [request for request in corpus.requests if request.gold]
        random.Random(_SEED).shuffle(requests)
        half = len(requests[:_TAKEN]) // 2
        tools = corpus.catalog.tools
        tested = requests[half:_TAKEN][:_TESTED]
        before = _recall(Hybrid().searcher(tools), tools, tested)
        print(f"{name}: {before[0]:.3f} {before[1]:.3f}")
        for label, author in _authors(tools, requests[:half]).items():
            searcher = Enriched(Hybrid(), _words(tools, author)).searcher(tools)
            weight = searcher.weight if isinstance(searcher, EnrichedSearcher) else None
            after = _recall(searcher, tools, tested)
            first, five = (100 * (new - old) for new, old in zip(after, before, strict=True))
            print(f"  {label}: weight {weight}, {first:+.1f} {five:+.1f}", flush=True)


def _authors(tools: Sequence[Tool], history: Sequence[LabelledRequest]) -> dict[str, Author]:
    good: dict[str, list[str]] = {}
    for request in history:
        if len(request.gold) == len(request.needs) == 1:
            own = good.setdefault(next(iter(request.gold)), [])
            own.extend([request.query] if len(own) < _EACH else [])
    filled = {t.name: good.get(t.name) or [first_sentence(t.description, 160)] for t in tools}
    draw = random.Random(_SEED)
    others = draw.sample(list(filled), len(filled))
    vocabulary = sorted({word for tool in tools for word in tool.description.split()})
    vectors = tool_vectors(tools).astype("float32")
    near = vectors @ vectors.T
    near[range(len(tools)), range(len(tools))] = -1
    siblings: list[int] = near.argmax(axis=1).tolist()
    return {
        "good": good,
        "good, and the first sentence of others": filled,
        "the nearest other tool's": {
            tool.name: filled[tools[i].name] for tool, i in zip(tools, siblings, strict=True)
        },
        "another tool's": {name: filled[other] for name, other in zip(filled, others, strict=True)},
        "random words": {
            name: [" ".join(draw.choices(vocabulary, k=6)) for _ in range(_EACH)] for name in filled
        },
        "the same for all": dict.fromkeys(filled, _SAME),
        "one tool with everybody's": {
            tools[0].name: [text for texts in list(good.values())[:3] for text in texts]
        },
    }


def _words(tools: Sequence[Tool], author: Author) -> ToolWords:
    return ToolWords.of(
        WordsEntry(tool.name, content_digest(tool), clean_phrases(author[tool.name]))
        for tool in tools
        if tool.name in author
    )


def _recall(
    searcher: Searcher, tools: Sequence[Tool], requests: Sequence[LabelledRequest]
) -> tuple[float, float]:
    """Return recall@1 and recall@5."""
    first = five = 0.0
    for request in requests:
        found = [
            [tools[match.position].name for match in searcher.search(need, 5)]
            for need in request.needs
        ]
        first += len(request.gold.intersection(n for own in found for n in own[:1])) / len(
            request.gold
        )
        five += len(request.gold.intersection(n for own in found for n in own)) / len(request.gold)
    return first / len(requests), five / len(requests)


if __name__ == "__main__":
    main()
