"""What parts of the bench measured, kept as JSON, a file a part: `.bench/results/PART.json`.

Parts can be run one by one, on different days and machines' load; the page is composed from
whatever lies there, and says of each figure when and by which command it was made.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

__all__ = ["FOLDER", "Kept", "keep", "kept", "now"]

Row = dict[str, Any]

FOLDER = Path(__file__).resolve().parents[1] / ".bench" / "results"


@dataclass(frozen=True, slots=True)
class Kept:
    """What one part measured, and how it came about."""

    part: str
    title: str
    command: str
    rows: tuple[Row, ...]
    made: str
    """When, in UTC."""

    seconds: float
    machine: str
    load: float | None = None
    """How many processes wanted a processor meanwhile; None where the system does not say."""

    cores: int = 1

    @property
    def is_busy(self) -> bool:
        """Whether others wanted the processors, so that times are too long."""
        return self.load is not None and self.load > 1.5 * self.cores


def now(part: str, title: str, command: str, rows: Sequence[Row], started: float) -> Kept:
    """Return what was just measured.

    Args:
        part: The part's name.
        title: What it measures.
        command: What ran it.
        rows: What it measured.
        started: When it began, by `time.perf_counter`.
    """
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return Kept(
        part,
        title,
        command,
        tuple(rows),
        datetime.now(UTC).strftime("%Y-%m-%d %H:%M"),
        round(time.perf_counter() - started, 1),
        f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}",
        None if load is None else round(load, 1),
        os.cpu_count() or 1,
    )


def keep(made: Kept, folder: Path = FOLDER) -> Path:
    """Write what a part measured over what it measured before; return where."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{made.part}.json"
    beside = file.with_suffix(".new")
    beside.write_text(json.dumps(asdict(made), ensure_ascii=False, indent=1), encoding="utf-8")
    beside.replace(file)
    return file


def kept(folder: Path = FOLDER) -> dict[str, Kept]:
    """Return all that was kept, by part. A file that holds something else is left out."""
    return {made.part: made for file in sorted(folder.glob("*.json")) for made in _read(file)}


def _read(file: Path) -> Iterator[Kept]:
    with suppress(OSError, ValueError, TypeError, KeyError):
        value: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        rows: Any = tuple(value.pop("rows"))
        yield Kept(rows=rows, **value)
