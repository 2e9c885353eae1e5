"""Signing in at servers with OAuth: tokens kept on disk, the browser opened where needed.

The protocol's library does the flow: discovery, registration, the code with its proof, new
tokens for old ones. Here is what it leaves open: a file for each server that only its owner
may read, and a listener on this machine that the browser comes back to.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import socket
import time
import webbrowser
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar
from urllib.parse import parse_qs, urlsplit

from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from pydantic import AnyUrl, BaseModel, ValidationError

from toolfold._bounds import one_line
from toolfold._files import replace_file
from toolfold._json_values import compact_bytes, parse
from toolfold.invisible import shown
from toolfold.sources.mcp.lifecycle import SignInError
from toolfold.tool import Json, is_object

if TYPE_CHECKING:
    from toolfold.sources.mcp.server import Server

__all__ = ["SignIn", "Tokens", "signer"]

_Kept = TypeVar("_Kept", bound=BaseModel)
_log = logging.getLogger(__name__)
_CALLBACK = "/callback"
_PAGE = b"You are signed in. You can close this window."
_SAID_AT_MOST = 200
_METHODS: Mapping[str, Literal["client_secret_basic", "client_secret_post"]] = {
    "basic": "client_secret_basic",
    "post": "client_secret_post",
}
_LEFT_ALONE = 300.0
"""Seconds after a no during which the browser is not opened again."""


class Tokens:
    """What a server gave us, in a file that only its owner may read.

    Args:
        path: The file.
        own: A client of the person's own, which needs no registration.
    """

    def __init__(self, path: Path, own: OAuthClientInformationFull | None = None) -> None:
        self._path = path
        self._own = own

    def _load(self) -> dict[str, Json]:
        try:
            found = parse(self._path.read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        return found if is_object(found) else {}

    def _save(self, key: str, value: Json) -> None:
        # Durable: a server that hands out a new token for each use takes the old one no more.
        replace_file(self._path, compact_bytes({**self._load(), key: value}), durable=True)

    def _kept(self, key: str, kind: type[_Kept]) -> _Kept | None:
        try:
            return kind.model_validate(self._load()[key])
        except (KeyError, ValidationError):
            return None

    def port(self) -> int:
        """Return the port that the browser comes back to: the same one each time."""
        port = self._load().get("port")
        if not isinstance(port, int):
            with socket.socket() as found:
                found.bind(("127.0.0.1", 0))
                port = found.getsockname()[1]
            self._save("port", port)
        return port

    async def get_tokens(self) -> OAuthToken | None:
        """Return the tokens, where there are any."""
        return self._kept("tokens", OAuthToken)

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep the tokens."""
        self._save("tokens", tokens.model_dump(mode="json", exclude_none=True))

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return how the server knows us, where it does."""
        return self._own or self._kept("client", OAuthClientInformationFull)

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keep how the server knows us."""
        if self._own is not None:
            return
        self._save("client", client_info.model_dump(mode="json", exclude_none=True))


class SignIn:
    """Sends a person to the browser, and waits for the browser to come back.

    Where it came back with a no, the browser is left alone for a while: the next tries,
    which follow by themselves, fail with the same words.

    Args:
        server: The server's name.
        port: Where the browser comes back to.
        show: Opens an address in the browser.
    """

    def __init__(
        self, server: str, port: int, show: Callable[[str], object] = webbrowser.open
    ) -> None:
        self._server = server
        self._port = port
        self._show = show
        self._arrived: asyncio.Future[AuthorizationCodeResult] | None = None
        self._listener: asyncio.Server | None = None
        self._state: str | None = None
        self._refused: tuple[float, str] | None = None

    async def redirect(self, url: str) -> None:
        """Send the person to the browser; it may be back before this returns.

        Raises:
            SignInError: The last try was turned down a moment ago.
        """
        if self._refused is not None and time.monotonic() < self._refused[0]:
            raise SignInError(self._refused[1])
        self._state = _first(parse_qs(urlsplit(url).query), "state")
        await self._listen()
        _log.warning("server %s wants you to sign in; open %s", self._server, url)
        await asyncio.to_thread(self._show, url)

    async def callback(self) -> AuthorizationCodeResult:
        """Wait for the browser to come back with the code.

        Raises:
            SignInError: It came back without one, or from another try.
        """
        assert self._arrived is not None
        try:
            return await self._arrived
        except SignInError as error:
            self._refused = (time.monotonic() + _LEFT_ALONE, str(error))
            raise
        finally:
            self._close()

    async def _listen(self) -> None:
        self._close()
        self._arrived = asyncio.get_running_loop().create_future()
        self._listener = await asyncio.start_server(
            self._take, "127.0.0.1", self._port, limit=16_384
        )

    def _close(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = (await reader.readline()).decode("latin-1").split(" ")
        result = self._result(line[1]) if len(line) > 1 and line[0] == "GET" else None
        if result is None:
            status, body = b"404 Not Found", b"Not found."
        elif isinstance(result, SignInError):
            status, body = b"400 Bad Request", f"You are not signed in: it {result}.".encode()
        else:
            status, body = b"200 OK", _PAGE
        head = b"HTTP/1.1 %s\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: %d\r\n"
        writer.write(head % (status, len(body)) + b"connection: close\r\n\r\n" + body)
        await writer.drain()
        writer.close()
        if result is None or self._arrived is None or self._arrived.done():
            return
        if isinstance(result, SignInError):
            self._arrived.set_exception(result)
        else:
            self._arrived.set_result(result)

    def _result(self, target: str) -> AuthorizationCodeResult | SignInError | None:
        """Return what the browser came back with; None where it asks for something else."""
        parts = urlsplit(target)
        values = parse_qs(parts.query)
        code, error = _first(values, "code"), _first(values, "error")
        if parts.path != _CALLBACK or (code is None and error is None):
            return None
        state = _first(values, "state")
        # A no may come without a state; a code may not.
        if state != self._state and (code is not None or state is not None):
            return SignInError("was answered from another try to sign in: close old windows")
        if code is None:
            details = _first(values, "error_description") or ""
            said = shown(f"{error}: {details}" if details else f"{error}", _SAID_AT_MOST)
            return SignInError(f"did not let us sign in: {one_line(said, _SAID_AT_MOST)}")
        return AuthorizationCodeResult(code=code, state=state, iss=_first(values, "iss"))


def _first(values: Mapping[str, list[str]], key: str) -> str | None:
    return values[key][0] if key in values else None


def _own_client(server: Server) -> OAuthClientInformationFull | None:
    """Return the client that a server's entry names, if it does."""
    if not server.oauth_client_id:
        return None
    secret = server.oauth_client_secret or None
    return OAuthClientInformationFull(
        client_id=server.oauth_client_id,
        client_secret=secret,
        token_endpoint_auth_method=_METHODS[server.oauth_client_auth] if secret else "none",
    )


def signer(folder: Path) -> Callable[[Server], OAuthClientProvider]:
    """Return what makes the signer of a server's requests, with its tokens in a folder."""

    def made(server: Server) -> OAuthClientProvider:
        from toolfold.sources.mcp._oauth_clients import BrowserClient, MachineClient

        tokens = Tokens(folder / "oauth" / f"{_file_name(server)}.json", _own_client(server))
        if server.oauth_grant == "client_credentials":
            return MachineClient(server, tokens, _METHODS[server.oauth_client_auth])
        port = server.oauth_port or tokens.port()
        sign_in = SignIn(server.name, port)
        metadata = OAuthClientMetadata(
            client_name="toolfold",
            redirect_uris=[AnyUrl(f"http://127.0.0.1:{port}{_CALLBACK}")],
        )
        return BrowserClient(server, metadata, tokens, sign_in.redirect, sign_in.callback)

    return made


def _file_name(server: Server) -> str:
    """Name the file of a server's tokens: what one client was given is not another's."""
    whose = [server.url, *([server.oauth_client_id] if server.oauth_client_id else ())]
    if server.oauth_issuer or server.oauth_scopes or server.oauth_grant != "authorization_code":
        whose += [server.oauth_issuer, " ".join(server.oauth_scopes), server.oauth_grant]
    return hashlib.sha256("\n".join(whose).encode()).hexdigest()[:32]
