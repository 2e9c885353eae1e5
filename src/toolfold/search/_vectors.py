"""The vectors of a list of tools, and what is nearest to a few query vectors.

In a large list a first look at the leading dimensions, which carry most of what tells
tools apart, leaves few to be compared in full. Products are taken in blocks too small for
the linear-algebra library to spread over threads: on a busy machine waiting for those
costs more than the product.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Spread = Callable[[Floats], tuple[float, float]]

__all__ = ["LEADING", "SHORTLIST", "Near", "Spread", "Vectors", "best_places", "spread_of"]

LARGE = 12_000
"""From how many tools on a first look is worth its while."""

LEADING = 64
"""How many dimensions the first look takes."""

SHORTLIST = 200
"""How many tools it leaves."""

_BLOCK = 512
_SAMPLED = 1_024


class Near(NamedTuple):
    """What lies near some query vectors."""

    candidates: NDArray[np.intp]
    """The places of the nearest tools, of any of the queries."""
    best: Floats
    """The cosine of the nearest, for each query."""
    mean: float
    """The mean cosine of the first query over all tools."""
    deviation: float
    """Its standard deviation."""


class Vectors:
    """Unit vectors, one a tool.

    Args:
        matrix: The vectors, one a row.
        spread: Says mean and standard deviation of a query's cosine over all tools, where the
            rows are only some of them.
    """

    def __init__(self, matrix: Floats, spread: Spread | None = None) -> None:
        import numpy as np

        self._matrix = matrix
        self._all = spread
        self._size = len(matrix)
        self._looks_twice = self._size >= LARGE
        dimensions = LEADING if self._looks_twice else matrix.shape[1]
        self._blocks = [
            np.ascontiguousarray(matrix[i : i + _BLOCK, :dimensions].T)
            for i in range(0, self._size, _BLOCK)
        ]
        if self._looks_twice:
            # Sums in double precision, so that the order of the tools does not show.
            self._sum = np.zeros(matrix.shape[1])
            self._moment = np.zeros((matrix.shape[1], matrix.shape[1]))
            for i in range(0, self._size, _BLOCK):
                block = matrix[i : i + _BLOCK]
                self._sum += block.sum(axis=0, dtype=np.float64)
                self._moment += block.T @ block

    def search(self, queries: Floats, k: int, k_more: int) -> Near:
        """Return the `k` nearest of the first query and the `k_more` nearest of each other."""
        import numpy as np

        dimensions = LEADING if self._looks_twice else queries.shape[1]
        leading = np.ascontiguousarray(queries[:, :dimensions])
        scores = np.empty((len(queries), self._size), dtype=np.float32)
        for i, block in enumerate(self._blocks):
            np.matmul(leading, block, out=scores[:, i * _BLOCK : i * _BLOCK + block.shape[1]])
        found: list[NDArray[np.intp]] = []
        best = np.empty(len(queries), dtype=np.float32)
        for i, query in enumerate(queries):
            places = best_places(scores[i], SHORTLIST if self._looks_twice else k)
            values = self._matrix[places] @ query if self._looks_twice else scores[i][places]
            best[i] = values.max()
            wanted = k_more if i else k
            found.append(places if wanted >= len(places) else places[best_places(values, wanted)])
        own = queries[0] if self._looks_twice else scores[0]
        spread = (
            self._spread(own.astype(np.float64)) if self._all is None else self._all(queries[0])
        )
        mean, deviation = spread
        return Near(found[0] if len(found) == 1 else np.concatenate(found), best, mean, deviation)

    def at(self, places: NDArray[np.intp]) -> Floats:
        """Return the vectors of the tools at some places, one a row."""
        return self._matrix.take(places, axis=0)

    def exact(self, queries: Floats, places: Sequence[int] | NDArray[Any]) -> Floats:
        """Return the cosines of queries (rows) with the tools at some places (columns)."""
        return queries @ self._matrix[places].T

    def _spread(self, own: NDArray[np.float64]) -> tuple[float, float]:
        """Return mean and standard deviation of a query's cosine over all tools.

        Args:
            own: The query where only a part of the tools is compared with it, else its cosines.
        """
        if self._looks_twice:
            mean, square = float(self._sum @ own), float(own @ self._moment @ own)
        else:
            mean, square = float(own.sum()), float(own @ own)
        return spread_of(self._size, mean, square)


def spread_of(size: int, total: float, square: float) -> tuple[float, float]:
    """Return mean and standard deviation of numbers, by their sum and the sum of their squares."""
    mean = total / size
    variance = square / size - mean * mean
    return mean, max(max(variance, 0.0) ** 0.5, 1e-4)


def best_places(scores: NDArray[Any], k: int) -> NDArray[np.intp]:
    """Return the places of the k highest scores, in no order; of all where they are fewer."""
    import numpy as np

    if k >= len(scores):
        return np.arange(len(scores))
    step = len(scores) // _SAMPLED
    if step >= 8:
        # What a sample says is exceeded by some three times k, few to look through; where it
        # errs and too few are left, all are looked through after all.
        sample = scores[::step]
        kept = min(len(sample) - 1, 3 * k // step + 4)
        edge = np.partition(sample, len(sample) - kept)[len(sample) - kept]
        places = np.flatnonzero(scores >= edge)
        if len(places) >= k:
            values = scores[places]
            return places[np.argpartition(values, len(values) - k)[len(values) - k :]]
    return np.argpartition(scores, len(scores) - k)[len(scores) - k :]
