"""How tasks and groups of errors end."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, cast

__all__ = ["heard", "leaf"]

_log = logging.getLogger(__name__)


def leaf(error: BaseException) -> BaseException:
    """Return what went wrong within groups of errors."""
    while isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        error = group.exceptions[0]
    return error


def heard(task: asyncio.Task[Any]) -> None:
    """Take note of how a task ended, so that nobody else has to."""
    if not task.cancelled() and task.exception() is not None:
        _log.debug("a task ended: %r", task.exception())
