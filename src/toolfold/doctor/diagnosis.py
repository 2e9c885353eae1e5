"""One thing that was looked at: how it is, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["Diagnosis", "Health"]

Health: TypeAlias = Literal["ok", "warning", "broken"]
"""How a thing is: as it should be, worth a look, or not working."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What is known of one part of the set-up. It never holds the value of a secret."""

    part: str
    """Where it belongs: `installation`, `configuration`, `servers` and so on."""

    name: str
    health: Health
    message: str
    fix: str = ""
    """A command that mends it, or a sentence where none does."""
