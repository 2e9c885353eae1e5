"""The arrays of an index: taken from the cache, or made, tool by changed tool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from toolfold.search._cache import CACHED_FROM, Cache, Snapshot, cache_folder
from toolfold.search._columns import Columns, columns_of
from toolfold.search._dense import remember_vectors, table, tool_vectors
from toolfold.search._document import document, remember_documents
from toolfold.tool import Tool

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["index_arrays"]


def index_arrays(tools: Sequence[Tool], cache: str) -> tuple[Columns, NDArray[np.float32]]:
    """Return the words and the vectors of tools.

    Args:
        tools: The tools.
        cache: Where those of a large list are kept: `auto`, `off` or a folder.
    """
    import numpy as np

    folder = cache_folder(cache) if len(tools) >= CACHED_FROM else None
    if folder is None:
        columns, vectors = _made(tools)
        return columns, vectors.astype(np.float32)
    kept = Cache(folder, table().version)
    digests = tuple(tool.digest for tool in tools)
    snapshot = kept.load(digests)
    if snapshot is None:
        _remember(kept.newest(), frozenset(digests))
        columns, vectors = _made(tools)
        snapshot = Snapshot(digests, columns, vectors)
        kept.save(snapshot)
    return snapshot.columns, snapshot.vectors.astype(np.float32)


def _made(tools: Sequence[Tool]) -> tuple[Columns, NDArray[np.float16]]:
    return columns_of([document(tool) for tool in tools]), tool_vectors(tools)


def _remember(snapshot: Snapshot | None, wanted: frozenset[str]) -> None:
    """Take from an earlier list what is the same in this one, so that only changes are made."""
    if snapshot is None:
        return
    same = [i for i, digest in enumerate(snapshot.digests) if digest in wanted]
    if not same:
        return
    documents = snapshot.columns.documents()
    remember_documents([snapshot.digests[i] for i in same], [documents[i] for i in same])
    remember_vectors([snapshot.digests[i] for i in same], snapshot.vectors[same])
