"""The customs of the proxy's door: where a token may be, and that it goes no further."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from urllib.parse import unquote_plus

from toolfold.proxy.complaints import error_body
from toolfold.proxy.paths import asked, without_token
from toolfold.serve.http.customs import AsgiScope, Customs, Header
from toolfold.serve.http.request_headers import headers_of
from toolfold.serve.principals import Principal

__all__ = ["KEY_HEADERS", "ProxyCustoms", "keys_in", "without_keys", "without_query_keys"]

KEY_HEADERS = (b"authorization", b"x-api-key", b"api-key", b"x-goog-api-key")
"""Where clients send a provider's key."""

_QUERY_KEYS = frozenset(
    "key api-key apikey x-api-key x-goog-api-key token access-token auth-token".split()
)
_KEY_AT_LEAST = 8
_TOKEN = "toolfold.proxy.token"


class ProxyCustoms(Customs):
    """What the guard needs to know of the proxy.

    A token may be in a header of its own, as the first part of the path, or, where an upstream
    has its key from the configuration, in the place of a key.

    Args:
        holds_keys: Whether some upstream has its key from the configuration.
        is_token: Whether a text is a token of somebody.
    """

    door = "proxy"
    block = "proxy"
    # Below a name of our own: every other path is the upstream's.
    health_path = "/toolfold/healthz"
    metrics_path = "/toolfold/metrics"
    methods = b"GET, HEAD, POST, PUT, PATCH, DELETE"
    allowed_headers = (
        b"authorization, content-type, accept, x-api-key, api-key, x-toolfold-token, "
        b"anthropic-version, anthropic-beta, anthropic-dangerous-direct-browser-access, "
        b"openai-organization, openai-project, openai-beta, x-stainless-lang, "
        b"x-stainless-package-version, x-stainless-os, x-stainless-arch, x-stainless-runtime, "
        b"x-stainless-runtime-version, x-stainless-retry-count, x-stainless-timeout"
    )
    shown_headers = b"retry-after, request-id, x-request-id, x-toolfold-rounds"

    def __init__(self, *, holds_keys: bool, is_token: Callable[[str], bool]) -> None:
        self._holds_keys = holds_keys
        self._is_token = is_token

    def arrive(self, scope: AsgiScope) -> None:
        """Take a token off the path."""
        raw = scope.get("raw_path") or scope["path"].encode("utf-8", "surrogatepass")
        rest, token = without_token(raw.decode("latin-1"))
        scope["raw_path"] = rest.encode("latin-1")
        scope["path"] = without_token(scope["path"])[0]
        scope[_TOKEN] = token

    def tokens(self, scope: AsgiScope) -> Iterable[str]:
        """Yield what a request carries where a token may be."""
        yield from headers_of(scope, b"x-toolfold-token")
        if scope.get(_TOKEN):
            yield scope[_TOKEN]
        if self._holds_keys:
            for name in KEY_HEADERS:
                yield from map(_bare, headers_of(scope, name))

    def admit(self, scope: AsgiScope, principal: Principal) -> None:
        """Forget the tokens, wherever they stand: none goes up."""
        scope[_TOKEN] = ""
        scope["headers"] = [
            (name, value)
            for name, value in scope["headers"]
            if name.lower() not in KEY_HEADERS or not self._is_token(_bare(value.decode("latin-1")))
        ]

    def reads_body(self, scope: AsgiScope) -> bool:
        """Whether the request may be folded: then it is held."""
        return asked(scope["method"], scope["path"]) is not None

    def refusal(self, scope: AsgiScope, status: int, text: str) -> tuple[bytes, Iterable[Header]]:
        """Return the body of a refusal, in the client's dialect."""
        known = asked(scope["method"], scope["path"])
        is_anthropic = known is None and bool(headers_of(scope, b"anthropic-version"))
        dialect = known.dialect if known else "anthropic-messages" if is_anthropic else None
        body = error_body(dialect, status, f"toolfold proxy: {text}")
        return body, ((b"content-type", b"application/json"),)


def keys_in(scope: AsgiScope) -> list[bytes]:
    """Return what a request carries as keys; what is as short as a placeholder is none."""
    found = [_bare(value) for name in KEY_HEADERS for value in headers_of(scope, name)]
    for part in scope.get("query_string", b"").split(b"&"):
        if _is_key(part):
            written = part.partition(b"=")[2].decode("latin-1")
            found += {written, unquote_plus(written, "latin-1")}
    return [key.encode("latin-1") for key in found if len(key) >= _KEY_AT_LEAST]


def without_query_keys(query: bytes) -> bytes:
    """Return a query without what stands in it as a key."""
    return b"&".join(part for part in query.split(b"&") if not _is_key(part))


def without_keys(text: bytes, keys: Iterable[bytes]) -> bytes:
    """Return a text with a mark in place of keys."""
    for key in keys:
        text = text.replace(key, b"[redacted]")
    return text


def _is_key(part: bytes) -> bool:
    """Whether a part of a query is a key: `key=…`, as Google's APIs take it, and its like."""
    name = unquote_plus(part.partition(b"=")[0].decode("latin-1"), "latin-1")
    return name.lower().replace("_", "-") in _QUERY_KEYS


def _bare(value: str) -> str:
    scheme, _, rest = value.strip().partition(" ")
    return rest.strip() if scheme.lower() == "bearer" else value.strip()
