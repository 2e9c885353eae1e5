"""Catalogs of fields that the search was not made for: what to expect on a catalog of your own.

    python -m bench unseen

Three fields, ninety tools of six servers each: a farmers' cooperative, a town hall, a factory of
motors and pumps. Tools and requests were written for this, by authors who had not seen the search
and knew nothing of its training; what a model would ask was written by others, who had seen the
requests and not the tools. Nothing is fitted on them or chosen by them: where that changes, others
must be written, and these belong beside the three by which something was chosen (a hospital, a
freight company, a studio of films and games), which are printed behind them. A third of the
requests is served by no tool.
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
_LOOKED_AT = {"unseen": "", "looked_at": "looked at: "}
"""What stands before the names of the fields in each folder."""


def unseen() -> list[Row]:
    """In fields that nothing was made for: right tools, first hits, tokens, false hits."""
    return [row for folder in _LOOKED_AT for voice in _VOICES for row in _asked_in(folder, voice)]


def _asked_in(folder: str, voice: str) -> list[Row]:
    rows: list[Row] = []
    for served, missed in _fields(folder, voice):
        both = zip(served_rows(served), unserved_rows(missed), strict=True)
        rows += [row | {"gets hits": other["gets hits"]} for row, other in both]
    rows += [mean_row(system, rows) for system in dict.fromkeys(row["system"] for row in rows)]
    before, after = _LOOKED_AT[folder], _VOICES[voice]
    return [{**row, "corpus": f"{before}{row['corpus']}, {after}"} for row in rows]


def _fields(name: str, voice: str) -> Iterator[tuple[Corpus, Corpus]]:
    """Yield each field of a folder with what is served there, and with what is not."""
    for folder in sorted(path for path in (_FIELDS / name).iterdir() if path.is_dir()):
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
