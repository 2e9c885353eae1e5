"""The words and vectors of a list of tools, as arrays: what an index is made of.

Names and numbers only. Arrays of a large list are kept in the cache folder; whatever is
made of them depends on the set of tools alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from toolfold.search._document import FIELDS, Document

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Columns", "columns_of"]


class Columns(NamedTuple):
    """The documents of a list of tools, one after the other."""

    vocabulary: tuple[str, ...]
    """The terms, by number."""
    starts: NDArray[np.int64]
    """Where each tool's entries begin; one more than there are tools."""
    terms: NDArray[np.int32]
    """The term of each entry."""
    fields: NDArray[np.uint8]
    """The field of each entry."""
    counts: NDArray[np.uint8]
    """How often the term stands in the field."""
    lengths: NDArray[np.int32]
    """The length of each field of each tool."""

    @property
    def size(self) -> int:
        """How many tools there are."""
        return len(self.starts) - 1

    def documents(self) -> list[Document]:
        """Return the documents again, one a tool."""
        starts: list[int] = self.starts.tolist()
        terms: list[int] = self.terms.tolist()
        fields, counts = self.fields.tobytes(), self.counts.tobytes()
        words = self.vocabulary
        return [
            Document(
                tuple([words[t] for t in terms[start:end]]),
                fields[start:end],
                counts[start:end],
                tuple(lengths),
            )
            for start, end, lengths in zip(starts, starts[1:], self.lengths.tolist(), strict=False)
        ]


def columns_of(documents: Sequence[Document]) -> Columns:
    """Return documents as arrays."""
    import numpy as np

    numbers: dict[str, int] = {}
    terms: list[int] = []
    for item in documents:
        terms.extend([numbers.setdefault(term, len(numbers)) for term in item.terms])
    sizes = np.fromiter((len(item.terms) for item in documents), np.int64, len(documents))
    lengths = np.array([item.lengths for item in documents], dtype=np.int32)
    return Columns(
        vocabulary=tuple(numbers),
        starts=np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes))),
        terms=np.array(terms, dtype=np.int32),
        fields=np.frombuffer(b"".join(item.fields for item in documents), dtype=np.uint8),
        counts=np.frombuffer(b"".join(item.counts for item in documents), dtype=np.uint8),
        lengths=lengths.reshape(len(documents), len(FIELDS)),
    )
