"""The activity feed: one line for each thing that happens, with the real tool's name."""

from __future__ import annotations

import json

from toolfold._bounds import cut, one_line
from toolfold._terminal import Style
from toolfold.chat.screen import Screen, shown_json
from toolfold.dispatch.activity import Activity
from toolfold.tool import is_object

__all__ = ["Feed"]

_NAMES = 4
_NAME_LIMIT = 80
_ARGUMENTS_LIMIT = 72
_FAULT_LIMIT = 110


class Feed:
    """Shows what runs.

    Args:
        screen: Where to show it.
    """

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._last_progress = ""

    def begin(self) -> None:
        """Forget the last turn."""
        self._last_progress = ""

    def show(self, activity: Activity) -> None:
        """Show one thing that happened."""
        name = _name(activity)
        why = one_line(activity.message, _FAULT_LIMIT)
        match activity.kind:
            case "searched":
                self._line(f"  ⌕ {_asked(activity)} → {_found(activity.found)}", "cyan")
            case "started":
                given = cut(shown_json(dict(activity.arguments), 4_000), _ARGUMENTS_LIMIT)
                self._line(f"  ▶ {name} {given}", "dim")
            case "progress":
                self._progress(name, activity)
            case "rejected":
                self._line(f"  ✗ {why}", "red")
            case "refused":
                self._line(f"  ⊘ {name} refused: {why}", "yellow")
            case "finished":
                took = _duration(activity.seconds)
                if activity.is_error:
                    self._line(f"  ✗ {name} {took}{f': {why}' if why else ''}", "red")
                else:
                    self._line(f"  ✓ {name} {took}, {activity.size:,} chars", "green")

    def _line(self, text: str, *style: Style) -> None:
        self._screen.line(self._screen.fitted(text), *style)

    def _progress(self, name: str, activity: Activity) -> None:
        far = "" if activity.fraction is None else f" {activity.fraction:.0%}"
        text = f"  ⋯ {name}{far} {one_line(activity.message, _FAULT_LIMIT)}".rstrip()
        if text != self._last_progress:
            self._last_progress = text
            self._screen.live(text, "dim")


def _name(activity: Activity) -> str:
    name = one_line(activity.tool, _NAME_LIMIT)
    _, delegated, agent = activity.agent.partition("/")
    return f"{one_line(agent, _NAME_LIMIT)}/{name}" if delegated else name


def _asked(activity: Activity) -> str:
    """Return what a search asked for: its query, or the names it wants described."""
    try:
        given = json.loads(activity.message)
    except ValueError:
        given = None
    for key in ("query", "name"):
        if is_object(given) and isinstance(given.get(key), str):
            return f'"{one_line(given[key], _NAME_LIMIT)}"'
    return one_line(activity.message, _NAME_LIMIT)


def _found(names: tuple[str, ...]) -> str:
    shown = ", ".join(one_line(name, _NAME_LIMIT) for name in names[:_NAMES])
    more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    return shown + more or "nothing"


def _duration(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1_000:.0f} ms"
