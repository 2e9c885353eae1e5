"""Catalogs of fields that the search was not made for: what to expect on a catalog of your own.

    python -m bench unseen

Three fields, ninety tools of six servers each: a hospital, a freight company, a studio of films
and games. Tools and requests were written for this, by authors who had not seen the search and
knew nothing of its training; what a model would ask was written by others, who had seen the
requests and not the tools. Nothing is fitted on them, and little was chosen after a look at them
(the model card says what): where that changes, others must be written. A third of the requests is
served by no tool.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.asked import Row, mean_row, served_rows, unserved_rows
from toolfold.evaluation import Corpus, LabelledRequest, load_corpus

__all__ = ["unseen"]

_FIELDS = Path(__file__).parent / "fields"
_VOICES = {"query": "people's words", "asked": "as a model asks"}


def unseen() -> list[Row]:
    """In fields that nothing was made for: right tools, first hits, tokens, false hits."""
    return [row for voice in _VOICES for row in _asked_in(voice)]


def _asked_in(voice: str) -> list[Row]:
    rows: list[Row] = []
    for served, missed in _fields(voice):
        both = zip(served_rows(served), unserved_rows(missed), strict=True)
        rows += [row | {"gets hits": other["gets hits"]} for row, other in both]
    rows += [mean_row(system, rows) for system in dict.fromkeys(row["system"] for row in rows)]
    return [{**row, "corpus": f"{row['corpus']}, {_VOICES[voice]}"} for row in rows]


def _fields(voice: str) -> Iterator[tuple[Corpus, Corpus]]:
    """Yield each field with what is served there, and with what is not."""
    for folder in sorted(path for path in _FIELDS.iterdir() if path.is_dir()):
        corpus = load_corpus(folder)
        lines: list[dict[str, Any]] = [
            json.loads(line)
            for line in (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines()
        ]
        requests = [LabelledRequest(row[voice], frozenset(row["gold"])) for row in lines]
        yield (
            corpus._replace(requests=tuple(r for r in requests if r.gold)),
            corpus._replace(requests=tuple(r for r in requests if not r.gold)),
        )
