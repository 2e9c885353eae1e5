"""What is different between two configurations, and what of it a running gateway takes up.

Pure: two configurations in, one answer out. What cannot be changed while running stays as it
was, and is named.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from toolfold.serve.reload.widening import widened
from toolfold.serve.token_store import admitting
from toolfold.settings import Settings

if TYPE_CHECKING:
    from toolfold.config.gateway_config import GatewayConfig
    from toolfold.config.serve_settings import Token
    from toolfold.config.served_profiles import ServedProfile
    from toolfold.sources.mcp.server import Server
    from toolfold.sources.openapi.http_api import HttpApi

__all__ = ["Differences", "difference", "taken_up"]

LIVE = frozenset({
    "mode", "tokens", "read_only", "rate_limit", "context_length", "destructive", "drain", "wait",
    "body_limit", "request_timeout", "allowed_hosts", "allowed_origins", "admin", "result_limit",
    "oauth",
})  # fmt: skip
"""The keys under `serve` that a running gateway takes up."""

FIXED_SETTINGS = frozenset({"bridge_prefix", "cache_dir", "memory"})
"""The keys under `tools: tool_search:` that it does not."""

_Named: TypeAlias = "Token | ServedProfile"


@dataclass(frozen=True, slots=True)
class Differences:
    """What is different in a new configuration."""

    added: tuple[str, ...] = ()
    """Servers that are new."""

    removed: tuple[str, ...] = ()
    """Servers that are there no more, or left out."""

    changed: tuple[str, ...] = ()
    """Servers that are reached, started or bounded otherwise."""

    tokens: tuple[str, ...] = ()
    """Tokens that are new, gone or changed."""

    apis: tuple[str, ...] = ()
    """HTTP APIs that are new, gone or changed."""

    profiles: tuple[str, ...] = ()
    """Profiles that are new, gone or changed."""

    settings: tuple[str, ...] = ()
    """Other keys that are taken up."""

    needs_restart: tuple[str, ...] = ()
    """Keys that are not: they count from the next start on."""

    widened: tuple[str, ...] = ()
    """What permits more than before, as clauses."""

    def __bool__(self) -> bool:
        return any(getattr(self, field.name) for field in fields(self))


def difference(old: GatewayConfig, new: GatewayConfig) -> Differences:
    """Return what is different in a new configuration."""
    before, after = _by_name(old.servers), _by_name(new.servers)
    kept = [name for name in after if name in before]
    serve = [key for key in _differing(old.serve, new.serve) if key != "tokens"]
    folding = list(_differing(old.settings, new.settings))
    return Differences(
        added=tuple(name for name in after if name not in before),
        removed=tuple(name for name in before if name not in after),
        changed=tuple(name for name in kept if not _is_same(before[name], after[name])),
        tokens=_changed(admitting(old), admitting(new)),
        apis=changed_apis(old.apis, new.apis),
        profiles=_changed(_profiles(old, folding), _profiles(new, folding)),
        settings=(
            *(f"serve.{key}" for key in serve if key in LIVE),
            *(f"tools.tool_search.{key}" for key in folding if key not in FIXED_SETTINGS),
        ),
        needs_restart=(
            *(f"serve.{key}" for key in serve if key not in LIVE),
            *(f"tools.tool_search.{key}" for key in folding if key in FIXED_SETTINGS),
            *(("functions",) if old.functions != new.functions else ()),
            *(("tools.tool_search.memory.share",) if _shares_otherwise(old, new) else ()),
        ),
        widened=tuple(widened(old, new)),
    )


def taken_up(old: GatewayConfig, new: GatewayConfig) -> GatewayConfig:
    """Return what a running gateway goes on with: the new, but for what cannot be changed."""
    serve = {key: getattr(old.serve, key) for key in _names(old.serve) if key not in LIVE}
    fixed = {key: getattr(old.settings, key) for key in FIXED_SETTINGS}
    return replace(
        new,
        serve=replace(new.serve, **serve),
        settings=replace(new.settings, **fixed),
        profiles=tuple(
            replace(profile, settings=replace(profile.settings, **fixed))
            for profile in new.profiles
        ),
        functions=old.functions,
    )


def changed_apis(old: Sequence[HttpApi], new: Sequence[HttpApi]) -> tuple[str, ...]:
    """Return the names of the APIs that are new, gone or changed."""
    before, after = {each.name: each for each in old}, {each.name: each for each in new}
    return tuple(
        name
        for name in {**before, **after}
        if name not in before or name not in after or not _is_same(before[name], after[name])
    )


def _shares_otherwise(old: GatewayConfig, new: GatewayConfig) -> bool:
    """Whether `auto` means another share of the memory, which is open already."""
    is_kept = old.settings.memory == new.settings.memory
    is_auto = new.settings.memory.share == "auto" and new.settings.memory.enabled != "off"
    return is_kept and is_auto and old.serve.knows_callers != new.serve.knows_callers


def _names(settings: Any) -> list[str]:
    return [field.name for field in fields(settings) if field.init]


def _differing(old: Any, new: Any) -> Iterator[str]:
    return (key for key in _names(old) if getattr(old, key) != getattr(new, key))


def _by_name(servers: Sequence[Server]) -> dict[str, Server]:
    return {server.name: server for server in servers}


def _changed(old: Sequence[_Named], new: Sequence[_Named]) -> tuple[str, ...]:
    """Return the names of what is new, gone or changed."""
    before, after = {each.name: each for each in old}, {each.name: each for each in new}
    return tuple(name for name in {**before, **after} if before.get(name) != after.get(name))


def _profiles(config: GatewayConfig, moved: Sequence[str]) -> list[ServedProfile]:
    """Return the profiles without what is told of already, as settings of all."""
    plain = {key: getattr(Settings(), key) for key in moved}
    return [
        replace(profile, settings=replace(profile.settings, **plain))
        for profile in config.all_profiles
    ]


def _is_same(one: Server | HttpApi, other: Server | HttpApi) -> bool:
    return one == other and str(one.problem) == str(other.problem)
