"""The one way of a call, whatever door it came through."""

from toolfold.dispatch.activity import Activity, ActivityFeed, Listener
from toolfold.dispatch.approvals import Approvals, destructive, not_read_only
from toolfold.dispatch.dispatch import CallResult, Dispatch, Origin
from toolfold.dispatch.hooks import Guardrail, Hook
from toolfold.dispatch.records import CallRecord, Observer, Observers, SearchRecord, Silent

__all__ = [
    "Activity",
    "ActivityFeed",
    "Approvals",
    "CallRecord",
    "CallResult",
    "Dispatch",
    "Guardrail",
    "Hook",
    "Listener",
    "Observer",
    "Observers",
    "Origin",
    "SearchRecord",
    "Silent",
    "destructive",
    "not_read_only",
]
