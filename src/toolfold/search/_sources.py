"""How near the sources of a list of tools are to a request.

A request for a server's subject is near to the mean of its tools, also where the tool that
serves it says little.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from toolfold.search.lexical import Posting

    Floats = NDArray[np.float32]

__all__ = ["SOURCES_AT_MOST", "SourceEvidence", "SourceMeans"]

SOURCES_AT_MOST = 2_000
"""So many are compared with each request; where there are more, a source says little."""


class SourceEvidence(Protocol):
    """Where some tools come from."""

    @property
    def numbers(self) -> NDArray[np.intp] | None:
        """The number of each tool's source, where sources tell something."""
        ...

    def gaps(self, queries: Floats, places: NDArray[np.intp]) -> Floats:
        """Return how far each tool's source is behind the nearest, for the need it serves best."""
        ...

    def holding(self, term: str, posting: Posting | None) -> Floats:
        """Return 1 for each source that holds a term, by number, and 0 for the others.

        Args:
            term: The term.
            posting: The tools of the list that hold it.
        """
        ...


class SourceMeans:
    """The means of each source's tools.

    Args:
        vectors: The tools' vectors, one a row.
        sources: The source of each tool; empty where it has none.
    """

    def __init__(self, vectors: Floats, sources: Sequence[str]) -> None:
        import numpy as np

        numbers = {name: i for i, name in enumerate(sorted(set(sources)))}
        self._means: Floats | None = None
        self.numbers: NDArray[np.intp] | None = None
        """The number of each tool's source, where sources tell something."""
        if not 2 <= len(numbers) <= SOURCES_AT_MOST:
            return
        own = self.numbers = np.array([numbers[name] for name in sources], dtype=np.intp)
        order = np.argsort(own, kind="stable")
        starts = np.searchsorted(own[order], np.arange(len(numbers)))
        # Sums in double precision, so that the order of the tools does not show.
        sums = np.add.reduceat(vectors[order].astype(np.float64), starts, axis=0)
        norms = np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-6)
        self._means = (sums / norms).astype(np.float32)

    def gaps(self, queries: Floats, places: NDArray[np.intp]) -> Floats:
        """Return how far each tool's source is behind the nearest, for the need it serves best."""
        import numpy as np

        if self._means is None or self.numbers is None:
            return np.zeros(len(places), dtype=np.float32)
        near = queries @ self._means.T
        near -= near.max(axis=1, keepdims=True)
        return near[:, self.numbers[places]].max(axis=0)

    def holding(self, term: str, posting: Posting | None) -> Floats:
        """Return 1 for each source that holds a term, by number, and 0 for the others."""
        import numpy as np

        held = np.zeros(0 if self._means is None else len(self._means), dtype=np.float32)
        if posting is not None and self.numbers is not None:
            held[self.numbers[posting.tools]] = 1
        return held
