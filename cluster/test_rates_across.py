"""A token's rate limit, over two gateways and over two proxies."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from cluster.postgres import Postgres
from cluster.serving import Replica

TOKEN = "a-token-of-more-than-sixteen"
PING = {"id": 1, "method": "ping"}


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    """The token that the settings name."""
    monkeypatch.setenv("CLUSTER_TOKEN", TOKEN)


def server_entry(folder: Path) -> dict[str, Any]:
    """Return a server, without which there is no gateway."""
    program = str(Path(__file__).with_name("single_server.py"))
    return {"one": {"command": sys.executable, "args": ["-S", "-E", program, str(folder / "book")]}}


def flood(asked: list[Callable[[], int]], seconds: float) -> tuple[list[int], float]:
    """Ask all of them at once, again and again; return the statuses and how long it took."""
    began = time.monotonic()
    statuses: list[int] = []

    def ask(one: Callable[[], int]) -> None:
        while time.monotonic() - began < seconds:
            statuses.append(one())

    with ThreadPoolExecutor(len(asked)) as pool:
        list(pool.map(ask, asked))
    return statuses, time.monotonic() - began


def test_a_token_is_admitted_no_more_often_by_two_gateways_than_by_one(
    postgres_alone: tuple[Postgres, str], tmp_path: Path
) -> None:
    server, address = postgres_alone
    tokens = [{"name": "agent", "env": "CLUSTER_TOKEN", "rate_limit": 60}]
    headers = {"authorization": f"Bearer {TOKEN}"}
    servers = server_entry(tmp_path)
    with (
        Replica(tmp_path, "a", address, servers, tokens=tokens) as a,
        Replica(tmp_path, "b", address, servers, tokens=tokens) as b,
    ):

        def ask(replica: Replica) -> Callable[[], int]:
            return lambda: replica.post(PING, headers)[0]

        statuses, took = flood([ask(a), ask(b), ask(a), ask(b)], 5)
        admitted = len(statuses) - statuses.count(429)
        assert 10 <= admitted <= 10 + took
        assert statuses.count(429) > admitted

        # Away, each of them counts for itself, and says so once.
        server.stop("fast")
        statuses, took = flood([ask(a), ask(b)], 5)
        admitted = len(statuses) - statuses.count(429)
        assert 20 <= admitted <= 2 * (10 + took)
        for replica in (a, b):
            said = replica.errors.read_text("utf-8")
            assert said.count("each replica counts requests for itself") == 1


def test_a_gateway_without_a_limit_asks_nobody(
    postgres_alone: tuple[Postgres, str], tmp_path: Path
) -> None:
    server, address = postgres_alone
    with Replica(tmp_path, "a", address, server_entry(tmp_path)) as a:
        server.stop("fast")
        assert 429 not in flood([lambda: a.post(PING, {})[0]], 0.5)[0]
        assert not a.said("counts requests for itself")


def test_two_proxies_count_together_too(address: str, tmp_path: Path) -> None:
    import asyncio

    from toolfold.config.proxy_config import ProxyConfig
    from toolfold.config.proxy_settings import ProxySettings, Upstream
    from toolfold.config.serve_settings import ServeSettings, Token
    from toolfold.proxy.app import ProxyApp, guarded

    token = Token("agent", env="CLUSTER_TOKEN", rate_limit=60)
    config = ProxyConfig(
        ProxySettings(upstreams=(Upstream("u", "http://127.0.0.1:9"),), tokens=(token,)),
        ServeSettings(store=address, state_dir=str(tmp_path)),
    )

    async def ask(door: Callable[..., object]) -> int:
        statuses: list[int] = []

        async def receive() -> dict[str, object]:
            return {"type": "http.request", "body": b"{}"}

        async def send(message: dict[str, object]) -> None:
            if message["type"] == "http.response.start":
                statuses.append(int(str(message["status"])))

        headers = [(b"host", b"127.0.0.1"), (b"x-toolfold-token", TOKEN.encode())]
        scope = {
            "type": "http", "method": "POST", "path": "/v1/chat/completions", "query_string": b"",
            "raw_path": b"/v1/chat/completions", "headers": headers, "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80), "http_version": "1.1", "scheme": "http",
        }  # fmt: skip
        await door(scope, receive, send)  # pyright: ignore[reportGeneralTypeIssues]
        return statuses[0]

    async def main() -> list[int]:
        doors = [guarded(ProxyApp(config), "127.0.0.1") for _ in range(2)]
        return [await ask(doors[n % 2]) for n in range(24)]

    began = time.monotonic()
    statuses = asyncio.run(main())
    admitted = len(statuses) - statuses.count(429)
    assert 10 <= admitted <= 10 + (time.monotonic() - began)
