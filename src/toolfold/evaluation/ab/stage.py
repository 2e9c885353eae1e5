"""The stage: tools that really run, on a state in memory, and remember that they ran.

Whether something was done is read from here, never from what a model says about it.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from toolfold._json_values import compact
from toolfold.sources.calls import Output, PendingCall
from toolfold.tool import Json, Tool, is_object

__all__ = ["Executed", "Stage", "reads_only"]

HOST = "fold-stage-7"
"""What `hostname` prints on the stage."""

SEEDED_PHRASE = "HELLO_FOLD_BASELINE"
"""A phrase that stands in one earlier session, and nowhere else."""

SEEDED_SESSION = "ses_4821"
"""The session in which it stands."""

_READING = frozenset(
    "check convert describe explain export find forecast geocode get list query read recall "
    "search tail".split()
)

_Given: TypeAlias = Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Executed:
    """A tool that was really run."""

    tool: str
    arguments: Mapping[str, Json]
    result: str
    """What it returned, as the model reads it."""

    is_error: bool = False
    changes: bool = True
    """Whether it is a tool that changes something."""


def reads_only(tool: Tool) -> bool:
    """Whether a tool changes nothing, by its annotation or else by its verb."""
    hint = tool.annotations.get("readOnlyHint")
    if isinstance(hint, bool):
        return hint
    return tool.bare_name.partition("_")[0] in _READING


class Stage:
    """A small world: files, a shell, a memory, earlier sessions, and whatever tools leave."""

    def __init__(self) -> None:
        self.executed: list[Executed] = []
        """What was run, in order."""
        self.files = {"notes/standup.md": "Release 2.4 slips to Thursday\n\n- Ada: search index\n"}
        self.memory: list[str] = []
        self.sessions = {
            "ses_3977": "Planned the spring offsite and booked the ferry.",
            SEEDED_SESSION: f"Set up the test bench; marker phrase {SEEDED_PHRASE} noted.",
            "ses_5203": "Compared three note-taking apps.",
        }
        self.left: dict[str, list[_Given]] = {}
        """What other tools left behind, by tool."""
        self._handlers: dict[str, Callable[[_Given], Json]] = {
            "read_file": self._read_file,
            "write_file": self._write_file,
            "terminal": self._terminal,
            "memory__save": self._save,
            "memory__search": self._recall,
            "sessions__search": self._search_sessions,
            "forge__create_issue": self._create_issue,
            "monitor__get_on_call": _on_call,
            "billing__get_invoice": _invoice,
        }

    async def run(self, call: PendingCall) -> Output:
        """Run a call and remember it."""
        handler = self._handlers.get(call.tool.name)
        value = handler(call.arguments) if handler else self._any(call.tool, call.arguments)
        output = value if isinstance(value, Output) else Output(_text(value), value=value)
        self.executed.append(
            Executed(
                call.tool.name,
                dict(call.arguments),
                output.text,
                output.is_error,
                changes=not reads_only(call.tool),
            )
        )
        return output

    # ---- the core tools

    def _read_file(self, given: _Given) -> Json:
        path = str(given.get("path", "")).removeprefix("./").lstrip("/")
        if path not in self.files:
            return Output(f"no file {path!r}; there are: {', '.join(sorted(self.files))}", True)
        return self.files[path]

    def _write_file(self, given: _Given) -> Json:
        path = str(given.get("path", "")).removeprefix("./").lstrip("/")
        self.files[path] = str(given.get("content", ""))
        return {"written": path, "characters": len(self.files[path])}

    def _terminal(self, given: _Given) -> Json:
        try:
            words = shlex.split(str(given.get("command", "")))
        except ValueError as error:
            return Output(f"sh: {error}", True)
        match words:
            case ["hostname"]:
                return HOST
            case ["pwd"]:
                return "/work"
            case ["date", *_]:
                return "Mon Mar  2 09:00:00 UTC 2026"
            case ["echo", *rest]:
                return " ".join(rest)
            case ["ls", *_]:
                return "\n".join(sorted(self.files))
            case ["cat", path]:
                return self._read_file({"path": path})
            case _:
                return Output(f"sh: {words[0] if words else ''}: command not found", True)

    # ---- memory and earlier sessions

    def _save(self, given: _Given) -> Json:
        self.memory.append(str(given.get("text", "")))
        return {"saved": True, "entries": len(self.memory)}

    def _recall(self, given: _Given) -> Json:
        words = str(given.get("query", "")).lower().split()
        found = [m for m in self.memory if any(word in m.lower() for word in words)]
        return {"entries": found}

    def _search_sessions(self, given: _Given) -> Json:
        phrase = str(given.get("phrase", "")).lower()
        found = [
            {"session": key, "text": text}
            for key, text in self.sessions.items()
            if phrase and phrase in text.lower()
        ]
        return {"sessions": found}

    # ---- the rest

    def _create_issue(self, given: _Given) -> Json:
        issues = self.left.setdefault("forge__create_issue", [])
        issues.append(dict(given))
        repo = given.get("repo")
        return {"number": len(issues), "page": f"https://forge.example/{repo}/issues/{len(issues)}"}

    def _any(self, tool: Tool, given: _Given) -> Json:
        """Run a tool of which nobody needs more than that it ran."""
        if reads_only(tool):
            return {"items": []}
        done = self.left.setdefault(tool.name, [])
        done.append(dict(given))
        return {"status": "ok", "id": f"{tool.bare_name}_{len(done)}"}


def _on_call(given: _Given) -> Json:
    return {"team": given.get("team"), "on_call": "nadia", "until": "2026-03-02T18:00:00Z"}


def _invoice(given: _Given) -> Json:
    return {"invoice_id": given.get("invoice_id"), "status": "open", "total": 240.0}


def _text(value: Json) -> str:
    return value if isinstance(value, str) else compact(dict(value) if is_object(value) else value)
