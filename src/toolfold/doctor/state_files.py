"""What toolfold keeps: its state folder, the kept indexes, the store with the memory in it."""

from __future__ import annotations

import os
import shlex
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from toolfold._bounds import one_line
from toolfold.config import GatewayConfig
from toolfold.config.opened_store import store_of
from toolfold.doctor.diagnosis import Diagnosis
from toolfold.errors import MissingExtraError, ToolfoldError
from toolfold.memory import PostgresMemory, memory_place
from toolfold.prompts import plural
from toolfold.search._cache import cache_folder
from toolfold.serve.trust.store import TrustStore
from toolfold.store.store import Documents

__all__ = ["look_at_files"]

_PART = "files"
_LIMIT = 300


def look_at_files(config: GatewayConfig) -> Iterator[Diagnosis]:
    """Yield how the files are that a configuration's gateway, proxy and chat keep."""
    state = config.serve.state_folder
    yield _folder("state folder", state, private=True)
    try:
        yield from _look_at_store(config)
    except ToolfoldError as error:
        fix = error.hint or ""
        if isinstance(error, MissingExtraError):
            fix = f"pip install 'toolfold[{error.extra}]'"
        yield Diagnosis(_PART, "store", "broken", one_line(error.message, _LIMIT), fix)
    kept = cache_folder(config.settings.cache_dir)
    if kept is not None:
        yield _folder("indexes", kept, private=False)


def _look_at_store(config: GatewayConfig) -> Iterator[Diagnosis]:
    """Yield what the store holds, in files or in a database that must be there to be asked."""
    store = store_of(config.serve)
    if store.database is not None:
        yield Diagnosis(_PART, "store", "ok", "PostgreSQL answers, with the tables of this version")
    place = memory_place(config.settings.memory, config.serve.state_folder, store.database)
    if isinstance(place, Path):
        yield _memory(place)
    else:
        yield Diagnosis(_PART, "memory", "ok", f"{place}: {plural(_requests(place), 'request')}")
    yield from _waiting(store.documents)


def _requests(memory: PostgresMemory) -> int:
    return sum(1 for _ in memory.requests())


def _folder(name: str, path: Path, *, private: bool) -> Diagnosis:
    if not path.exists():
        parent = next((each for each in path.parents if each.exists()), Path(path.anchor))
        if not os.access(parent, os.W_OK):
            message = f"{path} cannot be made: {parent} may not be written to"
            return Diagnosis(_PART, name, "broken", message, _owned(parent))
        return Diagnosis(_PART, name, "ok", f"{path}, made when it is needed")
    if not path.is_dir():
        return Diagnosis(_PART, name, "broken", f"{path} is no folder", _moved(path))
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        return Diagnosis(_PART, name, "broken", f"{path} may not be written to", _owned(path))
    if private and os.name == "posix" and stat.S_IMODE(path.stat().st_mode) & 0o077:
        fix = shlex.join(["chmod", "700", str(path)])
        return Diagnosis(_PART, name, "warning", f"{path} can be entered by others", fix)
    return Diagnosis(_PART, name, "ok", str(path))


def _memory(path: Path) -> Diagnosis:
    """Return how the memory's file is, read without changing anything."""
    name = "memory"
    if not path.exists():
        return Diagnosis(_PART, name, "ok", "nothing is remembered yet")
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as opened:
            checked = opened.execute("PRAGMA quick_check(1)").fetchall()
            (count,) = opened.execute("SELECT count(*) FROM requests").fetchone()
    except sqlite3.OperationalError as error:
        return Diagnosis(_PART, name, "broken", f"{path} cannot be read: {error}", _owned(path))
    except sqlite3.DatabaseError as error:
        fix = "toolfold memory clear"
        return Diagnosis(_PART, name, "broken", f"{path} is damaged: {error}", fix)
    if checked != [("ok",)]:
        message = f"{path} is damaged: {checked[0][0]}"
        return Diagnosis(_PART, name, "broken", message, "toolfold memory clear")
    if os.name == "posix" and stat.S_IMODE(path.stat().st_mode) & 0o077:
        fix = shlex.join(["chmod", "600", str(path)])
        return Diagnosis(_PART, name, "warning", f"{path} can be read by others", fix)
    return Diagnosis(_PART, name, "ok", f"{path}: {plural(count, 'request')}")


def _waiting(documents: Documents) -> Iterator[Diagnosis]:
    """Yield that tools wait for a person."""
    book = TrustStore(documents).load()
    entries = [entry for tools in book.values() for entry in tools.values()]
    waiting = sum(bool(e.waiting and not e.waiting.is_rejected) for e in entries)
    if waiting:
        message = f"{plural(waiting, 'tool')} of servers changed, and nobody has looked"
        yield Diagnosis(_PART, "trust", "warning", message, "toolfold trust")


def _owned(path: Path) -> str:
    return f"make it yours: {shlex.join(['ls', '-ld', str(path)])} says whose it is"


def _moved(path: Path) -> str:
    return shlex.join(["mv", str(path), f"{path}.old"])
