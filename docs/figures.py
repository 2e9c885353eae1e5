"""The README's table, made from the figures that were measured last.

`python -m bench.published` measures them and writes `figures.json`; what stands around the
table is written by hand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["PAGE", "filled"]

PAGE = Path(__file__).parents[1] / "README.md"
FILE = Path(__file__).parent / "figures.json"
SYSTEMS = {
    "toolfold": "toolfold",
    "hermes": "Hermes Agent 0.19",
    "fastmcp": "FastMCP 4.1",
    "everruns": "everruns' scheme",
}

_BLOCK = re.compile(r"(<!-- made: measured -->\n).*?(<!-- end -->\n)", re.DOTALL)


def filled(page: str) -> str:
    """Return the page with the table made anew."""
    table = "\n".join(_table(json.loads(FILE.read_text(encoding="utf-8"))))
    return _BLOCK.sub(lambda found: f"{found[1]}\n{table}\n\n{found[2]}", page)


def _table(figures: dict[str, Any]) -> Iterator[str]:
    tokens = figures["tokens"]
    yield f"| measured | {' | '.join(SYSTEMS.values())} |"
    yield f"|---|{'---:|' * len(SYSTEMS)}"
    folded = f"{tokens['folded']:,} of {tokens['unfolded']:,}"
    yield f"| tokens of {tokens['tools']} real tools, on every turn | {folded} | | | |"
    for about, key, written in (
        ("as a model asks: right tools that the answer names", "asked_in_the_answer", _rate),
        ("the same: how often the first hit is right", "asked_first_hit", _rate),
        ("the same: tokens of an answer", "asked_tokens", _count),
        ("in people's words: right tools among the first five", "people_first_five", _rate),
        ("what no tool serves: how often it gets a hit", "unserved_hits", _per_cent),
    ):
        by_system = figures[key]
        cells = (f" {written(by_system[n])} |" if n in by_system else " |" for n in SYSTEMS)
        yield f"| {about} |{''.join(cells)}"


def _rate(value: float) -> str:
    return f"{value:.3f}"


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _per_cent(value: float) -> str:
    return f"{int(100 * value + 0.5)} %"
