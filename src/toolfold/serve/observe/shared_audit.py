"""The audit of several replicas, in PostgreSQL: lines wait in a queue and are written in batches.

No call waits for it. What the database does not take, because it is away, is slow or refuses,
goes to the file of the process, and that is said once. A batch whose end was not heard of may
stand in both.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable
from contextlib import suppress
from os import getpid
from typing import NamedTuple

from toolfold.store.postgres.audit import AuditLine, PostgresAudit
from toolfold.store.postgres.database import Database
from toolfold.store.store import StoreAwayError

__all__ = ["SharedAudit"]

_log = logging.getLogger(__name__)

WAITING = 10_000
"""How many lines may wait; what comes beyond that goes to the file."""

BATCH = 500
"""How many lines are written at once."""

PRUNE_EVERY = 3_600.0
"""How often old lines are looked for, in seconds."""

PARTING = 10.0
"""How long the last lines may take when all is over, in seconds."""


class _Waiting(NamedTuple):
    tenant: str
    line: AuditLine
    otherwise: Callable[[str], None]


class SharedAudit:
    """Takes lines, and has a thread write them.

    Args:
        audit: Where to.
        days: For how many days lines are kept; 0 is for ever.
    """

    def __init__(self, audit: PostgresAudit, days: float = 0) -> None:
        self._audit = audit
        self._days = days
        self._waiting: deque[_Waiting] = deque()
        self._wake = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_closing = False
        self._busy = 0
        self._problem = ""
        self._pruned = -PRUNE_EVERY

    @classmethod
    def of(cls, database: Database, days: float = 0) -> SharedAudit:
        """Return the audit of a database, as this process writes it."""
        return cls(PostgresAudit(database, f"{socket.gethostname()}:{getpid()}"), days)

    def add(self, line: str, at: float, tenant: str, otherwise: Callable[[str], None]) -> None:
        """Have a line written, soon.

        Args:
            line: The line, JSON in ASCII.
            at: When it happened, in seconds since 1970.
            tenant: Whose it is.
            otherwise: Takes the line where the database does not.
        """
        with self._wake:
            has_room = len(self._waiting) < WAITING and not self._is_closing
            if has_room:
                self._waiting.append(_Waiting(tenant, AuditLine(at, line), otherwise))
                self._wake.notify()
                if self._thread is None:
                    self._thread = threading.Thread(
                        target=self._work, name="toolfold-audit", daemon=True
                    )
                    self._thread.start()
        if not has_room:
            self._say("more is written down than the database takes")
            otherwise(line)

    def flush(self, seconds: float = PARTING) -> bool:
        """Wait until all that was added is written somewhere; return whether it is."""
        deadline = time.monotonic() + seconds
        with self._wake:
            while self._waiting or self._busy:
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                self._wake.wait(left)
        return True

    def close(self) -> None:
        """Write what waits: to the database within a while, and else to the file."""
        with self._wake:
            self._is_closing = True
            self._wake.notify_all()
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.join(PARTING)
        with self._wake:
            left = list(self._waiting)
            self._waiting.clear()
        for waiting in left:
            waiting.otherwise(waiting.line.line)

    def _work(self) -> None:
        while True:
            with self._wake:
                while not self._waiting and not self._is_closing:
                    self._wake.wait()
                if not self._waiting:
                    return
                some = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
                self._busy = len(some)
            try:
                self._write(some)
                self._prune()
            except Exception:
                _log.exception("the audit failed")
            finally:
                with self._wake:
                    self._busy = 0
                    self._wake.notify_all()

    def _write(self, some: list[_Waiting]) -> None:
        from psycopg import Error

        by_tenant: defaultdict[str, list[_Waiting]] = defaultdict(list)
        for waiting in some:
            by_tenant[waiting.tenant].append(waiting)
        for tenant, own in by_tenant.items():
            try:
                self._audit.add(tenant, [waiting.line for waiting in own])
            except (StoreAwayError, Error, UnicodeError) as error:
                self._say(str(error).partition("\n")[0])
                for waiting in own:
                    waiting.otherwise(waiting.line.line)
            else:
                if self._problem:
                    self._problem = ""
                    _log.info("the audit is written to the database again")

    def _prune(self) -> None:
        if not self._days or time.monotonic() < self._pruned + PRUNE_EVERY:
            return
        self._pruned = time.monotonic()
        with suppress(StoreAwayError):
            self._audit.prune_all(self._days)

    def _say(self, problem: str) -> None:
        if not self._problem:
            _log.warning("%s; the audit goes to the file of this process for now", problem)
        self._problem = problem
