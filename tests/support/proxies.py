"""The proxy for tests: real sockets on both sides, in a thread of its own.

with ModelServer(Says("Hello.")) as model, proxied(model.url) as proxy:
    openai.OpenAI(base_url=proxy.openai, api_key="key")
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit

import uvicorn

from toolfold import Settings
from toolfold.config.proxy_config import ProxyConfig
from toolfold.config.proxy_settings import ProxySettings, Upstream
from toolfold.dispatch.records import Observer, RequestRecord, Silent
from toolfold.proxy.app import ProxyApp, guarded

SECONDS = 5.0


class Requests(Silent):
    """Keeps the records of requests."""

    def __init__(self) -> None:
        self.records: list[RequestRecord] = []
        self._arrived = threading.Condition()

    def requested(self, record: RequestRecord) -> None:
        with self._arrived:
            self.records.append(record)
            self._arrived.notify_all()

    def one(self, number: int = 1) -> RequestRecord:
        """Wait for the record of so many requests, and return the last of them."""
        with self._arrived:
            assert self._arrived.wait_for(lambda: len(self.records) >= number, SECONDS)
        return self.records[number - 1]


class Reply(NamedTuple):
    """An answer, read to its end."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class RunningProxy:
    """The proxy in a thread, on a free port of this machine."""

    def __init__(
        self,
        config: ProxyConfig,
        host: str = "127.0.0.1",
        observers: Sequence[Observer] = (),
        **given: Any,
    ) -> None:
        self.seen = Requests()
        self.app = ProxyApp(config, observers=(*observers, self.seen), **given)
        settings = uvicorn.Config(
            guarded(self.app, host),
            host="127.0.0.1",
            port=0,
            log_config=None,
            lifespan="on",
            server_header=False,
            date_header=False,
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(settings)
        setattr(self._server, "capture_signals", contextlib.nullcontext)  # noqa: B010
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)

    def _run(self) -> None:
        asyncio.run(self._server.serve())

    @property
    def port(self) -> int:
        return self._server.servers[0].sockets[0].getsockname()[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def openai(self) -> str:
        return f"{self.url}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        end = threading.Event()
        for _ in range(500):
            if self._server.started:
                return self
            end.wait(0.01)
        raise AssertionError("the proxy did not start")

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(SECONDS)
        assert not self._thread.is_alive()

    def ask(
        self,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        method: str | None = None,
    ) -> Reply:
        """Ask with a plain client, and read the answer to its end."""
        return ask(self.url, path, body, headers, method)


def ask(
    url: str,
    path: str,
    body: Any = None,
    headers: Mapping[str, str] | None = None,
    method: str | None = None,
) -> Reply:
    """Ask with a plain client, and read the answer to its end."""
    content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=SECONDS)
    kind = {} if content is None else {"content-type": "application/json"}
    given = {**kind, **(headers or {})}
    connection.request(method or ("GET" if content is None else "POST"), path, content, given)
    try:
        response = connection.getresponse()
        found = {key.lower(): value for key, value in response.getheaders()}
        return Reply(response.status, found, response.read())
    finally:
        connection.close()


def proxy_config(
    *urls: str | Upstream,
    settings: Settings | None = None,
    keys: Mapping[str, str] | None = None,
    **given: Any,
) -> ProxyConfig:
    """Return a configuration with some upstreams."""
    upstreams = tuple(
        Upstream(name=f"up{place}", url=each) if isinstance(each, str) else each
        for place, each in enumerate(urls)
    )
    proxy = replace(ProxySettings(upstreams=upstreams), **given)
    return ProxyConfig(proxy, settings=settings or Settings(), keys=keys or {})


@contextmanager
def proxied(
    *urls: str | Upstream,
    host: str = "127.0.0.1",
    settings: Settings | None = None,
    keys: Mapping[str, str] | None = None,
    app: Mapping[str, Any] | None = None,
    observers: Sequence[Observer] = (),
    **given: Any,
) -> Generator[RunningProxy]:
    """Have a proxy stand before some upstreams."""
    config = proxy_config(*urls, settings=settings, keys=keys, **given)
    with RunningProxy(config, host, observers=observers, **(app or {})) as proxy:
        yield proxy
