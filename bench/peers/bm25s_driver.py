"""The bm25s library with its English stop words and the Snowball stemmer.

One layer is timed: `search`, from the query's text to the names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import bm25s
import Stemmer
from protocol import Found, Tool, document, serve, timed


def load(tools: Sequence[Tool], limit: int) -> Callable[[str], Found]:
    """Index the tools and return the search."""
    stemmer = Stemmer.Stemmer("english")
    names = [tool["name"] for tool in tools]

    def tokens(texts: list[str], ids: bool) -> object:
        return bm25s.tokenize(
            texts, stopwords="en", stemmer=stemmer, return_ids=ids, show_progress=False
        )

    index = bm25s.BM25(k1=1.5, b=0.75)
    index.index(tokens([document(tool) for tool in tools], ids=True), show_progress=False)
    k = min(limit, len(tools))

    def ranked(query: str) -> list[str]:
        hits, scores = index.retrieve(tokens([query], ids=False), k=k, show_progress=False)
        return [names[i] for i, score in zip(hits[0], scores[0], strict=True) if score > 0]

    def search(query: str) -> Found:
        found, ms = timed(lambda: ranked(query))
        return Found(found, {"search": ms})

    return search


if __name__ == "__main__":
    serve(load)
