"""What each door over HTTP has of its own, where the guard in front of it is the same.

The guard knows hosts, pages, tokens, rates and sizes. Where a request carries its token, which
requests open a session, whose bodies are read whole and in what form a refusal is written are
the customs of a protocol.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from functools import lru_cache
from typing import Any

from toolfold.config.served_profiles import is_profile_name
from toolfold.serve.http.rate_limit import Message, Receive
from toolfold.serve.http.request_headers import headers_of
from toolfold.serve.principals import Principal

__all__ = ["MCP_PATH", "App", "AsgiScope", "Customs", "Gone", "Header", "McpCustoms", "Send"]

AsgiScope = MutableMapping[str, Any]
"""What ASGI says of a request."""

Send = Callable[[Message], Awaitable[None]]
"""Where ASGI's events go."""

App = Callable[[AsgiScope, Receive, Send], Awaitable[None]]
"""An ASGI application."""

Gone = Callable[[str, str], bool]
"""Says whether somebody, by name, is let in no more under a profile."""

Header = tuple[bytes, bytes]
"""A header's name and value."""


MCP_PATH = "/mcp"
"""Where MCP is spoken; each profile has a path below it."""

NO_PROFILE = "/"
"""What no profile is named."""


class Customs:
    """A door without sessions, with bearer tokens, that refuses in plain text."""

    door = "gateway"
    """What a refusal calls it."""

    block = "serve"
    """The block of the configuration that holds its tokens."""

    health_path = "/healthz"
    """Open to everybody."""

    open_paths: tuple[str, ...] = (health_path,)
    """What is open to everybody, and so says nothing."""

    admin_path: str | None = None
    """What begins so is for the admin alone; None where there is none."""

    metrics_path = "/metrics"
    """For those who may know of everything."""

    methods = b"GET, POST, DELETE"
    """What a page may ask with."""

    allowed_headers = b"authorization, content-type, accept"
    """The headers that a page may send."""

    shown_headers = b"www-authenticate, retry-after"
    """The headers of an answer that a page may read."""

    def arrive(self, scope: AsgiScope) -> None:
        """Take a request as it comes, before anything is looked at."""

    def is_public(self, scope: AsgiScope) -> bool:
        """Whether a request needs no token, once its host and its page are those of this door."""
        return False

    def profile(self, scope: AsgiScope) -> str | None:
        """Return the profile that a request is for; none of it empty, None where there are none."""
        return None

    def tokens(self, scope: AsgiScope) -> Iterable[str]:
        """Yield what a request carries where a token may be."""
        given = headers_of(scope, b"authorization")
        scheme, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
        if scheme.lower() == "bearer":
            yield token.strip()

    def admit(self, scope: AsgiScope, principal: Principal) -> None:
        """Take note of who a request is from."""

    def opens(self, scope: AsgiScope) -> bool:
        """Whether a request opens a session."""
        return False

    def begins(self, scope: AsgiScope) -> bool:
        """Whether it is not let in any more when the process is about to stop."""
        return True

    def is_stream(self, scope: AsgiScope) -> bool:
        """Whether the answer to a request is news, which ends when nobody listens any more."""
        return False

    def reads_body(self, scope: AsgiScope) -> bool:
        """Whether its body is held, so that it has a limit and a time to come in."""
        return scope["method"] == "POST"

    def refusal(self, scope: AsgiScope, status: int, text: str) -> tuple[bytes, Iterable[Header]]:
        """Return the body of a refusal, and the headers that describe it."""
        return f"{text}\n".encode(), ((b"content-type", b"text/plain; charset=utf-8"),)


class McpCustoms(Customs):
    """The customs of MCP over streamable HTTP."""

    admin_path = "/admin/"
    ready_path = "/readyz"
    """Whether requests should be sent here now."""

    open_paths = (Customs.health_path, ready_path)

    allowed_headers = (
        b"authorization, content-type, accept, last-event-id, mcp-protocol-version, "
        b"mcp-session-id, mcp-method, mcp-name, toolfold-conversation"
    )
    shown_headers = b"mcp-session-id, www-authenticate, retry-after"

    def profile(self, scope: AsgiScope) -> str | None:
        """Return the profile whose path a request is for, by the address as it was written.

        What is below the path and can be no profile's is one that there never is.
        """
        path: str = scope["path"]
        if path in (MCP_PATH, f"{MCP_PATH}/"):
            return ""
        if not path.startswith(f"{MCP_PATH}/"):
            return None
        name, raw = path.removeprefix(f"{MCP_PATH}/"), scope.get("raw_path")
        # A proxy in front that has rules for paths reads them before they are decoded.
        is_plain = raw is None or raw == path.encode()
        return name if is_plain and is_profile_name(name) else NO_PROFILE

    def admit(self, scope: AsgiScope, principal: Principal) -> None:
        """Tell the protocol library who asks.

        With `user` set, it answers a session's id from another credential as if there were
        no such session.
        """
        scope["user"] = _user(principal.name, principal.profile)

    def opens(self, scope: AsgiScope) -> bool:
        """Whether a request opens a session."""
        # Requests of 2026-07-28 name their method in a header, and open none.
        named = headers_of(scope, b"mcp-session-id") or headers_of(scope, b"mcp-method")
        is_admins = scope["path"].startswith(self.admin_path)
        return scope["method"] == "POST" and not named and not is_admins

    def begins(self, scope: AsgiScope) -> bool:
        """Whether it opens a session, or asks what the gateway is."""
        return self.opens(scope) or headers_of(scope, b"mcp-method") == ["server/discover"]

    def is_stream(self, scope: AsgiScope) -> bool:
        """Whether the answer to a request is news."""
        return (
            scope["method"] == "GET" or headers_of(scope, b"mcp-method") == ["subscriptions/listen"]
        ) and scope["path"] != self.metrics_path


@lru_cache(maxsize=1024)
def _user(name: str, profile: str) -> object:
    from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
    from mcp.server.auth.provider import AccessToken

    # The library tells credentials apart by these names; the token itself goes no further.
    # So an id of a session that was opened under another profile is nobody's.
    return AuthenticatedUser(AccessToken(token="", client_id=name, scopes=[], subject=profile))
