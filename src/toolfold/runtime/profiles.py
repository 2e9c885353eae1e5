"""What a model's size asks for.

A profile fills in what the host left open: it changes settings only where they stand at
their defaults, so whatever a person has set wins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType

from toolfold.errors import ConfigError
from toolfold.settings import Settings
from toolfold.tool import Json

__all__ = ["SMALL", "STANDARD", "Profile", "profile_named"]

_DEFAULTS = Settings()
_KEYS = frozenset(item.name for item in fields(Settings))


def _nothing() -> Mapping[str, Json]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Profile:
    """Settings and limits that go together.

    Example:
        agent = Agent(model, registry, profile=SMALL)
    """

    name: str

    settings: Mapping[str, Json] = field(default_factory=_nothing)
    """The settings that take the place of the defaults, by key."""

    reply_tokens: int = 4_096
    """The cap on one reply."""

    recover: bool = False
    """Whether calls that arrive as plain text are taken as calls: small models write them so.
    What then runs unasked is the agent's to say: `Agent.recovered`."""

    def apply(self, settings: Settings) -> Settings:
        """Return the settings with those that stand at their defaults replaced by this profile's.

        Raises:
            ConfigError: The profile names a setting or a value that there is not.
        """
        changes: dict[str, Json] = {}
        for key, value in self.settings.items():
            if key not in _KEYS:
                raise ConfigError(
                    f"the profile {self.name!r} has the unknown setting {key!r}",
                    hint="use a key of the settings reference",
                )
            if getattr(settings, key) == getattr(_DEFAULTS, key):
                changes[key] = value
        return replace(settings, **changes) if changes else settings


STANDARD = Profile("standard")
"""For models that use tools with ease."""

SMALL = Profile(
    "small",
    MappingProxyType(
        {
            "bridge_texts": "short",
            "core": ("preset:small",),
            "threshold_tokens": 3_000,
            "listing_max_tokens": 200,
            "search_default_limit": 3,
            "search_max_tokens": 600,
            "describe_max_tokens": 1_500,
            "prefetch": "always",
        }
    ),
    reply_tokens=1_024,
    recover=True,
)
"""For models of a few billion parameters: folded from 3,000 tokens on whatever the window,
short texts, short answers, the likely tools named behind the user's message, and calls that
are read out of the model's text."""

_PROFILES = {profile.name: profile for profile in (STANDARD, SMALL)}


def profile_named(name: str) -> Profile:
    """Return the profile of this name.

    Raises:
        ConfigError: There is none.
    """
    profile = _PROFILES.get(name)
    if profile is None:
        raise ConfigError(f"the profile is {name!r}", hint=f"write {' | '.join(_PROFILES)}")
    return profile
