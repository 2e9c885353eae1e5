"""Words, vectors and excerpts of large lists of tools, kept in a folder between runs.

A file is named for the content it was made of and the model that made it, and is only
used where the digests in it are those asked for. A file that is damaged, foreign or
half written is passed over and made again; writers do not wait for each other, since each
puts a whole file in place at once.
"""

from __future__ import annotations

import hashlib
import inspect
import logging
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from toolfold._files import replacing
from toolfold.search import (
    _document,
    _excerpts,
    _han,
    _hangul,
    _lexicon,
    _longest,
    _pieces,
    _text,
    _unspaced,
)
from toolfold.search._columns import Columns
from toolfold.search._dense import table
from toolfold.search._document import FIELDS
from toolfold.search._excerpts import check_excerpts
from toolfold.search._lexicon import LEXICON

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["CACHED_FROM", "Cache", "Snapshot", "cache_folder"]

CACHED_FROM = 1_000
"""From how many tools on a list is kept. Smaller ones are made faster than they are read."""

FILES_AT_MOST = 8
"""How many files stay in the folder. The oldest leave first."""

_WORD_MAKERS = (_text, _document, _excerpts, _pieces, _lexicon, _han, _hangul, _longest, _unspaced)
"""What makes the words of a tool."""

_log = logging.getLogger(__name__)


class Snapshot(NamedTuple):
    """What is kept of a list of tools."""

    digests: tuple[str, ...]
    columns: Columns
    vectors: NDArray[np.float16]
    excerpts: NDArray[np.uint16]


class Cache:
    """A folder of snapshots.

    Args:
        folder: Where they are kept. Made when first needed.
        version: The model that makes the vectors.
    """

    def __init__(self, folder: Path, version: str) -> None:
        self._folder = folder.expanduser()
        self._version = f"{_text_version()}-{version}"

    def load(self, digests: Sequence[str]) -> Snapshot | None:
        """Return what is kept of exactly these tools, or None."""
        found = self._read(self._path(digests))
        return found if found is not None and found.digests == tuple(digests) else None

    def newest(self) -> Snapshot | None:
        """Return the snapshot that was kept last, to take single tools from."""
        own = [path for path in self._files() if path.name.startswith(f"index-{self._version}-")]
        return self._read(own[0]) if own else None

    def save(self, snapshot: Snapshot) -> None:
        """Keep a snapshot. A folder that cannot be written to is said once and passed over."""
        import numpy as np

        columns = snapshot.columns
        arrays: dict[str, Any] = {
            "digests": np.frombuffer(bytes.fromhex("".join(snapshot.digests)), dtype=np.uint8),
            "vocabulary": np.frombuffer("\n".join(columns.vocabulary).encode(), dtype=np.uint8),
            "starts": columns.starts,
            "terms": columns.terms,
            "fields": columns.fields,
            "counts": columns.counts,
            "lengths": columns.lengths,
            "vectors": snapshot.vectors,
            "excerpts": snapshot.excerpts,
        }
        arrays["checksum"] = _checksum(arrays)
        try:
            with replacing(self._path(snapshot.digests), durable=False) as file:
                np.savez(file, **arrays)
            for old in self._files()[FILES_AT_MOST:]:
                old.unlink(missing_ok=True)
        except OSError as error:
            _log.warning("the index was not kept in %s: %s", self._folder, error.strerror)

    def _path(self, digests: Sequence[str]) -> Path:
        key = hashlib.sha256("".join(digests).encode()).hexdigest()[:32]
        return self._folder / f"index-{self._version}-{key}.npz"

    def _files(self) -> list[Path]:
        def age(path: Path) -> float:
            try:
                return -path.stat().st_mtime
            except OSError:
                return 0.0

        return sorted(self._folder.glob("index-*.npz"), key=age)

    def _read(self, path: Path) -> Snapshot | None:
        import numpy as np

        try:
            if not path.is_file():
                return None
            with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
                arrays = dict(stored)
                if bytes(arrays.pop("checksum")) != bytes(_checksum(arrays)):
                    raise ValueError("the checksum is another")
                columns = Columns(
                    vocabulary=tuple(arrays["vocabulary"].tobytes().decode().split("\n")),
                    starts=arrays["starts"],
                    terms=arrays["terms"],
                    fields=arrays["fields"],
                    counts=arrays["counts"],
                    lengths=arrays["lengths"],
                )
                digests = arrays["digests"].tobytes().hex()
                vectors, excerpts = arrays["vectors"], arrays["excerpts"]
            keys = tuple(digests[i : i + 40] for i in range(0, len(digests), 40))
            _check(columns, keys, vectors)
            check_excerpts(excerpts, len(keys), table().pieces)
        except Exception as error:  # whatever a damaged file makes numpy raise
            _log.info("%s is damaged (%s) and is made again", path.name, type(error).__name__)
            return None
        return Snapshot(keys, columns, vectors, excerpts)


def _check(columns: Columns, digests: Sequence[str], vectors: NDArray[np.float16]) -> None:
    """Raise `ValueError` where arrays do not fit together: a file is never trusted."""
    import numpy as np

    size, entries = len(digests), len(columns.terms)
    sound = (
        columns.starts.shape == (size + 1,)
        and columns.starts[0] == 0
        and columns.starts[-1] == entries
        and bool((np.diff(columns.starts) >= 0).all())
        and columns.starts.dtype == np.int64
        and columns.terms.dtype == np.int32
        and columns.terms.ndim == columns.fields.ndim == columns.counts.ndim == 1
        and columns.lengths.dtype == np.int32
        and columns.fields.dtype == columns.counts.dtype == np.uint8
        and len(columns.fields) == len(columns.counts) == entries
        and columns.lengths.shape == (size, len(FIELDS))
        and bool((columns.lengths >= 0).all())
        and vectors.dtype == np.float16
        and vectors.ndim == 2
        and len(vectors) == size
        and bool(np.isfinite(vectors).all())
    )
    if sound and entries:
        sound = columns.terms.min() >= 0 and columns.terms.max() < len(columns.vocabulary)
        sound = sound and columns.fields.max() < len(FIELDS)
    if not sound:
        raise ValueError("arrays do not fit together")


def _checksum(arrays: Mapping[str, NDArray[Any]]) -> NDArray[np.uint8]:
    """Return a digest of everything that is kept."""
    import numpy as np

    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(array.data)
    return np.frombuffer(digest.digest(), dtype=np.uint8)


@lru_cache(maxsize=1)
def _text_version() -> str:
    """Return a digest of what makes words of tools: other code or list, other words."""
    # By the modules themselves, not by their files' names: those may change.
    code = b"".join(Path(inspect.getfile(module)).read_bytes() for module in _WORD_MAKERS)
    return hashlib.sha256(code + LEXICON.read_bytes()).hexdigest()[:8]


def cache_folder(setting: str) -> Path | None:
    """Return the folder that a setting names: `auto` the user's own, `off` none."""
    if setting == "off":
        return None
    if setting != "auto":
        return Path(setting)
    from platformdirs import user_cache_dir

    return Path(user_cache_dir("toolfold", appauthor=False))
