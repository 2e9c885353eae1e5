"""What is different between two configurations, and what of it a running gateway takes up.

Pure: two configurations in, one answer out. What widens, such as a new server, a token or a
pattern that lets more in, is said by name: whoever reads the log sees what a file now permits.
What cannot be changed while running stays as it was, and is named.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from toolfold.serve.token_store import NOBODYS
from toolfold.settings import Settings

if TYPE_CHECKING:
    from toolfold.config.gateway_config import GatewayConfig
    from toolfold.config.serve_settings import ServeSettings, Token
    from toolfold.config.served_profiles import ServedProfile
    from toolfold.sources.mcp.server import Server
    from toolfold.sources.openapi.http_api import HttpApi

__all__ = ["Differences", "difference", "taken_up"]

LIVE = frozenset({
    "mode", "tokens", "read_only", "rate_limit", "context_length", "destructive", "drain", "wait",
    "body_limit", "request_timeout", "allowed_hosts", "allowed_origins", "admin", "result_limit",
})  # fmt: skip
"""The keys under `serve` that a running gateway takes up."""

FIXED_SETTINGS = frozenset({"bridge_prefix", "cache_dir", "memory"})
"""The keys under `tools: tool_search:` that it does not."""

_Named: TypeAlias = "Token | ServedProfile"
_Scoped: TypeAlias = "Server | HttpApi | Token | ServedProfile"
_STRICTNESS = ("refuse", "ask", "allow")


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
        tokens=_changed(_tokens(old), _tokens(new)),
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
        ),
        widened=tuple(_widened(old, new)),
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


def _tokens(config: GatewayConfig) -> list[Token]:
    """Return the tokens that let somebody in."""
    return [token for token in config.serve.tokens if token != NOBODYS]


def _profiles(config: GatewayConfig, moved: Sequence[str]) -> list[ServedProfile]:
    """Return the profiles without what is told of already, as settings of all."""
    plain = {key: getattr(Settings(), key) for key in moved}
    return [
        replace(profile, settings=replace(profile.settings, **plain)) for profile in config.profiles
    ]


def _is_same(one: Server | HttpApi, other: Server | HttpApi) -> bool:
    return one == other and str(one.problem) == str(other.problem)


# ---- what permits more than before


def _widened(old: GatewayConfig, new: GatewayConfig) -> Iterator[str]:
    yield from _wider_sources(old, new)
    yield from _wider_serve(old.serve, new.serve)
    tokens = {token.name: token for token in _tokens(old)}
    for token in _tokens(new):
        if token.name not in tokens:
            yield f"token {token.name!r} is new"
        else:
            yield from _wider_token(tokens[token.name], token)
    profiles = {profile.name: profile for profile in old.profiles}
    for profile in new.profiles:
        if profile.name not in profiles:
            yield f"profile {profile.name!r} is new"
        else:
            yield from _wider_profile(profiles[profile.name], profile)


def _wider_sources(old: GatewayConfig, new: GatewayConfig) -> Iterator[str]:
    before = _by_name(old.servers)
    for server in new.servers:
        known = before.get(server.name)
        if known is None:
            yield f"server {server.name!r} is new"
        elif server.problem is None and not _is_same(known, server):
            yield from _wider_server(known, server)
    apis = {api.name: api for api in old.apis}
    for api in new.apis:
        if api.name not in apis:
            yield f"API {api.name!r} is new"
        elif not _is_same(apis[api.name], api):
            yield from _wider_api(apis[api.name], api)


def _wider_server(old: Server, new: Server) -> Iterator[str]:
    how = ("transport", "command", "args", "env", "cwd", "url", "headers")
    other = [key for key in how if getattr(old, key) != getattr(new, key)]
    if other or old.problem is not None:
        yield f"server {new.name!r} is reached otherwise ({', '.join(other) or 'it was broken'})"
    yield from _wider_patterns(f"server {new.name!r}", old, new)


def _wider_api(old: HttpApi, new: HttpApi) -> Iterator[str]:
    how = ("file", "url", "base_url", "auth", "headers", "variables")
    other = [key for key in how if getattr(old, key) != getattr(new, key)]
    if other or old.problem is not None:
        yield f"API {new.name!r} is reached otherwise ({', '.join(other) or 'it was broken'})"
    if new.deprecated and not old.deprecated:
        yield f"API {new.name!r} has its deprecated operations"
    yield from _wider_patterns(f"API {new.name!r}", old, new)


def _wider_token(old: Token, new: Token) -> Iterator[str]:
    whose = f"token {new.name!r}"
    if (old.env, old.sha256) != (new.env, new.sha256):
        yield f"{whose} is another one"
    if old.read_only and not new.read_only:
        yield f"{whose} is no longer read-only"
    if old.profiles is not None and not set(new.profiles or ()) <= set(old.profiles):
        more = [name for name in new.profiles or () if name not in old.profiles]
        yield f"{whose} may ask under {', '.join(map(repr, more))}"
    elif old.profiles is not None and new.profiles is None:
        yield f"{whose} is limited to no profiles any more"
    yield from _wider_patterns(whose, old, new)


def _wider_profile(old: ServedProfile, new: ServedProfile) -> Iterator[str]:
    whose = f"profile {new.name!r}"
    if old.servers is not None:
        more = None if new.servers is None else [s for s in new.servers if s not in old.servers]
        if more is None or more:
            said = "all servers" if more is None else ", ".join(map(repr, more))
            yield f"{whose} has {said}"
    if old.read_only and not new.read_only:
        yield f"{whose} is no longer read-only"
    yield from _wider_patterns(whose, old, new)


def _wider_patterns(whose: str, old: _Scoped, new: _Scoped) -> Iterator[str]:
    more = [pattern for pattern in new.allow if pattern not in old.allow]
    if more and "*" not in old.allow:
        yield f"{whose} is allowed {', '.join(map(repr, more))}"
    less = [pattern for pattern in old.deny if pattern not in new.deny]
    if less:
        yield f"{whose} is no longer denied {', '.join(map(repr, less))}"


def _wider_serve(old: ServeSettings, new: ServeSettings) -> Iterator[str]:
    if old.read_only and not new.read_only:
        yield "`serve.read_only` is off"
    if _STRICTNESS.index(new.destructive) > _STRICTNESS.index(old.destructive):
        yield f"`serve.destructive` is {new.destructive!r}"
    if old.tokens and not new.tokens:
        yield "there are no tokens any more: whoever reaches the address is let in"
    for key in ("allowed_hosts", "allowed_origins"):
        more = [name for name in getattr(new, key) if name not in getattr(old, key)]
        if more:
            yield f"`serve.{key}` has {', '.join(map(repr, more))}"
    if new.admin not in ("off", old.admin):
        yield "`serve.admin` is on, or another token"
