"""How a server's requests are signed: by a person in the browser, or by a machine's own client.

The protocol's library does the flows. Added here: the scopes that the configuration names are
those that are asked for, a client of one's own speaks to the one authorization server that it
is of, whatever the server leads to, and what comes of a refusal is said in one short clause.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Literal

from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.auth.utils import issuers_match

from toolfold._bounds import one_line
from toolfold._json_values import parse
from toolfold.invisible import shown
from toolfold.sources.mcp.lifecycle import SignInError
from toolfold.tool import is_object

if TYPE_CHECKING:
    import httpx2
    from mcp.client.auth import TokenStorage
    from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

    from toolfold.sources.mcp.server import Server

__all__ = ["BrowserClient", "MachineClient"]

_SAID_AT_MOST = 200
_LOOKED_AT = 16_384

_HINTS = {
    "invalid_client": "check `oauth.client_id`, its secret and `oauth.client_auth`",
    "unauthorized_client": "allow the client the grant `{grant}` there",
    "unsupported_grant_type": "allow the client the grant `{grant}` there",
    "invalid_scope": "check `oauth.scopes`",
    "invalid_target": "allow the client the resource there",
}


class _Bound(OAuthClientProvider):
    """Asks for the scopes that were named, at the issuer that was named."""

    _server: Server

    def _keep_to(self, server: Server) -> None:
        self._server = server
        if server.oauth_issuer:
            # Where the server names no authorization server, this one is asked.
            self.context.auth_server_url = server.oauth_issuer

    def _select_authorization_server(self, advertised: list[str]) -> str:
        issuer = self._server.oauth_issuer
        if not issuer:
            return super()._select_authorization_server(advertised)
        found = next((each for each in advertised if issuers_match(each, issuer)), None)
        if found is None:
            names = one_line(shown(", ".join(advertised), _SAID_AT_MOST), _SAID_AT_MOST)
            raise SignInError(
                f"wants us to sign in at {names}, and `oauth.issuer` is {issuer}: "
                "change that if you trust it"
            )
        return found

    async def _perform_authorization(self) -> httpx2.Request:
        self._check_issuer()
        if self._server.oauth_scopes:
            self.context.client_metadata.scope = " ".join(self._server.oauth_scopes)
        return await super()._perform_authorization()

    async def _refresh_token(self) -> httpx2.Request:
        self._check_issuer()
        return await super()._refresh_token()

    def _check_issuer(self) -> None:
        """Send a secret nowhere but to endpoints that the issuer's own metadata name."""
        issuer, metadata = self._server.oauth_issuer, self.context.oauth_metadata
        if issuer and (metadata is None or not issuers_match(str(metadata.issuer), issuer)):
            self.context.clear_tokens()
            raise SignInError(
                f"cannot be signed in to: {issuer} has no metadata of an authorization server "
                "(check `oauth.issuer`)"
            )

    async def _handle_token_response(self, response: httpx2.Response) -> None:
        if response.status_code in (200, 201):
            await super()._handle_token_response(response)
            return
        raise SignInError(_refusal(response.status_code, await response.aread(), self._server))


class BrowserClient(_Bound):
    """Sends a person to the browser, with a proof that the code is ours (PKCE).

    Args:
        server: The server.
        metadata: How we present ourselves.
        storage: Keeps the tokens.
        redirect: Sends the person to the browser.
        callback: Waits for the browser to come back.
    """

    def __init__(
        self,
        server: Server,
        metadata: OAuthClientMetadata,
        storage: TokenStorage,
        redirect: Callable[[str], Awaitable[None]],
        callback: Callable[[], Awaitable[AuthorizationCodeResult]],
    ) -> None:
        super().__init__(server.url, metadata, storage, redirect, callback)
        self._keep_to(server)


class MachineClient(_Bound, ClientCredentialsOAuthProvider):
    """Signs in by itself, with the client's own id and secret.

    Args:
        server: The server; its entry names the client and its issuer.
        storage: Keeps the tokens.
        method: How the secret is sent.
    """

    def __init__(
        self,
        server: Server,
        storage: TokenStorage,
        method: Literal["client_secret_basic", "client_secret_post"],
    ) -> None:
        ClientCredentialsOAuthProvider.__init__(
            self,
            server.url,
            storage,
            server.oauth_client_id,
            server.oauth_client_secret,
            method,
            " ".join(server.oauth_scopes) or None,
            server.oauth_issuer,
        )
        self._keep_to(server)


def _refusal(status: int, body: bytes, server: Server) -> str:
    """Return what an authorization server says no with, as a clause that says what to do."""
    try:
        told = parse(body[:_LOOKED_AT])
    except (ValueError, RecursionError):
        told = None
    error = told.get("error") if is_object(told) else None
    if not isinstance(error, str):
        return f"did not let us sign in: the authorization server answered with HTTP {status}"
    more = told.get("error_description") if is_object(told) else None
    said = f"{error}: {more}" if isinstance(more, str) and more else error
    hint = _HINTS.get(error, "").format(grant=server.oauth_grant)
    said = one_line(shown(said, _SAID_AT_MOST), _SAID_AT_MOST)
    return f"did not let us sign in: {said}{f' ({hint})' if hint else ''}"
