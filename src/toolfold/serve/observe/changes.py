"""What people change in a running gateway: logged, and written down in the audit."""

from __future__ import annotations

import logging
import time
from contextvars import ContextVar

from toolfold._bounds import one_line
from toolfold.serve.observe.audit import AuditLog, ChangeRecord
from toolfold.serve.principals import LOCAL

__all__ = ["ASKED_BY", "ChangeLog"]

_log = logging.getLogger(__name__)

_DETAIL_LIMIT = 500


ASKED_BY: ContextVar[str] = ContextVar("asked_by", default=LOCAL.name)
"""Who asks for the change that is being made."""


class ChangeLog:
    """Takes note of changes.

    Args:
        audit: Where they are written down, beside the log.
    """

    def __init__(self, audit: AuditLog | None = None) -> None:
        self._audit = audit

    def note(
        self,
        verb: str,
        target: str,
        detail: str = "",
        *,
        refused: bool = False,
    ) -> None:
        """Take note of a change.

        Args:
            verb: What was done.
            target: To what.
            detail: What came of it.
            refused: Whether it was tried in vain.
        """
        outcome, principal = "refused" if refused else "ok", ASKED_BY.get()
        record = ChangeRecord(time.time(), principal, verb, target, outcome, detail)
        said = one_line(f"{verb} {target}", 200)
        more = f": {one_line(detail, _DETAIL_LIMIT)}" if detail else ""
        level = logging.WARNING if refused else logging.INFO
        _log.log(level, "%s by %s%s%s", said, principal, " was refused" if refused else "", more)
        if self._audit is not None:
            self._audit.changed(record)
