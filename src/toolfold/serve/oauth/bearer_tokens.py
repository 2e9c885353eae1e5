"""An access token, checked: made by the issuer, for this gateway, and good at this moment.

What is checked stands in RFC 8725 and RFC 9068. Of the header only `alg`, `kid` and `typ` are
read, and they choose among what the configuration and the issuer say already: no key and no
address in a token (`jwk`, `jku`, `x5u`, `x5c`) is looked at. A token is never part of a text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from toolfold.config.oauth_settings import OAuthSettings
from toolfold.serve.oauth.signing_keys import SigningKeys

if TYPE_CHECKING:
    from jwt import PyJWK

__all__ = ["BadTokenError", "BearerTokens"]

LONGEST = 16 * 1024
"""How long a token may be, in characters: a longer one is not read at all."""

_KINDS = ("at+jwt", "application/at+jwt", "jwt", "application/jwt")
_SAID = {
    "ExpiredSignatureError": "the token has expired",
    "ImmatureSignatureError": "the token is not valid yet",
    "InvalidAudienceError": "the token is for another audience",
    "InvalidIssuerError": "the token is another issuer's",
    "MissingRequiredClaimError": "the token lacks one of `exp`, `iss`, `aud` and `sub`",
}


class BadTokenError(Exception):
    """A token is not taken; its text says why, in words of our own."""


class BearerTokens:
    """Checks access tokens.

    Args:
        settings: Whose tokens are taken.
        keys: The issuer's keys.
    """

    def __init__(self, settings: OAuthSettings, keys: SigningKeys) -> None:
        self._settings = settings
        self.keys = keys
        """The issuer's keys."""

    async def claims(self, token: str, profile: str = "") -> Mapping[str, Any]:
        """Return what a token says, when all that it must say holds.

        Args:
            token: The token.
            profile: The profile that it is used under.

        Raises:
            BadTokenError: It is not taken.
            IssuerAwayError: It names a key that is not known, and the issuer is away.
        """
        header = _header(token)
        algorithm, kid = header.get("alg"), header.get("kid")
        if not isinstance(algorithm, str) or algorithm not in self._settings.algorithms:
            raise BadTokenError("the token is signed in a way that is not taken")
        key = await self.keys.find(kid, algorithm)
        if key is None:
            raise BadTokenError("the token is signed with an unknown key")
        claims = self._verified(token, key, algorithm, profile)
        # Whoever binds a token to a key means that it is worth nothing without the key:
        # https://www.rfc-editor.org/rfc/rfc9449#section-7.2
        if "cnf" in claims:
            raise BadTokenError("the token is bound to a key, and came without its proof")
        return claims

    def _verified(self, token: str, key: PyJWK, algorithm: str, profile: str) -> Mapping[str, Any]:
        import jwt

        try:
            return jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                audience=self._settings.audiences_under(profile),
                issuer=self._settings.issuer,
                leeway=self._settings.leeway,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError) as error:
            # Never the library's own text: it may hold a part of the token.
            said = (text for name, text in _SAID.items() if isinstance(error, getattr(jwt, name)))
            raise BadTokenError(next(said, "the token's signature or form is wrong")) from None


def _header(token: str) -> Mapping[str, Any]:
    """Return the header of a token, when it is one of a token that may be looked at."""
    import jwt

    if len(token) > LONGEST:
        raise BadTokenError("the token is too long")
    if token.count(".") != 2 or not token.isascii():
        raise BadTokenError("the token is not known")
    try:
        header = jwt.get_unverified_header(token)
    except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
        raise BadTokenError("the token is no JWT") from None
    kind = header.get("typ")
    if kind is not None and (not isinstance(kind, str) or kind.lower() not in _KINDS):
        raise BadTokenError("the token is of another kind")
    if "crit" in header:
        raise BadTokenError("the token asks for what is not known here")
    return header
