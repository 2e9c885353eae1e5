"""What a new configuration permits that the one before did not, as clauses for a person.

Pure, and rather too much than too little: whoever reads the log sees what a file now lets in,
whose it is and which bound is wider. What is only narrower is not told here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from toolfold.serve.token_store import admitting

if TYPE_CHECKING:
    from toolfold.config.gateway_config import GatewayConfig
    from toolfold.config.oauth_settings import Grant, OAuthSettings
    from toolfold.config.serve_settings import ServeSettings, Token
    from toolfold.config.served_profiles import ServedProfile
    from toolfold.settings import Settings
    from toolfold.sources.mcp.server import Server
    from toolfold.sources.openapi.http_api import HttpApi

__all__ = ["widened"]

_Scoped: TypeAlias = "Server | HttpApi | Token | Grant | ServedProfile"
_Serves: TypeAlias = "tuple[ServeSettings, ServeSettings]"
_STRICTNESS = ("refuse", "ask", "allow")
_REACH = (
    "transport", "command", "args", "env", "cwd", "url", "headers", "oauth", "oauth_client_id",
    "oauth_client_secret", "oauth_port", "oauth_scopes", "oauth_issuer", "oauth_grant",
    "oauth_client_auth",
)  # fmt: skip
_API_REACH = ("file", "url", "base_url", "auth", "headers", "variables")
_ISSUERS = ("issuer", "jwks_uri", "default", "tenant")


def widened(old: GatewayConfig, new: GatewayConfig) -> Iterator[str]:
    """Yield what permits more than before, each as a clause.

    Args:
        old: The configuration so far.
        new: The one that follows it.
    """
    yield from _sources(old, new)
    yield from _serve(old.serve, new.serve)
    tokens = {token.name: token for token in admitting(old)}
    for token in admitting(new):
        if token.name not in tokens:
            yield f"token {token.name!r} is new"
        else:
            yield from _token(tokens[token.name], token, (old.serve, new.serve))
    yield from _oauth(old.serve.oauth, new.serve.oauth)
    profiles = {profile.name: profile for profile in old.all_profiles}
    for profile in new.all_profiles:
        if profile.name not in profiles:
            yield f"profile {profile.name!r} is new"
        else:
            yield from _profile(profiles[profile.name], profile)
    yield from _settings(old.settings, new.settings)


# ---- where tools come from


def _sources(old: GatewayConfig, new: GatewayConfig) -> Iterator[str]:
    servers = {server.name: server for server in old.servers}
    for server in new.servers:
        if server.name not in servers:
            yield f"server {server.name!r} is new"
        elif server.problem is None:
            yield from _server(servers[server.name], server, (old.serve, new.serve))
    apis = {api.name: api for api in old.apis}
    for api in new.apis:
        if api.name not in apis:
            yield f"API {api.name!r} is new"
        else:
            yield from _api(apis[api.name], api)


def _server(old: Server, new: Server, serves: _Serves) -> Iterator[str]:
    whose = f"server {new.name!r}"
    yield from _reached(whose, _REACH, old, new)
    if old.per_session and not new.per_session:
        yield f"{whose} is one for all sessions"
    if old.prefix != new.prefix:
        yield f"{whose} has other names for its tools, which patterns in `deny` may have meant"
    yield from _own_limit(whose, "result_limit", old, new, serves)
    yield from _patterns(whose, old, new)


def _api(old: HttpApi, new: HttpApi) -> Iterator[str]:
    whose = f"API {new.name!r}"
    yield from _reached(whose, _API_REACH, old, new)
    if new.deprecated and not old.deprecated:
        yield f"{whose} has its deprecated operations"
    yield from _limit(f"`response_limit` of {whose}", old.response_limit, new.response_limit)
    yield from _patterns(whose, old, new)


def _reached(
    whose: str, keys: Sequence[str], old: Server | HttpApi, new: Server | HttpApi
) -> Iterator[str]:
    other = _differing(keys, old, new)
    mended = old.problem is not None and new.problem is None
    if other or mended:
        yield f"{whose} is reached otherwise ({', '.join(other) or 'it was broken'})"


# ---- who may ask


def _token(old: Token, new: Token, serves: _Serves) -> Iterator[str]:
    whose = f"token {new.name!r}"
    if (old.env, old.sha256) != (new.env, new.sha256):
        yield f"{whose} is another one"
    if old.tenant != new.tenant:
        yield f"{whose} is of the tenant {new.tenant!r}"
    yield from _own_limit(whose, "rate_limit", old, new, serves)
    yield from _limited(whose, old, new)


def _oauth(old: OAuthSettings | None, new: OAuthSettings | None) -> Iterator[str]:
    if new is None:
        return
    if old is None:
        yield f"access tokens of {new.issuer!r} are taken"
        return
    for key in _differing(_ISSUERS, old, new):
        if getattr(new, key) or key != "default":
            yield f"`serve.oauth.{key}` is {getattr(new, key)!r}"
    for key in ("audiences", "algorithms", "claims"):
        yield from _more(f"`serve.oauth.{key.replace('audiences', 'audience')}`", key, old, new)
    if new.leeway > old.leeway:
        yield f"`serve.oauth.leeway` is {new.leeway:g}"
    yield from _grants(old.grants, new.grants)


def _grants(old: Sequence[Grant], new: Sequence[Grant]) -> Iterator[str]:
    before, after = {each.name: each for each in old}, {each.name: each for each in new}
    for name, grant in after.items():
        if name not in before:
            yield f"grant {name!r} is new"
        else:
            yield from _limited(f"grant {name!r}", before[name], grant)
    for name, grant in before.items():
        # Grants add up, and what one of them takes away is taken from all that somebody has.
        if name not in after and (grant.read_only or grant.deny):
            yield f"grant {name!r} is gone, and what it took from other grants with it"


def _limited(whose: str, old: Token | Grant, new: Token | Grant) -> Iterator[str]:
    if old.read_only and not new.read_only:
        yield f"{whose} is no longer read-only"
    if old.profiles is not None:
        more = [name for name in new.profiles or () if name not in old.profiles]
        if new.profiles is None:
            yield f"{whose} is limited to no profiles any more"
        elif more:
            yield f"{whose} may ask under {_quoted(more)}"
    yield from _patterns(whose, old, new)


def _profile(old: ServedProfile, new: ServedProfile) -> Iterator[str]:
    whose = f"profile {new.name!r}"
    if old.servers is not None:
        more = [name for name in new.servers or () if name not in old.servers]
        if new.servers is None or more:
            yield f"{whose} has {'all servers' if new.servers is None else _quoted(more)}"
    if old.read_only and not new.read_only:
        yield f"{whose} is no longer read-only"
    yield from _patterns(whose, old, new)


def _patterns(whose: str, old: _Scoped, new: _Scoped) -> Iterator[str]:
    more = [pattern for pattern in new.allow if pattern not in old.allow]
    if more and "*" not in old.allow:
        yield f"{whose} is allowed {_quoted(more)}"
    less = [pattern for pattern in old.deny if pattern not in new.deny]
    if less:
        yield f"{whose} is no longer denied {_quoted(less)}"


# ---- what everybody may


def _serve(old: ServeSettings, new: ServeSettings) -> Iterator[str]:
    if old.read_only and not new.read_only:
        yield "`serve.read_only` is off"
    if _STRICTNESS.index(new.destructive) > _STRICTNESS.index(old.destructive):
        yield f"`serve.destructive` is {new.destructive!r}"
    if old.knows_callers and not new.knows_callers:
        yield "there are no tokens any more: whoever reaches the address is let in"
    for key in ("allowed_hosts", "allowed_origins"):
        yield from _more(f"`serve.{key}`", key, old, new)
    if new.admin not in ("off", old.admin):
        yield "`serve.admin` is on, or another token"
    for key in ("rate_limit", "result_limit", "body_limit", "request_timeout"):
        yield from _limit(f"`serve.{key}`", getattr(old, key), getattr(new, key))


def _settings(old: Settings, new: Settings) -> Iterator[str]:
    before, after = old.annotations, new.annotations
    safer = [
        pattern
        for pattern in dict.fromkeys((*before, *after))
        if _is_safer(before.get(pattern, {}), after.get(pattern, {}))
    ]
    if safer:
        yield f"`annotations` says of {_quoted(safer)} that less can go wrong"
    asked = new.reranker
    if asked.enabled and not (old.reranker.enabled and old.reranker.endpoint == asked.endpoint):
        yield f"what is searched for is sent to {asked.endpoint!r}"


def _is_safer(before: Mapping[str, bool], after: Mapping[str, bool]) -> bool:
    """Whether tools are said to be more harmless than before."""
    reads = _degree(after.get("readOnlyHint")) > _degree(before.get("readOnlyHint"))
    destroys = _degree(after.get("destructiveHint")) < _degree(before.get("destructiveHint"))
    return reads or destroys


def _degree(said: bool | None) -> int:
    return {True: 1, None: 0, False: -1}[said]


# ---- one key


def _differing(keys: Sequence[str], old: Any, new: Any) -> list[str]:
    return [key for key in keys if getattr(old, key) != getattr(new, key)]


def _more(what: str, key: str, old: Any, new: Any) -> Iterator[str]:
    more = [name for name in getattr(new, key) if name not in getattr(old, key)]
    if more:
        yield f"{what} has {_quoted(more)}"


def _limit(what: str, old: float, new: float) -> Iterator[str]:
    """Yield that a bound is wider; 0 is none at all."""
    if old and (not new or new > old):
        yield f"{what} is {new or 'no limit'}"


def _own_limit(what: str, key: str, old: Any, new: Any, serves: _Serves) -> Iterator[str]:
    """Yield that somebody's own bound is wider; without one, everybody's holds."""
    if getattr(old, key) != getattr(new, key):
        each = zip((old, new), serves, strict=True)
        before, after = (
            getattr(serve if getattr(own, key) is None else own, key) for own, serve in each
        )
        yield from _limit(f"`{key}` of {what}", before, after)


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))
