"""What a live run found: checks that held or did not, and what the model did."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Report", "short"]


@dataclass(slots=True)
class Report:
    """Prints checks as they are made, and keeps count."""

    passed: int = 0
    failed: int = 0
    notes: list[str] = field(default_factory=list[str])
    """What the model did, in the order in which it did it."""

    def check(self, what: str, held: bool, saw: str = "") -> bool:
        """Note whether something holds, and what was seen."""
        self.passed += held
        self.failed += not held
        print(f"  {'pass' if held else 'FAIL'}  {what}" + (f": {saw}" if saw else ""), flush=True)
        return held

    def note(self, text: str) -> None:
        """Keep what the model did, to be told at the end."""
        self.notes.append(text)


def short(text: str, limit: int = 90) -> str:
    """Return a text on one line, cut where it is long, in quotes."""
    line = " ".join(text.split())
    return repr(line if len(line) <= limit else f"{line[: limit - 1]}…")
