"""A corpus: a catalog, and requests with the tools that serve them.

A folder with `tools.jsonl` (any wire shape, also gzipped) and `queries.jsonl`: one request
a line, with `query`, `gold` (names of the tools that serve it; empty where none does) and,
if you like, `id`, `split` and `category`.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import NamedTuple

from toolfold.catalog import Catalog
from toolfold.errors import CatalogError
from toolfold.tool import Json, is_array, is_object

__all__ = ["Corpus", "LabelledRequest", "load_corpus"]


class LabelledRequest(NamedTuple):
    """One labelled request."""

    query: str
    gold: frozenset[str]
    """The names of the tools that serve it. Empty: none does, and every hit is a false one."""
    split: str = ""
    category: str = ""


class Corpus(NamedTuple):
    """A catalog with labelled requests."""

    name: str
    catalog: Catalog
    requests: tuple[LabelledRequest, ...]
    unknown: tuple[str, ...] = ()
    """Names in `gold` that the catalog lacks: they count as not found."""


def load_corpus(
    folder: str | Path, *, split: str | None = None, queries: str | Path | None = None
) -> Corpus:
    """Return the corpus in a folder.

    Args:
        folder: Holds `tools.jsonl` or `catalog.jsonl`, and `queries.jsonl`; each may end in `.gz`.
        split: Keep the requests whose split is this or begins with it (`test` takes
            `test_ood` too).
        queries: A file of requests to take in place of the folder's own.

    Raises:
        CatalogError: A file is missing or wrong, or has no request of the split.
    """
    path = Path(folder)
    tools = _found(path, ("tools.jsonl", "tools.jsonl.gz", "catalog.jsonl", "tools.json"))
    asked = Path(queries) if queries else _found(path, ("queries.jsonl", "queries.jsonl.gz"))
    catalog = _whole(tools) if tools.suffix == ".json" else Catalog.read(_values(tools))
    requests = [_request(row, asked, number) for number, row in _rows(asked)]
    kept = [r for r in requests if split is None or r.split.startswith(split)]
    if not kept:
        known = ", ".join(sorted({r.split for r in requests})) or "none"
        raise CatalogError(
            f"`{asked}` has no requests of the split {split!r}", hint=f"it has {known}"
        )
    unknown = {name for r in kept for name in r.gold if name not in catalog}
    return Corpus(path.resolve().name, catalog, tuple(kept), tuple(sorted(unknown)))


def _whole(file: Path) -> Catalog:
    from toolfold.sources.catalog_file import load_catalog

    return load_catalog(file)


def _found(folder: Path, names: tuple[str, ...]) -> Path:
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise CatalogError(
        f"`{folder}` holds no {names[0]}", hint="give a folder with tools.jsonl and queries.jsonl"
    )


def _values(file: Path) -> list[Json]:
    return [value for _, value in _rows(file)]


def _rows(file: Path) -> list[tuple[int, Json]]:
    """Return the objects of a file of JSON lines, gzipped or not, each with its line."""
    if not file.is_file():
        raise CatalogError(f"cannot read `{file}`: there is no such file", hint="check the path")
    opened = gzip.open if file.suffix == ".gz" else open
    rows: list[tuple[int, Json]] = []
    number = 0
    try:
        with opened(file, "rt", encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    rows.append((number, json.loads(line)))
    except json.JSONDecodeError as error:
        raise CatalogError(
            f"`{file}`, line {number}: {error.msg}", hint="write one JSON object a line"
        ) from None
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise CatalogError(f"cannot read `{file}`: {error}", hint="check the file") from None
    return rows


def _request(row: Json, file: Path, number: int) -> LabelledRequest:
    if not is_object(row) or not isinstance(row.get("query"), str) or not is_array(row.get("gold")):
        raise CatalogError(
            f"`{file}`, line {number}: not a labelled request",
            hint='write {"query": "…", "gold": ["…"]}',
        )
    gold = frozenset(name for name in row["gold"] if isinstance(name, str))
    return LabelledRequest(
        row["query"], gold, str(row.get("split") or ""), str(row.get("category") or "")
    )
