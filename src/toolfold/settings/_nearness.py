"""Is a key nearly one that we know?

In a file that belongs to another program most keys are none of our business. One that
differs from ours by a slip is: it was meant for us, and passing it over would leave out a
limit that somebody believes in.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["nearly"]

_SHORT = 4
_LONG = 8


def nearly(key: str, known: Iterable[str]) -> str | None:
    """Return the known key that a key is a slip of, or None.

    Case and separators do not count. Beyond them one letter may be missing, too many,
    another or in its neighbour's place, in names of eight letters or more two; names of
    three letters forgive only their order.
    """
    slips = {name: _slips(key, name) for name in known}
    near = [name for name, count in slips.items() if count <= _allowed(name)]
    return min(near, key=slips.__getitem__, default=None)


def _allowed(name: str) -> int:
    letters = len(_letters(name))
    return 0 if letters < _SHORT else 1 if letters < _LONG else 2


def _slips(key: str, name: str) -> int:
    written, meant = _letters(key), _letters(name)
    if len(meant) < _SHORT:
        return int(sorted(written) != sorted(meant))
    return _distance(written, meant)


def _letters(key: str) -> str:
    return "".join(character for character in key.casefold() if character.isalnum())


def _distance(a: str, b: str) -> int:
    """Return how many letters are missing, too many, others, or swapped with the next."""
    rows = [list(range(len(b) + 1))]
    for i, left in enumerate(a, 1):
        above, row = rows[-1], [i]
        for j, right in enumerate(b, 1):
            best = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (left != right))
            if i > 1 and j > 1 and left == b[j - 2] and right == a[i - 2]:
                best = min(best, rows[-2][j - 2] + 1)
            row.append(best)
        rows.append(row)
    return rows[-1][-1]
