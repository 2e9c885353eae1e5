"""What a proxy did last, as its user may know it."""

from __future__ import annotations

from typing import Any

from support.running import wait
from toolfold.dispatch.records import RequestRecord
from toolfold.redact import Redactor
from toolfold.serve.control.recent_activity import KEPT, RecentActivity


def request(**changes: Any) -> RequestRecord:
    fields: dict[str, Any] = {
        "at": 0.0,
        "principal": "ada",
        "upstream": "openai",
        "dialect": "openai-chat",
        "model": "gpt-6",
        "outcome": "folded",
        "status": 200,
        "seconds": 1.5,
        "rounds": 2,
        "searches": 1,
        "tokens_before": 900,
        "tokens_after": 90,
    }
    return RequestRecord(**{**fields, **changes})


def told(activity: RecentActivity, **arguments: Any) -> Any:
    return wait(activity.activity(arguments))


def test_a_request_is_told_with_what_folding_saved_and_without_its_secrets() -> None:
    activity = RecentActivity(Redactor(["hunter2222"]))
    activity.requested(request())
    activity.requested(request(outcome="failed", error="no such key: hunter2222"))
    activity.requested(request(dialect=""))

    newest, oldest = told(activity)["requests"]

    assert "hunter2222" not in newest["error"]
    assert oldest == {
        "number": 1,
        "at": "1970-01-01T00:00:00.000Z",
        "principal": "ada",
        "upstream": "openai",
        "model": "gpt-6",
        "outcome": "folded",
        "status": 200,
        "seconds": 1.5,
        "rounds": 2,
        "searches": 1,
        "tokens_before": 900,
        "tokens_after": 90,
        "error": None,
    }
    assert [each["number"] for each in told(activity, since=1)["requests"]] == [2]


def test_what_is_kept_of_requests_is_bounded() -> None:
    activity = RecentActivity()
    for _ in range(KEPT + 50):
        activity.requested(request())

    assert len(told(activity, limit=10_000)["requests"]) == KEPT
