"""What the claims of an access token are worth: a principal, and never more than its grants.

Several grants add up: what any of them allows, less what any of them denies, and read-only
where any of them says so. A grant that another one holds whole adds nothing and is passed
over, so that a reader who is also a writer may write.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from toolfold._json_values import Json, is_array, is_mapping
from toolfold.config.oauth_settings import Grant, OAuthSettings
from toolfold.scope import Scope
from toolfold.serve.oauth.bearer_tokens import BadTokenError
from toolfold.serve.principals import Principal
from toolfold.store.store import DEFAULT_TENANT

__all__ = ["PREFIX", "NoGrantError", "NoGrantHereError", "granted"]

PREFIX = "oauth:"
"""What the name of everybody begins with whom the issuer knows; no token of ours is named so."""

_NAME = re.compile(r"[\x20-\x7e]{1,255}\Z")
_IN_ONE_TEXT = ("scope", "scp")


class NoGrantError(Exception):
    """A token is good, and has no grant."""


class NoGrantHereError(NoGrantError):
    """A token is good, and all its grants are for other profiles."""


def granted(
    claims: Mapping[str, Json],
    settings: OAuthSettings,
    profile: str = "",
    *,
    read_only: bool = False,
    rate_limit: int = 0,
) -> Principal:
    """Return who has a token, and what exists for them.

    Args:
        claims: What the token says; it was checked.
        settings: What that is worth.
        profile: The profile that they ask under: grants for others count for nothing.
        read_only: Whether nobody may change anything.
        rate_limit: Requests a minute.

    Raises:
        BadTokenError: It says not, or not plainly, who has it.
        NoGrantError: It has none of the grants, and there is none for everybody.
        NoGrantHereError: It has some, and none of them is for this profile.
    """
    name = PREFIX + _plain(claims.get("sub"), "sub")
    tenant = DEFAULT_TENANT
    if settings.tenant and (given := _value(claims, settings.tenant)) is not None:
        tenant = _plain(given, "tenant")
    held = {value for claim in settings.claims for value in _values(claims, claim)}
    grants = [grant for grant in settings.grants if grant.name in held]
    if not grants:
        grants = [grant for grant in settings.grants if grant.name == settings.default]
    if not grants:
        raise NoGrantError
    grants = [each for each in grants if each.profiles is None or profile in each.profiles]
    if not grants:
        raise NoGrantHereError
    is_limited = any(grant.profiles is not None for grant in grants)
    grants = [each for i, each in enumerate(grants) if not _is_held(each, i, grants)]
    is_reader = any(grant.read_only for grant in grants)
    scope = Scope(
        tuple(dict.fromkeys(pattern for grant in grants for pattern in grant.allow)),
        tuple(dict.fromkeys(pattern for grant in grants for pattern in grant.deny)),
    )
    return Principal(
        name,
        scope,
        read_only=is_reader or read_only,
        rate_limit=rate_limit,
        watches=scope.holds_everything and not is_reader and not is_limited,
        tenant=tenant,
    )


def _is_held(grant: Grant, number: int, grants: list[Grant]) -> bool:
    """Whether another grant has all that one has; of two that are alike, the later one."""
    return any(
        _holds(other, grant) and (i < number or not _holds(grant, other))
        for i, other in enumerate(grants)
        if i != number
    )


def _holds(other: Grant, grant: Grant) -> bool:
    return (
        ("*" in other.allow or set(grant.allow) <= set(other.allow))
        and set(other.deny) <= set(grant.deny)
        and (grant.read_only or not other.read_only)
    )


def _plain(value: Json, claim: str) -> str:
    """Return a name that stands in logs and the audit as it is, so that no two are alike."""
    if isinstance(value, str) and _NAME.match(value):
        return value
    raise BadTokenError(f"the token's `{claim}` is not taken")


def _values(claims: Mapping[str, Json], claim: str) -> Iterator[str]:
    """Yield the names that a claim holds: a list of them, or one text."""
    found = _value(claims, claim)
    if isinstance(found, str):
        yield from found.split(" ") if claim in _IN_ONE_TEXT else (found,)
    elif is_array(found):
        yield from (each for each in found if isinstance(each, str))


def _value(claims: Mapping[str, Json], claim: str) -> Json:
    """Return a claim's value; that of `a.b` is also what `a` holds under `b`."""
    if claim in claims:
        return claims[claim]
    outer, dot, inner = claim.partition(".")
    found = claims.get(outer) if dot else None
    return _value(found, inner) if is_mapping(found) else None
