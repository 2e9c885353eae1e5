"""The demo's host: a made-up world in which some of the tools run."""

from __future__ import annotations

import pytest

from toolfold.demo.host import CORE, DemoHost
from toolfold.runtime import Output


def test_sixteen_tools_of_the_demo_run_and_the_others_say_that_they_do_not() -> None:
    host = DemoHost()
    registry = host.registry()

    assert len(registry) == 207
    assert len(host.connected) == 16
    assert registry.core == CORE
    assert set(host.connected) <= {tool.name for tool in registry.tools()}
    assert host.run("travel__book_flight", {}) == Output(
        "travel__book_flight is not connected in this demo. Say so; do not claim that it ran.",
        is_error=True,
    )


def test_the_demos_world_changes_by_what_is_called() -> None:
    host = DemoHost()
    week = {"from": "2026-11-15T00:00:00Z", "to": "2026-11-22T00:00:00Z"}

    made = host.run("create_calendar_event", {"title": "Tea", "start": {"date": "2026-11-16"}})
    host.run("update_calendar_event", {"event_id": "evt_1", "start": "2026-11-18T10:00:00+01:00"})
    host.run("delete_calendar_event", {"event_id": "evt_2"})
    listed = host.run("list_calendar_events", week)["events"]
    again = host.run("create_calendar_event", {"title": "x", "start": {"date": "2026-11-16"}})
    host.run("mail__send_mail", {"to": ["ada@acme.example"], "subject": "Hi", "body": "Hello"})
    host.run("mail__read_mail", {"mail_id": "mail_3"})
    unread = host.run("mail__search_mail", {"unread": True})["mails"]
    host.run("notes__create_note", {"text": "first line\nsecond"})
    host.run("notes__tick_checklist_item", {"checklist": "Groceries", "item": "Oat milk"})
    host.run("forge__update_issue", {"repo": "acme/website", "number": 1, "state": "closed"})

    assert made == {"event_id": "evt_3", "status": "confirmed"}
    assert again["event_id"] == "evt_4"
    assert [event["title"] for event in listed] == ["Tea", "Sprint review"]
    assert host.run("get_calendar_event", {"event_id": "evt_1"})["location"] == "Room 4"
    assert [mail["subject"] for mail in host.mailbox.sent] == ["Hi"]
    assert [mail["mail_id"] for mail in unread] == ["mail_2"]
    assert host.run("notes__list_notes", {})["notes"][0]["title"] == "first line"
    assert host.notebook.checklists["Groceries"][0]["done"] is True
    assert [
        issue["number"]
        for issue in host.run("forge__list_issues", {"repo": "acme/website"})["issues"]
    ] == [2]
    with pytest.raises(LookupError, match="no event has the id 'evt_2'"):
        host.run("delete_calendar_event", {"event_id": "evt_2"})


def test_every_destructive_tool_of_the_demo_is_marked_and_none_of_them_only_reads() -> None:
    marked = {
        tool.name: dict(tool.annotations)
        for tool in DemoHost().registry().tools()
        if tool.annotations
    }

    assert marked["delete_calendar_event"] == {"destructiveHint": True}
    assert marked["list_calendar_events"] == {"readOnlyHint": True}
    assert sum(hints == {"destructiveHint": True} for hints in marked.values()) == 16
    for name in ("create_calendar_event", "travel__check_in", "mail__read_mail"):
        assert marked[name] == {"destructiveHint": False}
