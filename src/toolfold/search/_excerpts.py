"""What is read of a tool where a request and a tool are read together: its first pieces.

An excerpt is a row of whole numbers: where each field ends, then the rows of the table that the
pieces are of. An index holds one a tool, and needs no text of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Excerpts = NDArray[np.uint16]

__all__ = ["EXCERPT_SIZE", "PIECES_AT_MOST", "READ_FIELDS", "check_excerpts", "excerpt"]

_FIELD_LIMITS: Final = (12, 6, 24, 12, 12)
"""So many pieces are read of a tool's name, source, lead, rest and parameters."""

READ_FIELDS: Final = len(_FIELD_LIMITS)
PIECES_AT_MOST: Final = 44
EXCERPT_SIZE: Final = READ_FIELDS + PIECES_AT_MOST


def excerpt(fields: Sequence[Sequence[int]]) -> Excerpts:
    """Return the excerpt of a tool.

    Args:
        fields: The rows of the pieces of its name, source, lead, rest and parameters; what follows
            is not read.
    """
    import numpy as np

    rows: list[int] = []
    ends: list[int] = []
    for own, limit in zip(fields[:READ_FIELDS], _FIELD_LIMITS, strict=True):
        rows += own[:limit]
        ends.append(min(len(rows), PIECES_AT_MOST))
    out = np.zeros(EXCERPT_SIZE, dtype=np.uint16)
    out[:READ_FIELDS] = ends
    out[READ_FIELDS : READ_FIELDS + ends[-1]] = rows[:PIECES_AT_MOST]
    return out


def check_excerpts(excerpts: NDArray[np.uint16], count: int, rows: int) -> None:
    """Raise `ValueError` where stored numbers are no excerpts.

    Args:
        excerpts: The numbers.
        count: Of how many tools they are said to be.
        rows: How many rows the table has.
    """
    import numpy as np

    sound = excerpts.dtype == np.uint16 and excerpts.shape == (count, EXCERPT_SIZE)
    if sound and count:
        ends, pieces = excerpts[:, :READ_FIELDS], excerpts[:, READ_FIELDS:]
        lengths = np.diff(ends.astype(np.int32), axis=1, prepend=0)
        sound = bool((lengths >= 0).all() and (lengths <= _FIELD_LIMITS).all())
        sound = sound and bool((ends <= PIECES_AT_MOST).all() and (pieces < rows).all())
    if not sound:
        raise ValueError("these are no excerpts")
