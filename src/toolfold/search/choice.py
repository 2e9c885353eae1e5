"""The rankers by name, and the one that settings ask for."""

from __future__ import annotations

from collections.abc import Callable

from toolfold.search._tool_words import load_words
from toolfold.search.ranker import Ranker
from toolfold.settings import Settings

__all__ = ["RANKERS", "chosen_ranker"]


def _hybrid(settings: Settings) -> Ranker:
    from toolfold.search.hybrid import Hybrid

    return Hybrid(settings.cache_dir)


def _bm25(settings: Settings) -> Ranker:
    from toolfold.search.lexical import BM25

    return BM25()


def _keyword(settings: Settings) -> Ranker:
    from toolfold.search.keyword import Keyword

    return Keyword()


RANKERS: dict[str, Callable[[Settings], Ranker]] = {
    "hybrid": _hybrid,
    "bm25": _bm25,
    "keyword": _keyword,
}
"""The rankers that come with toolfold, by name. Each is imported when it is chosen."""


def chosen_ranker(settings: Settings, default: str) -> Ranker:
    """Return the ranker that settings ask for, its matches reordered where they say so.

    Words that an author wrote are known to all but the simple `keyword`.

    Args:
        settings: How to rank.
        default: The name of the ranker that `default` stands for.
    """
    ranker = RANKERS[default if settings.ranker == "default" else settings.ranker](settings)
    words = load_words(settings.enriched) if ranker.name != "keyword" else None
    if words is not None:
        from toolfold.search.enriched import Enriched

        ranker = Enriched(ranker, words)
    if not settings.reranker.enabled:
        return ranker
    from toolfold.search.embedding_endpoint import Reranked

    return Reranked(ranker, settings.reranker)
