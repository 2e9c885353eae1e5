"""Arms: ways to show a model its tools, held against each other over the same conversations.

One table for the live A/B and for replays, so that a name means the same in both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from toolfold.errors import ConfigError
from toolfold.evaluation.ab.planned import Habits
from toolfold.settings import Settings

__all__ = ["ARMS", "SHORT_NAMES", "Arm", "arms_named"]


@dataclass(frozen=True, slots=True)
class Arm:
    """One way to show a model its tools, and for one that follows a plan, to go about them."""

    name: str
    about: str
    settings: Settings
    prefetch: Literal["off", "sure", "always"] = "off"
    """When the likely tools are named behind the user's message."""

    habits: Habits | None = None
    """What a model that follows a plan does in this arm; a real one has its own habits."""


_ON = Settings(enabled="on", cache_dir="off")

ARMS = {
    arm.name: arm
    for arm in (
        Arm("unfolded", "all of them, as they are", replace(_ON, enabled="off")),
        Arm("bridge", "behind the bridge", _ON),
        Arm("stub", "names and descriptions, parameters on demand", replace(_ON, strategy="stub")),
        Arm("bridge+sure", "behind the bridge, the very likely ones named", _ON, prefetch="sure"),
        Arm("bridge+prefetch", "behind the bridge, the likely ones named", _ON, prefetch="always"),
        Arm(
            "bridge+describe",
            "behind the bridge, by a model that asks for every schema",
            _ON,
            habits=Habits(describes_first=True),
        ),
    )
}
"""The arms, by name."""

SHORT_NAMES = {"folded": "bridge", "sure": "bridge+sure", "prefetch": "bridge+prefetch"}
"""Other names of arms."""


def arms_named(names: Sequence[str], what: str = "arm") -> tuple[Arm, ...]:
    """Return the arms of these names, each once, under the name it was asked for by.

    Args:
        names: The names, or the short ones.
        what: What an error calls them.

    Raises:
        ConfigError: A name is none.
    """
    chosen: list[Arm] = []
    for name in dict.fromkeys(names):
        arm = ARMS.get(SHORT_NAMES.get(name, name))
        if arm is None:
            there = ", ".join([*ARMS, *SHORT_NAMES])
            raise ConfigError(f"no {what} is named {name!r}", hint=f"there are: {there}")
        chosen.append(replace(arm, name=name))
    return tuple(chosen)
