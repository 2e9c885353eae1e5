"""The arrays of an index: taken from the cache, or made, tool by changed tool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from toolfold.search._cache import CACHED_FROM, Cache, Snapshot, cache_folder
from toolfold.search._columns import Columns, columns_of
from toolfold.search._dense import table, tool_vectors
from toolfold.search._document import READ_TOGETHER, Document, document
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
        columns, vectors = _made(tools, _known(kept.newest(), frozenset(digests)))
        snapshot = Snapshot(digests, columns, vectors)
        kept.save(snapshot)
    return snapshot.columns, snapshot.vectors.astype(np.float32)


class _Known(NamedTuple):
    """What an earlier list has of the tools of this one, by their digests.

    It is no matter for the memos: a large list is more than they hold, and would push its own
    beginning out before it is read.
    """

    documents: Mapping[str, Document]
    vectors: Mapping[str, NDArray[np.float16]]


def _made(
    tools: Sequence[Tool], known: _Known | None = None
) -> tuple[Columns, NDArray[np.float16]]:
    import numpy as np

    documents, vectors = known or _Known({}, {})
    own: list[Document] = []
    rows: list[NDArray[np.float16]] = []
    # A text in another language is read once for its words and its vector, if both are made soon.
    for start in range(0, max(len(tools), 1), READ_TOGETHER):
        some = tools[start : start + READ_TOGETHER]
        own += [documents.get(tool.digest) or document(tool) for tool in some]
        rows.append(tool_vectors(some, vectors))
    return columns_of(own), np.concatenate(rows)


def _known(snapshot: Snapshot | None, wanted: frozenset[str]) -> _Known | None:
    """Take from an earlier list what is the same in this one, so that only changes are made."""
    if snapshot is None:
        return None
    same = [(digest, i) for i, digest in enumerate(snapshot.digests) if digest in wanted]
    if not same:
        return None
    documents = snapshot.columns.documents()
    return _Known(
        {digest: documents[i] for digest, i in same},
        {digest: snapshot.vectors[i] for digest, i in same},
    )
