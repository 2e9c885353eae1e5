"""A request read word by word: what each of its words says for a tool, and against it.

A vector of a whole request is near to a tool where most of it fits; one word that speaks
against the tool hardly shows in it. And a name says more of what a tool does than all the
rest: siblings differ in it alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

__all__ = ["EachWord", "WordEmbedder", "WordEvidence", "WordVectors"]

MET = 0.12
"""From what cosine on a word of a request counts as met by a tool: words that have nothing to do
with a tool lie around 0, and few words of a tool are much nearer to the whole of it."""


class WordVectors(NamedTuple):
    """The words of a request, one by one."""

    vectors: Floats
    """Their vectors, one a row."""
    lengths: Floats
    """How long each vector is."""
    shares: Floats
    """Which share of the request each word is."""


class WordEmbedder(Protocol):
    """What embeds single words."""

    def words(self, text: str) -> WordVectors:
        """Return the vectors of a request's words."""
        ...

    def names(self, names: Sequence[str]) -> Floats:
        """Return the unit vectors of tools' names."""
        ...


class WordEvidence(NamedTuple):
    """What the words of a request say, one by one, for each of some tools."""

    against: Floats
    """How much of the request points away from the tool: 0 or less."""
    met: Floats
    """Which share of the request the tool meets."""
    name_cosine: Floats
    """How near the request is to the tool's name alone."""


class EachWord:
    """Reads requests word by word over one list of tools.

    Args:
        model: Embeds words.
        names: The tools' names.
    """

    def __init__(self, model: WordEmbedder, names: Sequence[str]) -> None:
        self._model = model
        self._names = names
        # The names' vectors and which of them are made. One attribute, so that threads
        # never see the marks of one pair beside the vectors of another.
        self._kept: tuple[Floats, NDArray[np.bool_]] | None = None

    def evidence(
        self, text: str, vector: Floats, tools: Floats, places: NDArray[np.intp]
    ) -> WordEvidence:
        """Return what the words of a request say for some tools.

        Args:
            text: The request.
            vector: Its unit vector.
            tools: The tools' unit vectors, one a row.
            places: The tools' places in the list.
        """
        import numpy as np

        words = self._model.words(text)
        near = words.vectors @ tools.T  # cosines, but for the lengths
        return WordEvidence(
            against=words.shares / words.lengths @ np.minimum(near, 0),
            met=words.shares @ (near > MET * words.lengths[:, None]),
            name_cosine=self._name_vectors(places) @ vector,
        )

    def _name_vectors(self, places: NDArray[np.intp]) -> Floats:
        import numpy as np

        kept = self._kept
        if kept is None:
            empty = np.zeros((len(self._names), self._model.names([]).shape[1]), np.float32)
            kept = self._kept = (empty, np.zeros(len(self._names), dtype=bool))
        vectors, made = kept
        if not made.take(places).all():
            missing: list[int] = places[~made[places]].tolist()
            vectors[missing] = self._model.names([self._names[i] for i in missing])
            made[missing] = True
        return vectors.take(places, axis=0)
