"""Reading the first few tools of a search together with the request, where it is not clear without.

Words and vectors find the tools and know of most requests which is right, or that none is. Where
the first two are close, or where the floor is not sure, the first few are read: that orders them
anew, and says better whether any of them serves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from toolfold._memo import Memo
from toolfold.search._reader import UNREAD, PairReader, ReadTool, reader
from toolfold.search._scorer import SURE_WITHOUT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from toolfold.search._excerpts import Excerpts

    Floats = NDArray[np.float32]

__all__ = ["ToolReading", "count_read", "in_order", "is_unclear"]

READ_AT_MOST: Final = 3
"""So many tools are read. Six find hardly more, in requests for real servers, and take longer."""

WITHIN: Final = 1.5
"""Tools whose scores are further behind the best are not read: they hardly ever come first."""

CLOSE: Final = 1.0
"""With less than this between the first two scores they are read: the second is then more than a
third as probable as the first. With more between them, reading hardly ever turns them round."""

REFUSED: Final = -1.4
"""At this logit the default floor refuses: what reading cannot lift above it is not read."""

ORDER: Final = 0.5
"""What the logit of the reader counts in the order, beside the score: chosen on families of
siblings and real servers that no model was taught requests for; .3 to .8 do nearly as well."""

_DIGITS: Final = 3
"""Digits that count of a logit: what is behind them may depend on what is read beside a tool."""

_READ: Memo[bytes, ReadTool] = Memo(
    8_192, room=16 * 1024 * 1024, size=lambda tool: tool.states.nbytes + tool.rows.nbytes
)


class ToolReading:
    """Reads tools by their excerpts.

    Args:
        excerpts: Those of a list of tools, one a row.
    """

    def __init__(self, excerpts: Excerpts) -> None:
        self._excerpts = excerpts

    def logits(self, query: str, places: NDArray[np.intp]) -> Floats:
        """Return the logit of each of some tools, by their places, that it serves a request."""
        import numpy as np

        own = reader()
        # Kernels of the linear-algebra library may look at memory behind a row, and warn of it.
        with np.errstate(invalid="ignore"):
            tools = [_read(own, excerpt) for excerpt in self._excerpts.take(places, axis=0)]
            return own.logits(own.request(query), tools).round(_DIGITS)


def _read(own: PairReader, excerpt: Excerpts) -> ReadTool:
    return _READ.get_or(excerpt.tobytes(), lambda: own.tool(excerpt))


def is_unclear(scores: Floats, logit: float, lift: float) -> bool:
    """Whether reading may change what a search for one need says.

    Args:
        scores: The scores of the candidates, the best first.
        logit: The floor's.
        lift: By how much reading raises that at most.
    """
    if logit + lift < REFUSED:
        return False
    return logit < SURE_WITHOUT or bool(len(scores) > 1 and scores[0] - scores[1] < CLOSE)


def count_read(scores: Floats) -> int:
    """Return how many of the candidates are read.

    Args:
        scores: Their scores, the best first.
    """
    near = scores[:READ_AT_MOST] > scores[0] - WITHIN
    return int(near.sum())


def in_order(scores: Floats, logits: Floats) -> NDArray[np.intp]:
    """Return the places of what was read, the best first.

    Args:
        scores: The scores of what was read.
        logits: What reading says of each.
    """
    import numpy as np

    # What could not be read is neither better for it nor worse.
    logits = np.where(logits == UNREAD, logits.max(), logits)
    return np.argsort(-(scores + ORDER * logits), kind="stable")
