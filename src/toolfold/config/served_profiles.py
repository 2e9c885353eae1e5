"""Profiles: named parts of a gateway, each with its servers, its scope and its settings.

A profile only ever narrows. What exists under it is in the scope of whoever asks and in the
profile's own; nothing that it says makes a tool exist, or run unasked, that would not without
it. So what tools do (`annotations`) and what the process has one of are not a profile's to say.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from glob import escape
from typing import TYPE_CHECKING, Any

from toolfold.errors import ConfigError
from toolfold.scope import Scope
from toolfold.settings import Settings
from toolfold.settings.block import checked
from toolfold.settings.check import suggestion
from toolfold.settings.declared import declared, setting
from toolfold.settings.file import Given, Place, Top, settings_block
from toolfold.settings.load import settings_in
from toolfold.settings.words_file import with_words_beside

if TYPE_CHECKING:
    from toolfold.config.oauth_settings import Grant
    from toolfold.config.serve_settings import ServeSettings, Token

__all__ = ["ServedProfile", "check_limits", "is_profile_name", "profile_named", "read_profiles"]

NOT_THEIRS: Mapping[str, str] = {
    "annotations": "what tools do is the same for everybody",
    "bridge_prefix": "the names of the bridge's tools are the same for everybody",
    "cache_dir": "the process has one",
    "memory": "the process has one",
}
"""The settings under `tools: tool_search:` that a profile cannot have, and why."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z")
_TOOLS = "tools"


@dataclass(frozen=True, slots=True)
class ServedProfile:
    """One profile. What it leaves out is as it is without one."""

    name: str
    """Its name, and the end of its path."""

    servers: tuple[str, ...] | None = setting(
        None,
        "The servers whose tools exist under it, by name; modules under `functions` and APIs "
        "under `openapi`, too. Unset, all of them.",
    )
    allow: tuple[str, ...] = setting(
        ("*",), "Patterns of the tools that exist under it; `@NAME` is a whole server."
    )
    deny: tuple[str, ...] = setting((), "Patterns of tools that do not; they win over `allow`.")
    read_only: bool = setting(
        False, "Whether only tools that say they change nothing exist under it."
    )
    context_length: int | None = setting(
        None,
        "The context window that the gate reckons with under it, in place of "
        "`serve.context_length`.",
        low=1,
        high=100_000_000,
    )
    settings: Settings = field(default_factory=Settings)
    """How to fold under it: the file's settings, with its own over them."""

    @property
    def scope(self) -> Scope:
        """The tools that can exist under it."""
        within = None
        if self.servers is not None:
            within = Scope(tuple(f"@{escape(name)}" for name in self.servers))
        return Scope(self.allow, self.deny, within=within)


def is_profile_name(text: str) -> bool:
    """Whether a text can be a profile's name: it stands in an address as it is."""
    return _NAME.match(text) is not None


def profile_named(profiles: Iterable[ServedProfile], name: str) -> ServedProfile:
    """Return the profile of a name.

    Raises:
        ConfigError: There is none.
    """
    known = {profile.name: profile for profile in profiles}
    if name not in known:
        raise ConfigError(f"there is no profile {name!r}", hint=_known(name, known))
    return known[name]


def read_profiles(
    block: Place,
    settings: Place | None,
    environ: Mapping[str, str],
    sources: Collection[str],
    **overrides: Any,
) -> tuple[ServedProfile, ...]:
    """Return the profiles of a block `profiles`.

    Args:
        block: The block: by name, a block of keys.
        settings: The file's own block `tools: tool_search:`, if it has one.
        environ: The environment.
        sources: The names of all servers, modules and APIs, those that are left out, too.
        overrides: Settings that win over the file's and the environment's.

    Raises:
        ConfigError: A name or a key cannot be used, or a server is not there.
    """
    if not block.is_mapping:
        raise ConfigError(
            f"`profiles` is no mapping{block.where}",
            hint="name one as `profiles: {NAME: {servers: [...]}}`",
        )
    found: list[ServedProfile] = []
    for name, place in block.pairs("`profiles`").items():
        if not is_profile_name(name):
            raise ConfigError(
                f"`profiles` has the name {name!r}{place.where}",
                hint="write up to 64 letters, digits, `-` and `_`: it is the end of an address",
            )
        values = _values(place, f"profiles.{name}.")
        for server in values.get("servers") or ():
            if server not in sources:
                raise ConfigError(
                    f"`profiles.{name}.servers` names {server!r}, which is not there{place.where}",
                    hint=suggestion(server, list(sources), what="servers"),
                )
        own = _block_of(place, f"profiles.{name}.")
        folding = settings_in(settings, environ, within=own, **overrides)
        folding = with_words_beside(folding, place.path)
        found.append(ServedProfile(name, **values, settings=folding))
    return tuple(found)


def check_limits(serve: ServeSettings, profiles: Sequence[ServedProfile]) -> None:
    """Refuse a token or a grant that is limited to a profile which is not there.

    Raises:
        ConfigError: One is.
    """
    known = [profile.name for profile in profiles]
    grants = () if serve.oauth is None else serve.oauth.grants
    limited: list[tuple[str, Token | Grant]] = [
        *((f"the token `{token.name}`", token) for token in serve.tokens),
        *((f"the grant `{grant.name}`", grant) for grant in grants),
    ]
    for whose, each in limited:
        for name in each.profiles or ():
            if name not in known:
                raise ConfigError(
                    f"{whose} is limited to the profile {name!r}, which is not there",
                    hint=_known(name, known),
                )


def _known(name: str, known: Collection[str]) -> str:
    if not known:
        return "write it under `profiles:` in the configuration"
    return suggestion(name, list(known), what="profiles")


def _values(place: Place, prefix: str) -> dict[str, Any]:
    known = declared(ServedProfile)
    values: dict[str, Any] = {}
    for key, inner in place.pairs(f"`{prefix.removesuffix('.')}`").items():
        if key == _TOOLS:
            continue
        if key not in known:
            hint = suggestion(key, [*known, _TOOLS])
            raise ConfigError(f"unknown key `{prefix}{key}`{inner.where}", hint=hint)
        given = Given(inner.value, inner.where)
        values[known[key].name] = checked(ServedProfile, key, given, prefix)
    return values


def _block_of(place: Place, prefix: str) -> Place | None:
    """Return a profile's own block `tools: tool_search:`, if it has one."""
    tools = place.pairs(f"`{prefix.removesuffix('.')}`").get(_TOOLS)
    if tools is None:
        return None
    block = settings_block(place.path, Top({_TOOLS: tools}, is_own=True))
    for key, inner in block.pairs("`tool_search`").items() if block and block.is_mapping else ():
        if key in NOT_THEIRS:
            raise ConfigError(
                f"`{prefix}tools.tool_search.{key}` cannot be a profile's{inner.where}: "
                f"{NOT_THEIRS[key]}",
                hint=f"write `{key}` under `tools: tool_search:` at the top of the file",
            )
    return block
