"""The arrays of an index: taken from the cache, or made, tool by changed tool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from toolfold.search._cache import CACHED_FROM, Cache, Snapshot, cache_folder
from toolfold.search._columns import Columns, columns_of
from toolfold.search._dense import ToolArrays, table, tool_arrays
from toolfold.search._document import READ_TOGETHER, Document, document
from toolfold.tool import Tool

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["IndexArrays", "index_arrays"]


class IndexArrays(NamedTuple):
    """What an index of a list of tools is made of."""

    columns: Columns
    """Their words."""
    vectors: NDArray[np.float32]
    excerpts: NDArray[np.uint16]
    """What is read of each together with a request."""


def index_arrays(tools: Sequence[Tool], cache: str) -> IndexArrays:
    """Return the words, the vectors and the excerpts of tools.

    Args:
        tools: The tools.
        cache: Where those of a large list are kept: `auto`, `off` or a folder.
    """
    import numpy as np

    folder = cache_folder(cache) if len(tools) >= CACHED_FROM else None
    if folder is None:
        columns, (vectors, excerpts) = _made(tools)
        return IndexArrays(columns, vectors.astype(np.float32), excerpts)
    kept = Cache(folder, table().version)
    digests = tuple(tool.digest for tool in tools)
    snapshot = kept.load(digests)
    if snapshot is None:
        columns, arrays = _made(tools, _known(kept.newest(), frozenset(digests)))
        snapshot = Snapshot(digests, columns, *arrays)
        kept.save(snapshot)
    vectors = snapshot.vectors.astype(np.float32)
    return IndexArrays(snapshot.columns, vectors, snapshot.excerpts)


class _Known(NamedTuple):
    """What an earlier list has of the tools of this one, by their digests.

    It is no matter for the memos: a large list is more than they hold, and would push its own
    beginning out before it is read.
    """

    documents: Mapping[str, Document]
    arrays: Mapping[str, tuple[NDArray[np.float16], NDArray[np.uint16]]]
    """Vectors and excerpts."""


def _made(tools: Sequence[Tool], known: _Known | None = None) -> tuple[Columns, ToolArrays]:
    import numpy as np

    documents, arrays = known or _Known({}, {})
    own: list[Document] = []
    parts: list[ToolArrays] = []
    # A text in another language is read once for its words and its vector, if both are made soon.
    for start in range(0, max(len(tools), 1), READ_TOGETHER):
        some = tools[start : start + READ_TOGETHER]
        own += [documents.get(tool.digest) or document(tool) for tool in some]
        parts.append(tool_arrays(some, arrays))
    joined = (np.concatenate(rows) for rows in zip(*parts, strict=True))
    return columns_of(own), ToolArrays(*joined)


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
        {digest: (snapshot.vectors[i], snapshot.excerpts[i]) for digest, i in same},
    )
