"""Whether another kind of tool, one that a list lacks, would be nearer to a request.

Every list has a nearest tool, and how near it is says little of whether it serves: short requests
are near to much, odd ones to nothing. So the nearest tool is compared with the tools of a
background: some thousand of many kinds, of which the package keeps the vectors and nothing else.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from toolfold.search._vectors import LEADING, best_places

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

__all__ = ["Background"]

RIVALS = 12
"""With how many tools of the background a list's own are compared, at most: those that a first look
at the leading dimensions leaves."""

ALIKE = 0.4
"""From this cosine on a tool of the background is of the kind of the one it is compared with, and
counts the less the more so: that a list's tool has its like elsewhere says nothing against it."""

_BLOCK = 2_048
"""So many are looked at in one product, of matrices: the library spreads it over no threads."""


class Background:
    """The vectors of tools of many kinds.

    Args:
        vectors: One a row, in whole numbers; what each row is multiplied by is of no consequence.
    """

    def __init__(self, vectors: NDArray[np.int8]) -> None:
        import numpy as np

        self._vectors = vectors
        squares = np.einsum("ij,ij->i", vectors, vectors, dtype=np.float32)
        self._scales = 1 / np.sqrt(np.maximum(squares, np.float32(1)))
        leading = vectors[:, :LEADING] * self._scales[:, None]
        self._blocks = [
            np.ascontiguousarray(leading[i : i + _BLOCK].T) for i in range(0, len(leading), _BLOCK)
        ]

    def __len__(self) -> int:
        return len(self._vectors)

    @property
    def digest(self) -> str:
        """What tells it from any other: a floor belongs to the one that it was fitted with."""
        return sha256(self._vectors.tobytes()).hexdigest()[:12]

    @classmethod
    def read(cls, path: Path, version: str) -> Background:
        """Read the vectors of a file.

        Args:
            path: The file.
            version: The version of the table that the vectors must be of.
        """
        import numpy as np

        with np.load(path, allow_pickle=False) as arrays:
            if str(arrays["version"]) != version:
                raise ValueError(f"{path.name} was not made with the table beside it")
            return cls(arrays["vectors"])

    def gaps(self, queries: Floats, cosines: Floats, tools: Floats) -> Floats:
        """Return how much nearer each tool is than what is nearest in the background.

        Args:
            queries: The unit vectors of a request, or of each need in it, one a row.
            cosines: How near the tools are to each.
            tools: The tools' unit vectors, one a row.

        Returns:
            For each tool its largest gap over the needs: below 0 where another kind of
            tool would serve better, and 0 where there is no background.
        """
        import numpy as np

        if not len(self):
            return np.zeros(len(tools), dtype=np.float32)
        found = np.empty_like(cosines)
        for i, query in enumerate(queries):
            rivals, near = self._nearest(query)
            like = np.maximum(rivals @ tools.T - ALIKE, 0)
            found[i] = cosines[i] - (near[:, None] - like).max(axis=0)
        return found[0] if len(found) == 1 else found.max(axis=0)

    def _nearest(self, query: Floats) -> tuple[Floats, Floats]:
        """Return the nearest tools of the background, nearly, and how near they are."""
        import numpy as np

        leading = query[None, :LEADING]
        first = np.concatenate([leading @ block for block in self._blocks], axis=1)[0]
        places = best_places(first, RIVALS)
        vectors = self._vectors.take(places, axis=0) * self._scales.take(places)[:, None]
        return vectors, vectors @ query
