"""Catalogs and queries for the bench.

They are read from `../shared/corpora`, or from where `TOOLFOLD_CORPORA` points. Where there are
none, the bundled demo catalog stands in. Queries come from `dev` splits only, so that no number
here can be tuned on a `test` split.
"""

from __future__ import annotations

import gzip
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

__all__ = ["CATALOGS", "Catalog", "Tool", "catalog", "corpora", "missing", "queries", "rows"]

Tool = dict[str, Any]

CATALOGS = ("deploy-226", "seal-500", "seal-4076", "scale-46936")
"""Names of the catalogs, smallest first."""

_ROOT = Path(__file__).resolve().parents[1]
_DEMO = _ROOT / "src" / "toolfold" / "demo" / "catalog.jsonl"
_FILES = {
    "deploy-226": ("deploy-226/tools.jsonl", None),
    "seal-500": ("seal-tools/tools.jsonl", 500),
    "seal-4076": ("seal-tools/tools.jsonl", None),
    "scale-46936": ("scale/toolbench-rapidapi.jsonl.gz", None),
}


@dataclass(frozen=True, slots=True)
class Catalog:
    """A named list of tools, each `{name, description, parameters, server}`."""

    name: str
    tools: tuple[Tool, ...]


def corpora() -> Path | None:
    """Return the folder of the corpora, or None where there is none."""
    named = os.environ.get("TOOLFOLD_CORPORA")
    folder = Path(named) if named else _ROOT.parent / "shared" / "corpora"
    return folder if folder.is_dir() else None


def missing() -> str | None:
    """Return what to tell the reader where the corpora are absent, else None."""
    if corpora():
        return None
    return (
        "corpora not found: the bundled demo catalog stands in, and figures differ from the "
        "published ones; set TOOLFOLD_CORPORA to the folder that holds deploy-226/ and seal-tools/"
    )


def catalog(name: str) -> Catalog:
    """Return one of `CATALOGS`, or the demo catalog where the corpora are absent."""
    file, count = _FILES[name]
    folder = corpora()
    if folder is None:
        return Catalog("demo", tuple(rows(_DEMO)))
    return Catalog(name, tuple(rows(folder / file)[:count]))


def queries(kind: Literal["short", "long"] = "short", count: int = 100) -> tuple[str, ...]:
    """Return requests to time searches with, evenly spread over seal-tools' dev split.

    Args:
        kind: `short` asks for one tool in some 12 words, close to what a model sends; `long` asks
            for several in some 60.
        count: How many at most.
    """
    folder = corpora()
    if folder is None:
        texts = [" ".join(str(tool["description"]).split()[:8]) for tool in rows(_DEMO)]
    else:
        category = {"short": "easy", "long": "hard"}[kind]
        own = rows(folder / "seal-tools" / "queries.jsonl")
        wanted = ("dev", category)
        texts = [row["query"] for row in own if (row["split"], row["category"]) == wanted]
    step = max(1, len(texts) // count)
    return tuple(texts[::step][:count])


def rows(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a file of JSON lines, gzipped or not."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]
