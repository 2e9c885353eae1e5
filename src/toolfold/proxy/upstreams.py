"""The model servers behind the proxy: which one a request goes to, with whose key, and how.

A key goes to its own upstream and nowhere else. What a client sends as its key is passed on to
the upstream that the client chose by its address, and to another, which the name of a model
leads to, only where the configuration says so.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable, Mapping, Sequence
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from toolfold.config.proxy_settings import ProxySettings, Upstream
from toolfold.errors import MissingExtraError
from toolfold.proxy.customs import KEY_HEADERS, without_query_keys
from toolfold.proxy.exchange import ProxyDialect
from toolfold.proxy.headers import named, upward
from toolfold.proxy.paths import joined
from toolfold.serve.http.customs import Header

if TYPE_CHECKING:
    import httpx2

__all__ = ["Choice", "UnservedModelError", "UpstreamConnections", "Upstreams"]

_CONNECTIONS = 2_000
_KEPT_CONNECTIONS = 200
_KEEP_SECONDS = 30.0


class UnservedModelError(Exception):
    """No upstream serves a model."""


class Choice(NamedTuple):
    """The upstream of a request."""

    upstream: Upstream
    path: str
    """The path that is asked for there, behind the base URL."""

    passes_key: bool
    """Whether it gets the client's own key."""

    key: str
    """Its key from the configuration; empty where it has none."""

    @property
    def address(self) -> str:
        """Where it is, as a person may see it."""
        return self.upstream.url

    @property
    def host(self) -> str:
        """Its host's name."""
        return urlsplit(self.upstream.url).hostname or ""

    def headers(
        self,
        given: Iterable[Header],
        dialect: ProxyDialect | None,
        *,
        without: Iterable[bytes] = (),
        more: Mapping[str, str] | None = None,
    ) -> list[Header]:
        """Return the headers of a request as they go up.

        Args:
            given: The client's.
            dialect: What is spoken, where it is known.
            without: Names in lower case that do not go up.
            more: Headers that go up with another value.
        """
        changed = {name.lower().encode(): value.encode() for name, value in (more or {}).items()}
        left_out = {*without, *changed}
        kept = list(given)
        if self.key or not self.passes_key:
            left_out.update((*KEY_HEADERS, b"cookie"))
        headers = [*upward(kept, without=left_out), *changed.items()]
        if self.key:
            is_anthropic = dialect == "anthropic-messages" or (
                dialect is None and named(kept, b"anthropic-version") != ""
            )
            own = (
                (b"x-api-key", self.key.encode())
                if is_anthropic
                else (b"authorization", b"Bearer " + self.key.encode())
            )
            headers.append(own)
        return headers

    def query(self, given: bytes) -> bytes:
        """Return the query of a request as it goes up: a key in it is a key."""
        return without_query_keys(given) if self.key or not self.passes_key else given


class Upstreams:
    """Chooses among the upstreams.

    Args:
        upstreams: All of them; the first without `path` and `models`, else the first, takes what
            names none.
        keys: The keys of those that have one, by name.
    """

    def __init__(self, upstreams: Sequence[Upstream], keys: Mapping[str, str]) -> None:
        self._all = tuple(upstreams)
        self._keys = dict(keys)
        # The longest first: `/local/fast` is not `/local`.
        self._by_path = sorted((u for u in self._all if u.path), key=lambda u: -len(u.path))
        self._by_model = [u for u in self._all if u.models and not u.path]
        self._others = [u for u in self._all if not u.models and not u.path]

    @property
    def needs_model(self) -> bool:
        """Whether the name of a request's model decides."""
        return bool(self._by_model)

    @property
    def holds_keys(self) -> bool:
        """Whether some of them have their key from the configuration."""
        return bool(self._keys)

    def choose(self, path: str, model: str | None) -> Choice:
        """Return the upstream of a request.

        Args:
            path: The request's path.
            model: The model that it names; None where it names none.

        Raises:
            UnservedModelError: No upstream serves the model.
        """
        for upstream in self._by_path:
            rest = path.removeprefix(upstream.path)
            if rest != path and rest[:1] in ("", "/"):
                return self._choice(upstream, rest, is_meant=True)
        if model is not None:
            for upstream in self._by_model:
                if upstream.serves(model):
                    return self._choice(upstream, path, is_meant=len(self._all) == 1)
        if self._others:
            return self._choice(self._others[0], path, is_meant=True)
        if model is not None and self._by_model:
            known = ", ".join(pattern for u in self._by_model for pattern in u.models)
            raise UnservedModelError(
                f"no upstream serves the model {model!r}; those here serve {known}"
            )
        first = (self._by_model or self._all)[0]
        return self._choice(first, path, is_meant=len(self._all) == 1)

    def _choice(self, upstream: Upstream, path: str, *, is_meant: bool) -> Choice:
        passes = is_meant if upstream.pass_key is None else upstream.pass_key
        key = self._keys.get(upstream.name, "")
        rest = joined(urlsplit(upstream.url).path, path or "/")
        return Choice(upstream, rest, passes and not key, key)


class UpstreamConnections:
    """The connections to all upstreams.

    Args:
        settings: How long to wait.

    Raises:
        MissingExtraError: The extra is not installed.
    """

    def __init__(self, settings: ProxySettings) -> None:
        try:
            import httpx2
        except ImportError:
            raise MissingExtraError("`toolfold proxy`", "proxy") from None
        self.http = httpx2
        self._client = httpx2.AsyncClient(
            timeout=httpx2.Timeout(
                settings.timeout,
                connect=settings.connect_timeout,
                pool=settings.connect_timeout,
            ),
            limits=httpx2.Limits(
                max_connections=_CONNECTIONS,
                max_keepalive_connections=_KEPT_CONNECTIONS,
                keepalive_expiry=_KEEP_SECONDS,
            ),
            follow_redirects=False,
            # What an upstream tells one client is not told to it by the next.
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
        )

    async def send(
        self,
        choice: Choice,
        method: str,
        headers: Sequence[Header],
        body: bytes | AsyncIterable[bytes] | None,
        query: bytes = b"",
    ) -> httpx2.Response:
        """Send a request; return the response with its body still to be read.

        Raises:
            httpx2.TransportError: There is none.
        """
        path = choice.path.encode("latin-1") + (b"?" + query if query else b"")
        url = self.http.URL(choice.upstream.url).copy_with(raw_path=path)
        own = [
            h for h in headers if not isinstance(body, bytes) or h[0].lower() != b"content-length"
        ]
        request = self.http.Request(method, url, headers=own, content=body)
        request.extensions["timeout"] = self._client.timeout.as_dict()
        return await self._client.send(request, stream=True)

    async def close(self) -> None:
        """Close them."""
        await self._client.aclose()
