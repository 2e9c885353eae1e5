"""What signs the requests to an API: the configuration's credentials, at the document's places.

An operation gets what it asks for and nothing else: the first of its alternatives for which
there are credentials. A document that asks for nothing anywhere says nothing about it, so
there all credentials are sent that were given. A credential is a text that stays, or an access
token that is fetched when it is needed.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias
from urllib.parse import urljoin

from toolfold._bounds import one_line
from toolfold._json_values import Json, is_mapping
from toolfold.errors import ConfigError
from toolfold.sources.openapi._servers import check_address, is_public, origin_of
from toolfold.sources.openapi.api_document import ApiDocument, DocumentFault
from toolfold.sources.openapi.client_credentials import DOCUMENTS_OWN, ClientCredentials
from toolfold.sources.openapi.operation import Operation

if TYPE_CHECKING:
    from httpx2 import AsyncBaseTransport

    from toolfold.sources.openapi._access_tokens import AccessTokens

__all__ = ["Credential", "Credentials", "Signer"]

_GENERAL = ("bearer", "basic", "oauth2")
_TOKEN_KINDS = ("oauth2", "openIdConnect")


class Credential(NamedTuple):
    """What is added to a request."""

    location: Literal["header", "query", "cookie"]
    name: str
    value: str

    def __repr__(self) -> str:
        return f"Credential({self.location!r}, {self.name!r})"


Signer: TypeAlias = "Credential | AccessTokens"
"""A credential, or what fetches one."""


class Credentials:
    """The credentials for one document.

    Args:
        source: The source's name, for errors.
        document: The document.
        given: What the configuration gives, by the scheme's name, or as `bearer`, `basic` or
            `oauth2`.
        home: The API's own address, or its document's, where a person named one.
        tokens: What fetched access tokens for an earlier document of the API, by the key that
            it stands under. One that would now be fetched elsewhere is refused.
        transport: What carries requests for tokens, in place of the network.

    Raises:
        ConfigError: One is for no scheme of the document, or cannot be sent.
    """

    def __init__(
        self,
        source: str,
        document: ApiDocument,
        given: Mapping[str, str | ClientCredentials],
        *,
        home: str = "",
        tokens: Mapping[str, AccessTokens] | None = None,
        transport: AsyncBaseTransport | None = None,
    ) -> None:
        schemes = _schemes(document)
        self._known = frozenset(schemes)
        self._by_scheme: dict[str, Signer] = {}
        self._always: list[Signer] = []
        self._home = home
        self._before = tokens or {}
        self._transport = transport
        self.tokens: dict[str, AccessTokens] = {}
        """What fetches access tokens, by the key that it stands under."""
        for name, value in given.items():
            key = f"`openapi.{source}.auth.{name}`"
            if name not in schemes and name not in _GENERAL:
                known = ", ".join(f"`{one_line(each, 60)}`" for each in [*schemes, *_GENERAL][:12])
                raise ConfigError(f"{key} is no security scheme", hint=f"use one of {known}")
            if isinstance(value, ClientCredentials):
                self._add_client(name, value, schemes, key)
                continue
            if not value.isprintable() or not value.strip():
                raise ConfigError(f"{key} cannot be sent", hint="leave control characters out")
            if name in schemes:
                self._by_scheme[name] = _credential(schemes[name], value, key)
            elif name == "oauth2":
                raise ConfigError(
                    f"{key} is a text",
                    hint="write a block with `token_url`, `client_id` and `client_secret`, or an "
                    "access token under `bearer`",
                )
            else:
                self._always.append(_credential({"type": "http", "scheme": name}, value, key))

    def _add_client(
        self,
        name: str,
        client: ClientCredentials,
        schemes: Mapping[str, Mapping[str, Json]],
        key: str,
    ) -> None:
        """Take client credentials for the scheme of that name, or for all that want a token."""
        meant = [name]
        if name not in schemes:
            meant = [n for n, scheme in schemes.items() if scheme.get("type") in _TOKEN_KINDS]
        for each in meant:
            kind = schemes[each].get("type")
            if kind not in _TOKEN_KINDS and str(schemes[each].get("scheme")).lower() != "bearer":
                raise ConfigError(
                    f"{key} is for a scheme that takes no access token",
                    hint="give what it takes, as a text",
                )
            self._by_scheme[each] = self._fetcher(name, client, schemes[each], key)
        if not meant:
            self._always.append(self._fetcher(name, client, {}, key))

    def _fetcher(
        self, name: str, client: ClientCredentials, scheme: Mapping[str, Json], key: str
    ) -> AccessTokens:
        from toolfold.sources.openapi._access_tokens import AccessTokens

        url = client.token_url
        is_own = url != DOCUMENTS_OWN
        if not is_own:
            url = _token_address(scheme, self._home, key)
        # Its host alone tells nothing of a private network: the name is looked up where it counts.
        is_home = bool(self._home) and origin_of(url) == origin_of(self._home)
        known = self.tokens.get(name) or self._before.get(name)
        if known is None:
            known = AccessTokens(
                client, url, public_only=not is_own and not is_home, transport=self._transport
            )
        elif known.url != url:
            raise ConfigError(
                f"{key} would ask for tokens at another address of the document's",
                hint="write the right one as `token_url`, or start again",
            )
        self.tokens[name] = known
        return known

    @property
    def hidden(self) -> frozenset[tuple[str, str]]:
        """ParameterLocation and name of what they fill in, which no model has to."""
        return frozenset(map(_place, (*self._by_scheme.values(), *self._always)))

    def of(self, operation: Operation) -> list[Signer]:
        """Return what is added to the requests of an operation."""
        wanted = operation.security
        if wanted is None:
            return [*self._always, *self._by_scheme.values()]
        for requirement in wanted:
            if requirement and all(name in self._by_scheme for name in requirement):
                return [*self._always, *(self._by_scheme[name] for name in requirement)]
        return self._always

    def missing(self, operation: Operation) -> tuple[str, ...]:
        """Return the schemes of which an operation asks for one, and for none is there any."""
        if self.of(operation) or not operation.security:
            return ()
        names = (n for requirement in operation.security for n in requirement if n in self._known)
        return tuple(dict.fromkeys(names))


def _schemes(document: ApiDocument) -> dict[str, Mapping[str, Json]]:
    node = document.node("components", "securitySchemes")
    found: dict[str, Mapping[str, Json]] = {}
    for name in node.value if is_mapping(node.value) else ():
        try:
            scheme = document.resolved(node.at(name)).value
        except DocumentFault:
            continue
        if is_mapping(scheme):
            found[name] = scheme
    return found


def _place(signer: Signer) -> tuple[str, str]:
    if not isinstance(signer, Credential):
        return "header", "authorization"
    is_header = signer.location == "header"
    return signer.location, signer.name.lower() if is_header else signer.name


def _token_address(scheme: Mapping[str, Json], home: str, key: str) -> str:
    """Return where a document says that tokens are had, if a secret may go there."""
    flows = scheme.get("flows")
    flow = flows.get("clientCredentials") if is_mapping(flows) else None
    written = flow.get("tokenUrl") if is_mapping(flow) else None
    hint = "write the token server's address as `token_url`"
    if not isinstance(written, str):
        raise ConfigError(f"{key}: the document names no address for it", hint=hint)
    url = urljoin(home, written)
    try:
        check_address("tokenUrl", url)
    except ConfigError:
        raise ConfigError(f"{key}: what the document names is no address", hint=hint) from None
    is_home = bool(home) and origin_of(url) == origin_of(home)
    scheme_of, host, _ = origin_of(url)
    if not is_home and (scheme_of != "https" or not is_public(host)):
        raise ConfigError(
            f"{key}: the document names `{one_line(host, 100)}`, which is private or without TLS",
            hint=hint,
        )
    return url


def _credential(scheme: Mapping[str, Json], value: str, key: str) -> Credential:
    kind = scheme.get("type")
    if kind == "apiKey":
        location, name = scheme.get("in"), scheme.get("name")
        if (
            location not in ("header", "query", "cookie")
            or not isinstance(name, str)
            or not (name.isprintable() and name.isascii() and name)
        ):
            raise ConfigError(f"{key} is for a scheme that cannot be used", hint="use `headers`")
        if location == "header":
            return _in_header(name, value, key)
        return Credential(location, name, value)
    if kind == "http" and str(scheme.get("scheme")).lower() == "basic":
        if ":" not in value:
            raise ConfigError(f"{key} has no `:`", hint="write user:password")
        return Credential("header", "Authorization", f"Basic {b64encode(value.encode()).decode()}")
    if kind == "http" and str(scheme.get("scheme")).lower() != "bearer":
        raise ConfigError(
            f"{key} is for the scheme {one_line(str(scheme.get('scheme')), 40)!r}",
            hint="write the whole header under `headers`, as `Authorization`",
        )
    if kind == "mutualTLS":
        raise ConfigError(f"{key} is a certificate's", hint="only keys and tokens can be given")
    # OAuth 2 and OpenID Connect: an access token that was got elsewhere.
    return _in_header("Authorization", f"Bearer {value}", key)


def _in_header(name: str, value: str, key: str) -> Credential:
    if not value.isascii():
        raise ConfigError(f"{key} cannot be sent", hint="headers take plain ASCII")
    return Credential("header", name, value)
