"""The audit log that a configuration asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolfold.config.opened_store import store_of
from toolfold.redact import Redactor
from toolfold.serve.observe.audit import AuditLog

if TYPE_CHECKING:
    from toolfold.config.serve_settings import ServeSettings

__all__ = ["audit_of"]


def audit_of(settings: ServeSettings, redactor: Redactor) -> AuditLog | None:
    """Return what `serve.audit` and `serve.store` ask for; None where nothing is written down.

    A file that is named is meant: its lines go nowhere else.

    Args:
        settings: How to serve.
        redactor: Takes secrets out.

    Raises:
        ConfigError: The store cannot be used.
        StoreAwayError: It is shared, and cannot be reached.
    """
    file = settings.audit_file
    if file is None:
        return None
    database = store_of(settings).database if settings.audit == "auto" else None
    if database is None:
        return AuditLog(file, redactor)
    from toolfold.serve.observe.shared_audit import SharedAudit

    return AuditLog(file, redactor, shared=SharedAudit.of(database, settings.audit_days))
