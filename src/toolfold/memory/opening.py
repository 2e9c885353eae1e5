"""The memory that settings ask for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from toolfold.memory._database import PostgresMemory
from toolfold.memory.memory import Memory
from toolfold.redact import Redactor
from toolfold.settings import MemorySettings
from toolfold.store.postgres.database import Database

__all__ = ["FILE_NAME", "memory_file", "memory_place", "open_memory"]

FILE_NAME = "memory.sqlite"
"""What a memory's file is called where nobody says."""


def memory_file(settings: MemorySettings, folder: Path) -> Path:
    """Return the file that a memory is kept in. It need not exist.

    Args:
        settings: Where it is kept.
        folder: The folder for what is remembered between runs.
    """
    return folder / FILE_NAME if settings.path == "auto" else Path(settings.path).expanduser()


def memory_place(
    settings: MemorySettings, folder: Path, database: Database | None = None
) -> Path | PostgresMemory:
    """Return where a memory is kept: in the database, unless a file is named.

    Args:
        settings: Where it is kept.
        folder: The folder for what is remembered between runs.
        database: What several processes share, if anything.
    """
    if database is None or settings.path != "auto":
        return memory_file(settings, folder)
    return PostgresMemory(database)


def open_memory(
    settings: MemorySettings,
    folder: Path,
    *,
    has_tokens: bool = False,
    redactor: Redactor | None = None,
    tell: Callable[[str], None] | None = None,
    database: Database | None = None,
) -> Memory | None:
    """Return the memory of a door that has one unless it is turned off; None where it is.

    Args:
        settings: Whether, where, for whom and for how long.
        folder: The folder for what is remembered between runs.
        has_tokens: Whether the door tells its callers apart.
        redactor: Takes secrets out of what is kept.
        tell: Told once, at the first write, where it goes; by default the log.
        database: What several processes share, if anything. What the file holds is taken over
            there, once.
    """
    if settings.enabled == "off":
        return None
    share = settings.share
    if share == "auto":
        share = "principal" if has_tokens else "all"
    place = memory_place(settings, folder, database)
    memory = Memory(
        place,
        share=share,
        bound=settings.max_records,
        age_days=settings.max_age_days,
        redactor=redactor,
        **({} if tell is None else {"tell": tell}),
    )
    if not isinstance(place, Path):
        memory.take_over(memory_file(settings, folder))
    return memory
