"""A host for the bundled catalog: a small made-up world, kept in memory.

Sixteen of the tools really run: a calendar, a mailbox, notes, checklists, an issue
tracker. The others say that they are not connected. Nothing asks a clock or a network, so
the same calls give the same results; it is always the same Sunday.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import TypeAlias

from toolfold.demo import demo_catalog
from toolfold.sources.calls import Output, PendingCall
from toolfold.sources.registry import Registry
from toolfold.tool import Json, Tool

__all__ = ["CORE", "SYSTEM", "DemoHost"]

CORE = ("list_calendar_events", "mail__search_mail")
"""The tools that a personal assistant needs all the time."""

SYSTEM = (
    "You are a personal assistant. Today is Sunday, 15 November 2026; the user's clock is at "
    "UTC+01:00. Answer in a sentence or two."
)
"""What a model must know about this world."""

_ZONE = timezone(timedelta(hours=1))
_Arguments: TypeAlias = Mapping[str, Json]
_Handler: TypeAlias = Callable[[_Arguments], Json]

_READING = ("get", "list", "search", "find", "query", "describe", "explain", "tail", "forecast")
_READING_TOO = ("travel__convert_currency", "travel__geocode_address", "monitor__check_uptime")
_DESTROYING = (
    "billing__cancel_subscription", "billing__refund_payment", "billing__void_invoice",
    "chat__delete_message", "crm__merge_contacts", "database__execute_statement",
    "database__kill_session", "database__restore_backup", "database__run_migration",
    "delete_calendar_event", "deploy__exec_in_container", "deploy__rollback_release",
    "deploy__rotate_secret", "drive__delete_file", "notes__delete_page",
    "travel__cancel_booking",
)  # fmt: skip


class DemoHost:
    """A made-up world and the tools that act on it.

    Example:
        host = DemoHost()
        host.run("create_calendar_event", {"title": "Tea", "start": {"date": "2026-11-16"}})
        agent = Agent(model, host.registry(), system=SYSTEM)
    """

    def __init__(self) -> None:
        self.calendar = Calendar()
        self.mailbox = Mailbox()
        self.notebook = Notebook()
        self.tracker = Tracker()
        self._handlers: dict[str, _Handler] = {
            "create_calendar_event": self.calendar.create,
            "list_calendar_events": self.calendar.list,
            "get_calendar_event": self.calendar.get,
            "update_calendar_event": self.calendar.update,
            "delete_calendar_event": self.calendar.delete,
            "mail__search_mail": self.mailbox.search,
            "mail__read_mail": self.mailbox.read,
            "mail__send_mail": self.mailbox.send,
            "notes__create_note": self.notebook.create,
            "notes__list_notes": self.notebook.list,
            "notes__add_checklist_item": self.notebook.add_item,
            "notes__tick_checklist_item": self.notebook.tick_item,
            "forge__create_issue": self.tracker.create,
            "forge__list_issues": self.tracker.list,
            "forge__get_issue": self.tracker.get,
            "forge__update_issue": self.tracker.update,
        }

    @property
    def connected(self) -> tuple[str, ...]:
        """The names of the tools that run."""
        return tuple(self._handlers)

    def run(self, name: str, arguments: _Arguments) -> Json:
        """Run a tool and return its result; an `Output` that is an error, if it does not run.

        Raises:
            LookupError: What the arguments name is not there.
            ValueError: A moment cannot be read.
        """
        handler = self._handlers.get(name)
        if handler is None:
            text = f"{name} is not connected in this demo. Say so; do not claim that it ran."
            return Output(text, is_error=True)
        return handler(arguments)

    def registry(self) -> Registry:
        """Return the tools of the bundled catalog, run by this host."""

        async def run(call: PendingCall) -> Json:
            return self.run(call.tool.name, call.arguments)

        registry = Registry()
        for tool in demo_catalog():
            registry.add(_annotated(tool), run, core=tool.name in CORE)
        return registry


def _annotated(tool: Tool) -> Tool:
    """Return a tool with what it says about harm; the catalog's records say nothing."""
    if tool.name in _DESTROYING:
        return replace(tool, annotations={"destructiveHint": True})
    reads = tool.bare_name.split("_")[0] in _READING or tool.name in _READING_TOO
    hints = {"readOnlyHint": True} if reads else {"destructiveHint": False}
    return replace(tool, annotations=hints)


class Calendar:
    """The user's calendar."""

    def __init__(self) -> None:
        self.events: dict[str, dict[str, Json]] = {}
        self._made = 0
        self.create(
            {
                "title": "Sprint review",
                "start": {"date_time": "2026-11-16T14:00:00+01:00"},
                "location": "Room 4",
            }
        )
        self.create({"title": "Dentist", "start": {"date_time": "2026-11-17T09:00:00+01:00"}})

    def create(self, arguments: _Arguments) -> Json:
        """Put an event on the calendar."""
        _start(arguments)
        self._made += 1
        key = f"evt_{self._made}"
        self.events[key] = dict(arguments)
        return {"event_id": key, "status": "confirmed"}

    def list(self, arguments: _Arguments) -> Json:
        """List the events between two moments."""
        first, last = _moment(arguments["from"]), _moment(arguments["to"])
        words = str(arguments.get("query", "")).lower()
        found = [
            {"event_id": key, **event}
            for key, event in self.events.items()
            if first <= _start(event) < last and words in str(event).lower()
        ]
        found.sort(key=_start)
        return {"events": found[: arguments.get("limit", 100)]}

    def get(self, arguments: _Arguments) -> Json:
        """Return one event."""
        key, event = self._event(arguments)
        return {"event_id": key, **event}

    def update(self, arguments: _Arguments) -> Json:
        """Change an event."""
        key, event = self._event(arguments)
        for name in ("title", "location"):
            if name in arguments:
                event[name] = arguments[name]
        for name in ("start", "end"):
            if name in arguments:
                _moment(arguments[name])
                event[name] = {"date_time": arguments[name]}
        return {"event_id": key, **event}

    def delete(self, arguments: _Arguments) -> Json:
        """Take an event off the calendar."""
        key, event = self._event(arguments)
        del self.events[key]
        return {"event_id": key, "title": event["title"], "status": "cancelled"}

    def _event(self, arguments: _Arguments) -> tuple[str, dict[str, Json]]:
        key = arguments["event_id"]
        if key not in self.events:
            raise LookupError(f"no event has the id {key!r}")
        return key, self.events[key]


class Mailbox:
    """The user's mail."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Json]] = []
        """The outbox, which nobody empties."""
        self.mails: list[dict[str, Json]] = [
            {
                "mail_id": "mail_1",
                "from": "Ada Berg <ada@acme.example>",
                "subject": "Numbers for the third quarter",
                "received": "2026-11-12",
                "unread": False,
                "text": "Revenue is up by 4 %. The sheet is in the shared folder.",
            },
            {
                "mail_id": "mail_2",
                "from": "Sam Ortiz <sam@acme.example>",
                "subject": "Sprint review: who shows what",
                "received": "2026-11-13",
                "unread": True,
                "text": "Could you show the new sign-in page tomorrow at two? Ten minutes.",
            },
            {
                "mail_id": "mail_3",
                "from": "Printworks <billing@printworks.example>",
                "subject": "Invoice 2207 is due",
                "received": "2026-11-14",
                "unread": True,
                "text": "Invoice 2207 over 180.00 EUR is due on 20 November.",
            },
        ]

    def search(self, arguments: _Arguments) -> Json:
        """Return the headers of the mails that fit."""
        words = str(arguments.get("query", "")).lower().split()
        sender = str(arguments.get("from", "")).lower()
        found = [
            {key: value for key, value in mail.items() if key != "text"}
            for mail in self.mails
            if sender in mail["from"].lower()
            and all(word in f"{mail['subject']} {mail['text']}".lower() for word in words)
            and arguments.get("unread") in (None, mail["unread"])
            and arguments.get("after", "") <= mail["received"]
            and mail["received"] < arguments.get("before", "9999")
        ]
        return {"mails": found[: arguments.get("limit", 25)]}

    def read(self, arguments: _Arguments) -> Json:
        """Return one mail, and mark it as read."""
        for mail in self.mails:
            if mail["mail_id"] == arguments["mail_id"]:
                mail["unread"] = mail["unread"] and not arguments.get("mark_read", True)
                return mail
        raise LookupError(f"no mail has the id {arguments['mail_id']!r}")

    def send(self, arguments: _Arguments) -> Json:
        """Put a mail into the outbox."""
        self.sent.append(dict(arguments))
        return {"mail_id": f"sent_{len(self.sent)}", "to": arguments["to"], "status": "sent"}


class Notebook:
    """The user's notes and checklists."""

    def __init__(self) -> None:
        self.notes: list[dict[str, Json]] = []
        self.checklists: dict[str, list[dict[str, Json]]] = {
            "Groceries": [{"item": "oat milk", "done": False}]
        }

    def create(self, arguments: _Arguments) -> Json:
        """Jot a note down."""
        text = arguments["text"]
        title = arguments.get("title") or text.split("\n", 1)[0][:60]
        note = {"note_id": f"note_{len(self.notes) + 1}", "title": title}
        self.notes.append({**note, "notebook": "Inbox", **arguments})
        return note

    def list(self, arguments: _Arguments) -> Json:
        """List the notes, newest first."""
        wanted = arguments.get("notebook")
        found = [note for note in reversed(self.notes) if wanted in (None, note["notebook"])]
        return {"notes": found[: arguments.get("limit", 50)]}

    def add_item(self, arguments: _Arguments) -> Json:
        """Add an item to a checklist, which may be new."""
        items = self.checklists.setdefault(arguments["checklist"], [])
        items.append({"item": arguments["item"], "done": False})
        return {"checklist": arguments["checklist"], "items": items}

    def tick_item(self, arguments: _Arguments) -> Json:
        """Tick an item off, or on again."""
        for item in self.checklists.get(arguments["checklist"], []):
            if item["item"].lower() == arguments["item"].lower():
                item["done"] = arguments.get("done", True)
                return item
        raise LookupError(f"{arguments['checklist']!r} has no item {arguments['item']!r}")


class Tracker:
    """The issues of the user's repositories."""

    def __init__(self) -> None:
        self.issues: list[dict[str, Json]] = []
        self.create(
            {"repo": "acme/website", "title": "Sign-in page is blank on a phone", "labels": ["bug"]}
        )
        self.create({"repo": "acme/website", "title": "Say when we are open on holidays"})

    def create(self, arguments: _Arguments) -> Json:
        """Open an issue."""
        number = sum(issue["repo"] == arguments["repo"] for issue in self.issues) + 1
        issue: dict[str, Json] = {"number": number, "state": "open", "labels": [], **arguments}
        self.issues.append(issue)
        return {"number": number, "url": f"https://forge.example/{arguments['repo']}/{number}"}

    def list(self, arguments: _Arguments) -> Json:
        """List the issues of a repository, newest first."""
        state = arguments.get("state", "open")
        found = [
            {key: issue[key] for key in ("number", "title", "state", "labels")}
            for issue in reversed(self.issues)
            if issue["repo"] == arguments["repo"]
            and state in ("all", issue["state"])
            and set(arguments.get("labels", [])) <= set(issue["labels"])
        ]
        return {"issues": found}

    def get(self, arguments: _Arguments) -> Json:
        """Return one issue."""
        return self._issue(arguments)

    def update(self, arguments: _Arguments) -> Json:
        """Change an issue."""
        issue = self._issue(arguments)
        for name in ("title", "body", "state", "close_reason", "labels"):
            if name in arguments:
                issue[name] = arguments[name]
        return issue

    def _issue(self, arguments: _Arguments) -> dict[str, Json]:
        wanted = (arguments["repo"], arguments["number"])
        for issue in self.issues:
            if (issue["repo"], issue["number"]) == wanted:
                return issue
        raise LookupError(f"{wanted[0]} has no issue {wanted[1]}")


def _start(event: _Arguments) -> datetime:
    when = event["start"]
    return _moment(when.get("date_time") or when.get("date") or "")


def _moment(text: str) -> datetime:
    made = datetime.fromisoformat(text)
    return made if made.tzinfo else made.replace(tzinfo=_ZONE)
