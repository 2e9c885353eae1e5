"""How much code there is: statements by room, docstrings left out."""

from __future__ import annotations

import ast
import os
from collections import Counter
from pathlib import Path
from typing import Any

__all__ = ["statements"]

_ROOT = Path(__file__).resolve().parents[1]
_OTHER = "BENCH_BEFORE"
"""The variable that names another checkout to be counted beside this one."""


def statements() -> list[dict[str, Any]]:
    """Statements by room, without docstrings; BENCH_BEFORE names a checkout to set beside."""
    here = _counted(_ROOT)
    other = os.environ.get(_OTHER)
    before = _counted(Path(other)) if other else Counter[str]()
    rooms = sorted({*here, *before})
    rows: list[dict[str, Any]] = [
        {"room": room, **({"before": before[room]} if other else {}), "statements": here[room]}
        for room in rooms
    ]
    total = {"before": before.total()} if other else {}
    return [*rows, {"room": "all", **total, "statements": here.total()}]


def _counted(checkout: Path) -> Counter[str]:
    source = checkout / "src" / "toolfold"
    counts: Counter[str] = Counter()
    for path in source.rglob("*.py"):
        room = path.relative_to(source).parts[0]
        nodes = ast.walk(ast.parse(path.read_text("utf-8")))
        counts[room.removesuffix(".py")] += sum(map(_counts, nodes))
    return counts


def _counts(node: ast.AST) -> bool:
    is_text = (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
    return isinstance(node, ast.stmt) and not is_text
