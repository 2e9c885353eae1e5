"""Vectors: a static embedding table, trained for tool search and shipped in the package.

One vector and two weights a word piece; a text is a weighted sum of its pieces, a tool a
weighted sum of its fields, and nearness the cosine. No network, no framework, and some
fifty microseconds a query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from toolfold._memo import Memo
from toolfold.search._attention import times
from toolfold.search._background import Background
from toolfold.search._document import english_fields
from toolfold.search._each_word import WordVectors
from toolfold.search._excerpts import EXCERPT_SIZE, excerpt
from toolfold.search._pieces import Pieces, lead
from toolfold.tool import Tool

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["WEIGHTS", "Table", "ToolArrays", "table", "texts_of", "tool_arrays", "tool_vectors"]

WEIGHTS = Path(__file__).with_name("weights")
"""The folder of the trained weights, inside the package."""

_FIELD_LIMITS = (12, 8, 30, 40, 20, 32)
_QUERY_LIMIT = 96
_REQUESTS_KEPT = 8
_WEIGHTS_KEPT = 4_096
_UNKNOWN_WEIGHT = 0.5
"""What a word weighs that has no row of its own: it is a name or a value as a rule, and tools say
nothing of those. Words that tell something weigh 1 to 2."""


class Table:
    """The embedding table.

    Args:
        folder: Holds `table.npz`, `vocabulary.txt` and `background.npz`.
    """

    def __init__(self, folder: Path = WEIGHTS) -> None:
        import numpy as np

        self._folder = folder
        self._background: Background | None = None
        self._measures: tuple[NDArray[np.float32], NDArray[np.float32]] | None = None
        with np.load(folder / "table.npz", allow_pickle=False) as arrays:
            self._vectors = arrays["vectors"]
            self._scales = arrays["scale"].astype(np.float32)
            self._doc_weights = arrays["doc_weight"].astype(np.float32) * self._scales
            self._doc_mass = arrays["doc_weight"].astype(np.float32)
            self._query_weights = arrays["query_weight"].astype(np.float32) * self._scales
            self._query_mass = np.abs(self._query_weights)
            self._query_raw = arrays["query_weight"].astype(np.float32)
            self._gain = arrays["gain"].astype(np.float32)
            self._power = arrays["power"].astype(np.float32)
            self.version = str(arrays["version"])
        vocabulary = (folder / "vocabulary.txt").read_text(encoding="utf-8").split("\n")
        self._pieces = Pieces(vocabulary)
        # A request is embedded as a whole, then read word by word, and beside tools.
        self._request = lru_cache(maxsize=_REQUESTS_KEPT)(self._read)
        self.weight = lru_cache(maxsize=_WEIGHTS_KEPT)(self._weight)

    @property
    def background(self) -> Background:
        """Tools of many kinds, to compare the nearest of a list with."""
        if self._background is None:
            self._background = Background.read(self._folder / "background.npz", self.version)
        return self._background

    @property
    def dimensions(self) -> int:
        """The length of a vector."""
        return self._vectors.shape[1]

    @property
    def pieces(self) -> int:
        """How many pieces there are."""
        return len(self._vectors)

    def has_word(self, word: str) -> bool:
        """Whether a lower-case word has a row of its own."""
        return word in self._pieces.row

    def _weight(self, word: str) -> float:
        """Return what a lower-case word weighs in requests."""
        row = self._pieces.row.get(word)
        if row is None:
            return _UNKNOWN_WEIGHT
        vector = self._vectors[row].astype(self._query_mass.dtype)
        return float(self._query_mass[row]) * sqrt(float(vector @ vector))

    def request(self, text: str, limit: int) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
        """Return the rows of a request's first pieces, and their unit vectors."""
        rows, vectors = self._request(text)
        rows = rows[:limit]
        return rows, vectors[:limit] * self._measured()[0].take(rows)[:, None]

    def units(self, rows: NDArray[np.intp]) -> NDArray[np.float32]:
        """Return the unit vectors of pieces, one a row."""
        import numpy as np

        vectors = self._vectors.take(rows, axis=0).astype(np.float32)
        vectors *= self._measured()[0].take(rows)[:, None]
        return vectors

    def extras(self, rows: NDArray[np.intp]) -> NDArray[np.float32]:
        """Return how long the vectors of pieces are, and what they weigh in requests and tools.

        Returns:
            Logarithms, three a piece, each of mean 0 and deviation 1 over the table.
        """
        return self._measured()[1].take(rows, axis=0)

    def cosines(self, units: NDArray[np.float32], rows: NDArray[np.intp]) -> NDArray[np.float32]:
        """Return how near pieces are to some unit vectors: a row a vector, a column a piece."""
        import numpy as np

        found = times(self._vectors.take(rows, axis=0).astype(np.float32), units.T).T
        found *= self._measured()[0].take(rows)
        return found

    def _measured(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return one over the length of each vector, and the extras of each piece."""
        import numpy as np

        if self._measures is None:
            squares = np.einsum("ij,ij->i", self._vectors, self._vectors, dtype=np.float32)
            lengths = np.sqrt(squares)
            sizes = (lengths * self._scales, self._query_raw, self._doc_mass)
            extras = np.log(np.stack(sizes, axis=1) + np.float32(1e-4))
            extras = (extras - extras.mean(axis=0)) / extras.std(axis=0)
            self._measures = 1 / np.maximum(lengths, np.float32(1)), extras
        return self._measures

    def query(self, text: str) -> NDArray[np.float32]:
        """Return the unit vector of a request; zero where no word of it is known."""
        import numpy as np

        rows, vectors = self._request(text)
        if not len(rows):
            return np.zeros(self.dimensions, np.float32)
        vector = self._query_weights.take(rows) @ vectors
        return vector / max(sqrt(float(vector @ vector)), 1e-6)

    def words(self, text: str) -> WordVectors:
        """Return the vectors of a request's pieces, each once."""
        import numpy as np

        rows, vectors = self._request(text)
        places = {row: i for i, row in enumerate(rows.tolist())}
        if len(places) < len(rows):
            kept = list(places.values())
            rows, vectors = rows[kept], vectors[kept]
        lengths = np.maximum(np.sqrt(np.einsum("ij,ij->i", vectors, vectors)), np.float32(1e-6))
        mass = self._query_mass.take(rows) * lengths
        return WordVectors(vectors, lengths, mass / max(float(mass.sum()), 1e-6))

    def _read(self, text: str) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
        import numpy as np

        rows = np.array(self._pieces.rows(text, _QUERY_LIMIT), dtype=np.intp)
        return rows, self._vectors.take(rows, axis=0).astype(np.float32)

    def names(self, names: Sequence[str]) -> NDArray[np.float32]:
        """Return the unit vectors of tools' names, one a row; zero where no word is known."""
        import numpy as np

        out = np.zeros((len(names), self.dimensions), np.float32)
        rows = [list(dict.fromkeys(self._pieces.rows(name, _FIELD_LIMITS[0]))) for name in names]
        filled = [i for i, own in enumerate(rows) if own]
        if not filled:
            return out
        flat = [row for own in rows for row in own]
        starts = np.cumsum([0, *(len(rows[i]) for i in filled[:-1])])
        weighed = self._vectors[flat].astype(np.float32) * self._doc_weights[flat, None]
        sums = np.add.reduceat(weighed, starts, axis=0)
        out[filled] = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-6)
        return out

    def cut(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the rows of a tool's pieces, given its field texts, field by field."""
        both = zip(texts, _FIELD_LIMITS, strict=True)
        return [self._pieces.rows(text, limit) if text else [] for text, limit in both]

    def tool(self, fields: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """Return the unit vector of a tool, given the rows of its pieces, field by field."""
        import numpy as np

        rows: list[int] = []
        shares: list[NDArray[np.float32]] = []
        gains, powers = self._gain.tolist(), self._power.tolist()
        for own, gain, power in zip(fields, gains, powers, strict=True):
            if own:
                mass = float(self._doc_mass[own].sum()) + 1e-3
                shares.append(self._doc_weights[own] * np.float32(gain / mass**power))
                rows.extend(own)
        if not rows:
            return np.zeros(self.dimensions, np.float32)
        vector = np.concatenate(shares) @ self._vectors[rows].astype(np.float32)
        return vector / max(float(np.linalg.norm(vector)), 1e-6)


@lru_cache(maxsize=1)
def table() -> Table:
    """Return the table of the package, loaded once."""
    return Table()


class ToolArrays(NamedTuple):
    """What the table makes of tools, one row a tool."""

    vectors: NDArray[np.float16]
    excerpts: NDArray[np.uint16]
    """What is read of each together with a request."""


_ENTRY_BYTES = 400
"""What an entry of the memo takes beside its vector, nearly."""

_Made = tuple["NDArray[np.float16]", "NDArray[np.uint16]"]

_ARRAYS: Memo[str, _Made] = Memo(
    65_536, room=12 * 1024 * 1024, size=lambda made: made[0].nbytes + made[1].nbytes + _ENTRY_BYTES
)


def tool_arrays(tools: Sequence[Tool], known: Mapping[str, _Made] | None = None) -> ToolArrays:
    """Return the vectors and excerpts of tools; each is made once per content.

    Args:
        tools: The tools.
        known: What was made before, by the digests of the tools.
    """
    import numpy as np

    own = table()
    before = known or {}
    vectors = np.empty((len(tools), own.dimensions), dtype=np.float16)
    excerpts = np.empty((len(tools), EXCERPT_SIZE), dtype=np.uint16)
    for i, tool in enumerate(tools):
        found = before.get(tool.digest) or _ARRAYS.get(tool.digest)
        if found is None:
            fields = own.cut(texts_of(tool))
            made = own.tool(fields).astype(np.float16), excerpt(fields)
            found = _ARRAYS.put(tool.digest, made)
        vectors[i], excerpts[i] = found
    return ToolArrays(vectors, excerpts)


def tool_vectors(tools: Sequence[Tool]) -> NDArray[np.float16]:
    """Return the vectors of tools, one a row; each is made once per content."""
    return tool_arrays(tools).vectors


def texts_of(tool: Tool) -> tuple[str, ...]:
    """Return the texts of a tool that the table embeds, field by field."""
    texts = english_fields(tool)
    aliases = f" . {texts.aliases}" if texts.aliases else ""
    first, rest = lead(texts.description)
    return texts.name + aliases, texts.source, first, rest, texts.parameters, texts.details
