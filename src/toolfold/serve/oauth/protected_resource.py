"""The gateway as a protected resource: its metadata, whom it lets in, and what a refusal says.

RFC 9728: whoever is refused is told where the metadata are, and the metadata name the issuer
that gives tokens. Everybody may read them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from toolfold._json_values import compact
from toolfold.config.oauth_settings import Grant
from toolfold.config.served_profiles import is_profile_name
from toolfold.serve.http.refusal import RefusedError
from toolfold.serve.oauth.bearer_tokens import BadTokenError, BearerTokens
from toolfold.serve.oauth.grants import PREFIX, NoGrantError, NoGrantHereError, granted
from toolfold.serve.oauth.issuer_documents import IssuerAwayError, IssuerDocuments
from toolfold.serve.oauth.signing_keys import SigningKeys

if TYPE_CHECKING:
    from toolfold.config.oauth_settings import OAuthSettings
    from toolfold.config.serve_settings import ServeSettings
    from toolfold.serve.principals import Principal

__all__ = ["METADATA_PATH", "ProtectedResource"]

METADATA_PATH = "/.well-known/oauth-protected-resource"
"""Where the metadata are; and below it, under the resource's own path."""

NEVER = 2**53
"""A moment that does not come, in seconds since 1970: a token may name a later one."""

_ANY_GRANT = (Grant("any"),)
_HEADERS = (
    (b"content-type", b"application/json"),
    (b"cache-control", b"max-age=300"),
    (b"x-content-type-options", b"nosniff"),
)


class ProtectedResource:
    """Knows the bearers of an issuer's access tokens.

    Args:
        oauth: Whose tokens are taken.
        tokens: Checks them.
        read_only: Whether nobody may change anything.
        rate_limit: Requests a minute for each bearer.
    """

    prefix = PREFIX
    """What the names of those begin with whom it knows."""

    def __init__(
        self,
        oauth: OAuthSettings,
        tokens: BearerTokens,
        *,
        read_only: bool = False,
        rate_limit: int = 0,
    ) -> None:
        self._oauth = oauth
        self._tokens = tokens
        self._read_only = read_only
        self._rate_limit = rate_limit
        parts = urlsplit(oauth.resource)
        self._path = METADATA_PATH + parts.path.rstrip("/")
        self._address = f"{parts.scheme}://{parts.netloc}{self._path}"

    @classmethod
    def of(
        cls, settings: ServeSettings, before: ProtectedResource | None = None
    ) -> ProtectedResource | None:
        """Return what the settings describe; None where they name no issuer.

        Args:
            settings: The settings.
            before: What knew the bearers so far: the keys of the same issuer stay known.
        """
        oauth = settings.oauth
        if oauth is None:
            return None
        if before is not None and _publishes(before.settings) == _publishes(oauth):
            keys = before._tokens.keys
        else:
            documents = IssuerDocuments(oauth.issuer, oauth.jwks_uri)
            keys = SigningKeys(documents.keys, again=oauth.refetch)
        tokens = BearerTokens(oauth, keys)
        return cls(oauth, tokens, read_only=settings.read_only, rate_limit=settings.rate_limit)

    @property
    def settings(self) -> OAuthSettings:
        """Whose tokens are taken."""
        return self._oauth

    def page(
        self, scope: Mapping[str, Any]
    ) -> tuple[bytes, tuple[tuple[bytes, bytes], ...]] | None:
        """Return the metadata and their headers, where a request asks for them.

        Those of a profile are there for every name that one could have: nobody learns here
        which there are.
        """
        if scope["method"] != "GET":
            return None
        path: str = scope["path"]
        if path in (METADATA_PATH, self._path):
            return _metadata(self._oauth, ""), _HEADERS
        outer, _, name = path.rpartition("/")
        is_profiles = outer == self._path and is_profile_name(name)
        return (_metadata(self._oauth, name), _HEADERS) if is_profiles else None

    async def admit(self, tokens: Iterable[str], profile: str = "") -> Principal:
        """Return whose token a request carries.

        Args:
            tokens: What it carries where a token may be.
            profile: The profile that it is for.

        Raises:
            RefusedError: It carries none that is taken, or one without a grant.
        """
        token = next((each for each in tokens if each), None)
        if token is None:
            challenge = self._challenge(profile)
            raise RefusedError(401, "token", "a token is needed", (challenge,))
        try:
            return self._granted(await self._tokens.claims(token, profile), profile)
        except BadTokenError as error:
            challenge = self._challenge(profile, "invalid_token", str(error))
            raise RefusedError(401, "token", str(error), (challenge,)) from None
        except NoGrantHereError:
            raise RefusedError(404, "path", "not found") from None
        except NoGrantError:
            text = "the token has no scope and no group that is served here"
            challenge = self._challenge(profile, "insufficient_scope", text)
            raise RefusedError(403, "scope", text, (challenge,)) from None
        except IssuerAwayError:
            text = "the token cannot be checked: its issuer is away"
            wait = str(max(1, round(self._oauth.refetch))).encode()
            raise RefusedError(503, "issuer", text, ((b"retry-after", wait),)) from None

    def judged_anew(self, bearer: Principal, before: ProtectedResource) -> Principal | None:
        """Return what somebody is worth by now whom another let in by the same token.

        Args:
            bearer: Who they are.
            before: Who let them in.

        Returns:
            None where they have to show the token again, or have no grant any more.
        """
        if _checks(self._oauth) != _checks(before.settings):
            return None
        try:
            return replace(self._granted(bearer.claims, bearer.profile), profile=bearer.profile)
        except (BadTokenError, NoGrantError):
            return None

    def _granted(self, claims: Mapping[str, Any], profile: str) -> Principal:
        principal = granted(
            claims,
            self._oauth,
            profile,
            read_only=self._read_only,
            rate_limit=self._rate_limit,
        )
        until = min(int(claims["exp"]), NEVER) + self._oauth.leeway
        return replace(principal, until=until, claims=claims)

    def _challenge(self, profile: str, error: str = "", text: str = "") -> tuple[bytes, bytes]:
        """Return the header that tells a client how to come back."""
        scopes = " ".join(self._oauth.scopes)
        # A request without a token is told of no error: RFC 6750, section 3.1.
        parts = {
            "error": error,
            "error_description": text.replace("`", ""),
            "scope": scopes,
            "resource_metadata": (
                f"{self._address}/{profile}" if is_profile_name(profile) else self._address
            ),
        }
        said = ", ".join(f'{key}="{value}"' for key, value in parts.items() if value)
        return b"www-authenticate", f"Bearer {said}".encode("ascii")


def _publishes(oauth: OAuthSettings) -> tuple[str, str, float]:
    """Return all that the issuer's keys depend on."""
    return oauth.issuer, oauth.jwks_uri, oauth.refetch


def _checks(oauth: OAuthSettings) -> OAuthSettings:
    """Return all that decides whether a token is good, whatever it is worth."""
    return replace(
        oauth, grants=_ANY_GRANT, claims=(), default="", tenant="", scopes=(), refetch=0.0
    )


def _metadata(oauth: OAuthSettings, profile: str) -> bytes:
    scopes = {"scopes_supported": list(oauth.scopes)} if oauth.scopes else {}
    return compact(
        {
            "resource": oauth.resource_under(profile),
            "authorization_servers": [oauth.issuer],
            "bearer_methods_supported": ["header"],
            **scopes,
        }
    ).encode()
