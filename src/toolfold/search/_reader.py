"""A request and a tool read together, piece by piece, by a small trained transformer.

A tool is read once, by itself, and what that makes of its pieces is kept; a request is read
by itself, too. Only the last layers see both: there the pieces of the request look at those
of the tool, and then at each other and at the tool's name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from toolfold.search._attention import Block, Cross, Linear, floats, normed, shares, times, veil_of
from toolfold.search._dense import WEIGHTS, table
from toolfold.search._excerpts import READ_FIELDS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from toolfold.search._excerpts import Excerpts

    Floats = NDArray[np.float32]
    Weights = Mapping[str, NDArray[np.generic]]

__all__ = ["UNREAD", "PairReader", "ReadRequest", "ReadTool", "ReadWords", "reader"]

UNREAD: Final = -12.0
"""The logit where nothing is known of the request or of the tool: nothing speaks for the tool."""

_REQUEST_LIMIT: Final = 32
_NAME_LIMIT: Final = 8
"""So many pieces of a tool's name are read with the request."""

_VECTOR_SCALE: Final = 4.0
_SAME: Final = 0.97
"""From this cosine on two pieces count as the same."""

_FAR: Final = -0.2
"""The least that a cosine counts, and what counts where there is no piece."""


class ReadWords(Protocol):
    """The pieces that requests and tools are read by."""

    @property
    def version(self) -> str:
        """Which pieces these are."""
        ...

    def request(self, text: str, limit: int) -> tuple[NDArray[np.intp], Floats]:
        """Return the rows of a request's first pieces, and their unit vectors."""
        ...

    def units(self, rows: NDArray[np.intp]) -> Floats:
        """Return the unit vectors of pieces."""
        ...

    def extras(self, rows: NDArray[np.intp]) -> Floats:
        """Return three more inputs of each piece."""
        ...

    def cosines(self, units: Floats, rows: NDArray[np.intp]) -> Floats:
        """Return how near pieces are to some unit vectors."""
        ...


class ReadRequest(NamedTuple):
    """A request, read by itself."""

    units: Floats
    """The unit vectors of its pieces, one a row."""
    states: Floats
    """What was made of each piece."""


class ReadTool(NamedTuple):
    """A tool, read by itself."""

    rows: NDArray[np.intp]
    """Its pieces."""
    starts: tuple[int, int, int, int]
    """Where the source begins among them, the description and the parameters, and their number."""
    states: NDArray[np.float16]
    """What was made of each piece, one a row."""


class PairReader:
    """Reads a request and a tool together.

    Args:
        arrays: The trained weights.
        words: The pieces that they were trained with.
    """

    def __init__(self, arrays: Weights, words: ReadWords) -> None:
        import numpy as np

        spec = json.loads(str(arrays["spec"]))
        self._words = words
        self._size = d = int(spec["d"])
        heads = int(spec["heads"])
        own = {name: floats(arrays[name]) for name in arrays if name not in ("spec", "version")}
        root = np.sqrt(np.float32(d))
        project = own["project.weight"]
        self._project = np.ascontiguousarray(project[:, :-3].T) * np.float32(_VECTOR_SCALE)
        self._project_extras = np.ascontiguousarray(project[:, -3:].T)
        field, place = own["field"], own["place"]
        self._request_places = place + field[-1] + own["project.bias"]
        self._tool_places = field[:READ_FIELDS, None] + place + own["project.bias"]
        self._query = [Block(own, f"query.{i}.", heads) for i in range(spec["query"])]
        self._tool = [Block(own, f"tool.{i}.", heads) for i in range(spec["tool"])]
        self._tool_end = own["tool_end.gain"] * root
        self._said = Linear(own, "said.")
        self._met = Linear(own, "met.")
        self._met.bias += field[-2]
        self._cross = [Cross(own, i, heads) for i in range(spec["cross"])]
        self._both = [Block(own, f"both.{i}.", heads) for i in range(spec["cross"])]
        self._end = own["end.gain"] * root
        self._pool = own["pool.weight"][0]
        self._wide = Linear(own, "head.0.")
        self._last = Linear(own, "head.2.")

    @classmethod
    def read(cls, path: Path, words: ReadWords) -> PairReader:
        """Read the weights of a file.

        Args:
            path: The file.
            words: The pieces, of the version that the weights must be of.
        """
        import numpy as np

        with np.load(path, allow_pickle=False) as arrays:
            if str(arrays["version"]) != words.version:
                raise ValueError(f"{path.name} was not made with the table beside it")
            return cls(dict(arrays), words)

    def request(self, text: str) -> ReadRequest:
        """Read a request by itself; no more than its first 32 pieces."""
        rows, units = self._words.request(text, _REQUEST_LIMIT)
        states = self._embedded(units, rows)
        states += self._request_places[: len(rows)]
        if len(rows):
            for block in self._query:
                block.read(states[None], None)
        return ReadRequest(units, states)

    def tool(self, excerpt: Excerpts) -> ReadTool:
        """Read a tool by itself.

        One is read at a time: beside others it would differ in its last digits, by which.
        """
        import numpy as np

        ends: list[int] = excerpt[:READ_FIELDS].tolist()
        rows = excerpt[READ_FIELDS : READ_FIELDS + ends[-1]].astype(np.intp)
        starts = (ends[0], ends[1], ends[3], ends[4])
        if not len(rows):
            return ReadTool(rows, starts, np.zeros((0, self._size), np.float16))
        states = self._embedded(self._words.units(rows), rows)
        begins = (0, *ends[:-1])
        for places, begin, end in zip(self._tool_places, begins, ends, strict=True):
            states[begin:end] += places[: end - begin]
        for block in self._tool:
            block.read(states[None], None)
        states = normed(states[None])[0]
        states *= self._tool_end
        return ReadTool(rows, starts, states.astype(np.float16))

    def logits(self, request: ReadRequest, tools: Sequence[ReadTool]) -> Floats:
        """Return the logit of each tool that it serves a request.

        Args:
            request: The request.
            tools: The tools; together, as few as a search reads.
        """
        import numpy as np

        out = np.full(len(tools), UNREAD, dtype=np.float32)
        some = [i for i, tool in enumerate(tools) if len(tool.rows)]
        if some and len(request.units):
            out[some] = self._judged(request, [tools[i] for i in some])
        return out

    def _embedded(self, units: Floats, rows: NDArray[np.intp]) -> Floats:
        """Return what goes into the first layers, but for the places."""
        states = times(units, self._project)
        states += self._words.extras(rows) @ self._project_extras
        return states

    def _judged(self, request: ReadRequest, tools: Sequence[ReadTool]) -> Floats:
        """Return the logits of tools that have pieces, for a request that has."""
        import numpy as np

        asked, count, d = len(request.units), len(tools), self._size
        longest = max(tool.starts[-1] for tool in tools)
        names = [min(tool.starts[0], _NAME_LIMIT) for tool in tools]
        named = max(names)
        rows = np.zeros((count, longest), np.intp)
        ends = np.zeros((count, longest, d), np.float32)
        inside = np.zeros((count, longest, 1), np.float32)
        for i, tool in enumerate(tools):
            length = tool.starts[-1]
            rows[i, :length] = tool.rows
            ends[i, :length] = tool.states
            inside[i, :length] = 1
        near = self._words.cosines(request.units, rows.ravel())

        states = np.empty((count, asked + named, d), np.float32)
        own, name = states[:, :asked], states[:, asked:]
        said = _said_of(near, longest, [tool.starts for tool in tools])
        np.add(request.states, self._said(said).reshape(own.shape), out=own)
        near = near.reshape(asked, count, longest).swapaxes(0, 1)
        if named:
            met = self._met(_met_of(near[:, :, :named]))
            np.add(ends[:, :named], met.reshape(name.shape), out=name)
        veil = veil_of([asked + n for n in names])
        for cross, block in zip(self._cross, self._both, strict=True):
            cross.read(own, ends, near, inside)
            block.read(states, veil)
        return self._summed_up(states, veil)

    def _summed_up(self, states: Floats, veil: Floats | None) -> Floats:
        """Return one logit for all pieces of a request and a name."""
        import numpy as np

        states = normed(states)
        states *= self._end
        scores = states @ self._pool
        if veil is not None:
            scores += veil
        both = np.empty((len(states), 2, self._size), np.float32)
        np.matmul(shares(scores)[:, None], states, out=both[:, :1])
        if veil is not None:
            states += 1e3 * veil[..., None]
        np.max(states, axis=1, out=both[:, 1])
        return self._last(np.maximum(self._wide(both.reshape(len(both), -1)), 0))[:, 0]


@lru_cache(maxsize=1)
def reader() -> PairReader:
    """Return the reader of the package, loaded once."""
    return PairReader.read(WEIGHTS / "reader.npz", table())


def _said_of(near: Floats, longest: int, starts: Sequence[Sequence[int]]) -> Floats:
    """Return what the pieces of tools say of each piece of a request.

    Args:
        near: How near they are, a row for each piece of the request.
        longest: How many columns each tool has.
        starts: Where the fields of the tools begin, but for the name, and where the last one ends.

    Returns:
        Rows of six: the largest cosine in the name, the source, the description and the
        parameters; whether the name has the piece itself, and whether any field has.
    """
    import numpy as np

    count = len(starts)
    bounds = np.zeros((count, 5), np.intp)
    bounds[:, 1:] = starts
    empty = bounds[:, 1:] == bounds[:, :-1]
    bounds += np.arange(0, count * longest, longest)[:, None]
    # A column more, for what ends with the last one to have an end.
    ended = np.full((len(near), near.shape[1] + 1), _FAR, np.float32)
    ended[:, :-1] = near
    best = np.maximum.reduceat(ended, bounds.ravel(), axis=1).reshape(-1, count, 5)[..., :4]
    said = np.empty((count, len(near), 6), np.float32)
    largest = said[..., :4]
    np.maximum(best.swapaxes(0, 1), np.float32(_FAR), out=largest)
    if empty.any():
        np.copyto(largest, np.float32(_FAR), where=empty[:, None])
    said[..., 4] = largest[..., 0] > _SAME
    said[..., 5] = (largest > _SAME).any(axis=2)
    return said.reshape(-1, 6)


def _met_of(near: Floats) -> Floats:
    """Return what a request says of the first pieces of tools.

    Args:
        near: How near they are: (tools, pieces of the request, pieces of a tool).

    Returns:
        Rows of two: the largest cosine, and whether the request has the piece itself.
    """
    import numpy as np

    met = np.empty((len(near), near.shape[2], 2), np.float32)
    largest = np.maximum(near.max(axis=1), np.float32(_FAR))
    met[..., 0] = largest
    met[..., 1] = largest > _SAME
    return met.reshape(-1, 2)
