"""The layers of the reader: how pieces look at each other, and at those of another text.

They are computed by numpy, for a few texts at a time. What can be is folded into the matrices when
they are read: the gains of the states that go in, and what scores are divided by.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

__all__ = ["Block", "Cross", "Linear", "floats", "normed", "shares", "times", "veil_of"]

_EPSILON: Final = 1e-6
_PRODUCT: Final = 2**18
"""Products of no more multiplications than this stay in one thread."""

_SCORE_LIMIT: Final = 60.0
"""Scores count no more than this, either way: within it `exp` is neither 0 nor too large, and they
lie far within. So the largest of each row, which takes long to find, need not be taken off."""


class Linear:
    """A matrix and what is added after it."""

    def __init__(self, own: Mapping[str, Floats], name: str, gain: Floats | None = None) -> None:
        self.weight = _columns(own[f"{name}weight"], gain)
        self.bias = own[f"{name}bias"].copy()

    def __call__(self, rows: Floats) -> Floats:
        """Return the rows, each times the matrix."""
        out = times(rows, self.weight)
        out += self.bias
        return out


class Block:
    """A layer in which pieces look at each other."""

    def __init__(self, own: Mapping[str, Floats], name: str, heads: int) -> None:
        gain = own[f"{name}n1.gain"]
        query, key, value = (_columns(own[f"{name}attention.{x}.weight"], gain) for x in "qkv")
        self._heads = heads
        self._looks = (query / _root(query, heads), key, value)
        self._out = _columns(own[f"{name}attention.o.weight"])
        self._wide = Linear(own, f"{name}forward_.a.", own[f"{name}n2.gain"])
        self._narrow = Linear(own, f"{name}forward_.b.")

    def read(self, states: Floats, veil: Floats | None) -> None:
        """Change the states of some texts, in place.

        Args:
            states: Those of each piece: (texts, pieces, size).
            veil: What hides places without a piece, if there are any: (texts, pieces).
        """
        import numpy as np

        texts, pieces, size = states.shape
        flat = (texts * pieces, size)
        own = normed(states).reshape(flat)
        query, key, value = (_by_head(times(own, x), texts, self._heads) for x in self._looks)
        scores = query @ key.swapaxes(2, 3)
        if veil is not None:
            scores += veil[:, None, None]
        found = np.empty((texts, pieces, self._heads, size // self._heads), np.float32)
        np.matmul(shares(scores), value, out=found.swapaxes(1, 2))
        states += times(found.reshape(flat), self._out).reshape(states.shape)
        wide = self._wide(normed(states).reshape(flat))
        np.maximum(wide, 0, out=wide)
        states += self._narrow(wide).reshape(states.shape)


class Cross:
    """A layer in which the pieces of a request look at those of tools.

    No keys and values are made of the tools' pieces, which are many: what a piece of the request
    looks for is turned into what it looks like in a tool, and so is what it finds.
    """

    def __init__(self, own: Mapping[str, Floats], number: int, heads: int) -> None:
        import numpy as np

        query, key, value, out = (own[f"cross.{number}.{x}.weight"] for x in "qkvo")
        query = _columns(query, own[f"cross_norm.{number}.gain"])
        size = len(query)
        self._heads = heads
        self._query = query / _root(query, heads)
        self._key = key.reshape(heads, -1, size)
        self._value = np.ascontiguousarray(value.reshape(heads, -1, size).swapaxes(1, 2))
        self._out = _columns(out)
        self._nearness = own["nearness"][number][:, None, None]

    def read(self, states: Floats, ends: Floats, near: Floats, inside: Floats) -> None:
        """Change the states of a request's pieces, in place.

        Args:
            states: Those beside each tool: (tools, pieces, size).
            ends: What was made of the pieces of each tool, 0 at places without a piece: (tools,
                pieces of a tool, size).
            near: How near each piece of the request is to each of a tool.
            inside: Which places have a piece: (tools, pieces of a tool, 1).
        """
        import numpy as np

        tools, pieces, size = states.shape
        flat, heads = (tools * pieces, size), self._heads
        query = _by_head(times(normed(states).reshape(flat), self._query), tools, heads)
        scores = query @ self._key @ ends.swapaxes(1, 2)[:, None]
        scores += self._nearness * near[:, None]
        found = shares(scores, inside[:, None]) @ ends[:, None]
        values = np.empty((tools, pieces, heads, size // heads), np.float32)
        np.matmul(found, self._value, out=values.swapaxes(1, 2))
        states += times(values.reshape(flat), self._out).reshape(states.shape)


def times(rows: Floats, matrix: Floats) -> Floats:
    """Return rows, each times a matrix.

    They are taken in blocks too small for the linear-algebra library to spread over threads: on a
    busy machine waiting for those costs more than the product. Blocks take no longer by themselves.
    """
    import numpy as np

    count, block = len(rows), max(_PRODUCT // matrix.size, 1)
    whole = count - count % block
    out = np.empty((count, matrix.shape[1]), np.float32)
    if whole:
        blocks = (-1, block, matrix.shape[0]), (-1, block, matrix.shape[1])
        np.matmul(rows[:whole].reshape(blocks[0]), matrix, out=out[:whole].reshape(blocks[1]))
    if whole < count:
        np.matmul(rows[whole:], matrix, out=out[whole:])
    return out


def _by_head(rows: Floats, texts: int, heads: int) -> Floats:
    """Return the rows of some texts as (texts, heads, pieces, numbers of a head)."""
    return rows.reshape(texts, -1, heads, rows.shape[1] // heads).swapaxes(1, 2)


def floats(array: NDArray[np.generic]) -> Floats:
    import numpy as np

    return array.astype(np.float32)


def _columns(weight: Floats, gain: Floats | None = None) -> Floats:
    """Return a matrix that rows are multiplied with, given one as it was trained.

    Args:
        weight: The trained one: a row for each number that comes out.
        gain: What the numbers that go in are multiplied by before, if they are those of states
            that were brought to the same length.
    """
    import numpy as np

    if gain is not None:
        weight = weight * (gain * np.sqrt(np.float32(len(gain))))
    return np.ascontiguousarray(weight.T)


def _root(query: Floats, heads: int) -> np.float32:
    """Return what scores are divided by."""
    import numpy as np

    return np.sqrt(np.float32(query.shape[1] // heads))


def veil_of(lengths: Sequence[int]) -> Floats | None:
    """Return what hides the places where texts of some lengths have no piece; None if all have."""
    import numpy as np

    longest = max(lengths)
    if min(lengths) == longest:
        return None
    is_there = np.arange(longest) < np.array(lengths)[:, None]
    return np.where(is_there, np.float32(0), np.float32(-_SCORE_LIMIT))


def normed(states: Floats) -> Floats:
    """Return the states, each brought to the length 1.

    They were trained with a mean square of 1: gains are larger by the root of their size.
    """
    import numpy as np

    squares = np.einsum("ijk,ijk->ij", states, states)
    squares += np.float32(_EPSILON * states.shape[2])
    np.sqrt(squares, out=squares)
    return states / squares[..., None]


def shares(scores: Floats, inside: Floats | None = None) -> Floats:
    """Return how much each place of a row counts; the scores are written over.

    Args:
        scores: The scores of the places.
        inside: 1 where there is a piece and 0 where not, a column a text: what a place without a
            piece is said to count is of no consequence, then.
    """
    import numpy as np

    np.clip(scores, -_SCORE_LIMIT, _SCORE_LIMIT, out=scores)
    np.exp(scores, out=scores)
    ones = np.ones((scores.shape[-1], 1), np.float32) if inside is None else inside
    scores /= scores @ ones
    return scores
