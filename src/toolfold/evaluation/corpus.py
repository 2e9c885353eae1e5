"""A corpus: a catalog, and requests with the tools that serve them.

A folder with `tools.jsonl` (any wire shape, also gzipped) and `queries.jsonl`: one request
a line, with `query`, `gold` (names of the tools that serve it; empty where none does) and,
if you like, `id`, `split` and `category`. Requests that each have a catalog of their own
hold it in `tools`, and stand in `requests.jsonl`.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice, product
from pathlib import Path
from typing import NamedTuple

from toolfold.catalog import Catalog
from toolfold.errors import CatalogError
from toolfold.tool import Json, is_array, is_object

__all__ = ["Corpus", "LabelledRequest", "load_corpus"]

_NEEDS_AT_MOST = 8
_ALTERNATIVES_AT_MOST = 64


@dataclass(frozen=True, slots=True)
class LabelledRequest:
    """One labelled request."""

    query: str
    gold: frozenset[str]
    """The names of the tools that serve it. Empty: none does, and every hit is a false one."""
    split: str = ""
    category: str = ""
    alternatives: tuple[frozenset[str], ...] = ()
    """Other sets of tools, any of which serves it as well as `gold`."""
    grades: Mapping[str, float] = field(default_factory=dict[str, float])
    """How well a tool serves it, by name, where that is told."""
    catalog: Catalog | None = None
    """The tools to search, where they are the request's own."""
    later: bool = False
    """Whether the model has said something before it in the same conversation."""

    @property
    def needs(self) -> tuple[str, ...]:
        """What is searched for: a model puts `|` between several needs."""
        needs = (need.strip() for need in self.query.split("|"))
        return tuple(need for need in needs if need)[:_NEEDS_AT_MOST] or (self.query,)


class Corpus(NamedTuple):
    """A catalog with labelled requests."""

    name: str
    catalog: Catalog
    requests: tuple[LabelledRequest, ...]
    unknown: tuple[str, ...] = ()
    """Names in `gold` that the catalog lacks: they count as not found."""

    def drawn(self, requests: int | None, tools: int | None, seed: int) -> Corpus:
        """Return a part of it, drawn at random and the same for the same seed.

        Args:
            requests: How many requests to keep; None keeps all.
            tools: How many tools to keep, those that serve a kept request among them; None
                keeps all.
            seed: What is drawn.
        """
        draw = random.Random(seed)
        kept = self.requests
        if requests is not None and requests < len(kept):
            kept = tuple(kept[i] for i in sorted(draw.sample(range(len(kept)), requests)))
        catalog = self.catalog
        if tools is not None and tools < len(catalog):
            wanted = {name for request in kept for name in request.gold}
            others = [tool.name for tool in catalog if tool.name not in wanted]
            count = max(tools - len(wanted), 0)
            wanted.update(draw.sample(others, min(count, len(others))))
            catalog = Catalog(tool for tool in catalog if tool.name in wanted)
        return self._replace(catalog=catalog, requests=kept)


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
    if queries is None and (path / _OWN_TOOLS).is_file() and not (path / "tools.jsonl").exists():
        asked, catalog = path / _OWN_TOOLS, Catalog(())
    else:
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
    unknown = {name for r in kept for name in r.gold if name not in (r.catalog or catalog)}
    return Corpus(path.resolve().name, catalog, tuple(kept), tuple(sorted(unknown)))


_OWN_TOOLS = "requests.jsonl"


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
    grades = _grades(row.get("graded")) if is_object(row) else {}
    if not is_object(row) or not isinstance(row.get("query"), str):
        gold = None
    else:
        gold = row.get("gold", _best(grades) if grades else None)
    if not is_array(gold) or not is_object(row):
        raise CatalogError(
            f"`{file}`, line {number}: not a labelled request",
            hint='write {"query": "…", "gold": ["…"]}',
        )
    names = _names(gold)
    tools = row.get("tools")
    return LabelledRequest(
        row["query"],
        names,
        str(row.get("split") or ""),
        str(row.get("category") or ""),
        _alternatives(row.get("gold_alternatives"), names),
        grades,
        Catalog.read(tools) if is_array(tools) and all(map(is_object, tools)) else None,
        later=row.get("later") is True,
    )


def _names(values: Iterable[Json]) -> frozenset[str]:
    return frozenset(name for name in values if isinstance(name, str))


def _alternatives(value: Json, gold: frozenset[str]) -> tuple[frozenset[str], ...]:
    """Return the other sets of tools that serve a request.

    A list of lists names the sets; a list of names, tools each of which serves it alone; an
    object, what may stand in the place of each gold tool.
    """
    if is_object(value):
        places = [
            [name, *sorted(_names(other if is_array(other := value.get(name)) else [other]))]
            for name in sorted(gold)
        ]
        sets = islice(product(*places), 1, _ALTERNATIVES_AT_MOST + 1)
        return tuple(frozenset(chosen) for chosen in sets)
    if not is_array(value):
        return ()
    made = (_names(item if is_array(item) else [item]) for item in value[:_ALTERNATIVES_AT_MOST])
    return tuple(names for names in made if names)


def _grades(value: Json) -> dict[str, float]:
    """Return grades by name: from an object, or from a list of objects or pairs."""
    pairs: list[tuple[Json, Json]] = []
    if is_object(value):
        pairs = list(value.items())
    elif is_array(value):
        for item in value:
            if is_object(item):
                pairs.append((item.get("name"), item.get("grade", item.get("score"))))
            elif is_array(item) and len(item) == 2:
                pairs.append((item[0], item[1]))
    return {
        name: float(grade)
        for name, grade in pairs
        if isinstance(name, str) and isinstance(grade, int | float) and grade > 0
    }


def _best(grades: Mapping[str, float]) -> list[Json]:
    """Return the names with the highest grade."""
    highest = max(grades.values())
    return [name for name, grade in grades.items() if grade == highest]
