"""Who may ask the proxy, for which tools, and whose key goes where."""

from __future__ import annotations

import http.client
import json
import logging
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from support.model_server import ModelServer, Says
from support.proxies import RunningProxy, proxied
from toolfold import Settings
from toolfold.config.proxy_settings import Upstream
from toolfold.config.serve_settings import Token
from toolfold.errors import ConfigError

TOKEN = "a-token-of-sixteen-and-more"
OTHER = "another-token-of-somebody"
HELLO: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
CHAT = "/v1/chat/completions"


@contextmanager
def guarded(
    model: ModelServer, monkeypatch: pytest.MonkeyPatch, *, key: str = "", **token: Any
) -> Generator[RunningProxy]:
    monkeypatch.setenv("OWN", TOKEN)
    tokens = (Token(name="laptop", env="OWN", **token),)
    upstream = Upstream(name="up", url=model.url, key="${KEY}" if key else "")
    keys = {"up": key} if key else {}
    with proxied(upstream, host="0.0.0.0", keys=keys, tokens=tokens) as proxy:
        yield proxy


def test_off_loopback_there_must_be_tokens() -> None:
    with pytest.raises(ConfigError) as caught, proxied("http://127.0.0.1:1", host="0.0.0.0"):
        pass
    assert "`proxy`" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        (CHAT, {"x-toolfold-token": TOKEN}),
        (f"/t/{TOKEN}{CHAT}", {}),
        (f"/t/{TOKEN}{CHAT}", {"x-toolfold-token": TOKEN, "authorization": f"Bearer {TOKEN}"}),
    ],
)
def test_a_token_opens_the_door_and_goes_no_further(
    path: str, headers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"x-api-key": "the-clients-own-key", **headers}
    with ModelServer(Says("Hi.")) as model, guarded(model, monkeypatch) as proxy:
        assert proxy.ask(path, HELLO, given).status == 200
        assert proxy.seen.one().principal == "laptop"
    (received,) = model.requests
    assert received.path == CHAT
    assert TOKEN not in str(received.headers)
    assert received.headers["x-api-key"] == "the-clients-own-key"


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        (CHAT, {}),
        (CHAT, {"x-toolfold-token": OTHER}),
        (CHAT, {"authorization": f"Bearer {TOKEN}"}),
        (f"/t/{OTHER}{CHAT}", {}),
        ("/t//v1/models", {}),
        ("/v1/models", {}),
        ("/toolfold/metrics", {}),
    ],
)
def test_without_a_token_nobody_gets_through(
    path: str, headers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with ModelServer(Says("Hi.")) as model, guarded(model, monkeypatch) as proxy:
        reply = proxy.ask(path, HELLO, headers)
    assert reply.status == 401
    assert reply.json["error"]["type"] == "authentication_error"
    assert model.requests == []


@pytest.mark.parametrize(
    ("path", "headers", "sent"),
    [
        (CHAT, {"authorization": f"Bearer {TOKEN}"}, ("authorization", "Bearer the-real-key")),
        ("/v1/messages", {"x-api-key": TOKEN}, ("x-api-key", "the-real-key")),
        ("/v1/messages", {"authorization": f"Bearer {TOKEN}"}, ("x-api-key", "the-real-key")),
    ],
)
def test_where_the_upstreams_key_is_held_a_token_may_stand_in_its_place(
    path: str, headers: dict[str, str], sent: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        ModelServer(Says("Hi.")) as model,
        guarded(model, monkeypatch, key="the-real-key") as proxy,
    ):
        assert proxy.ask(path, HELLO, headers).status == 200
    (received,) = model.requests
    assert received.headers[sent[0]] == sent[1]
    assert TOKEN not in str(received.headers)


def test_no_log_and_no_error_shows_a_token_or_a_key(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with ModelServer() as model, guarded(model, monkeypatch, key="the-real-key") as proxy:
        replies = [
            proxy.ask(f"/t/{TOKEN}{CHAT}", b"no json", {"x-api-key": "some-clients-key"}),
            proxy.ask(f"/t/{TOKEN}/v1/models?x=1"),
            proxy.ask(f"/t/{OTHER}{CHAT}", HELLO),
        ]
        told = str([*proxy.seen.records, *replies, caplog.text])
    for secret in (TOKEN, OTHER, "the-real-key", "some-clients-key"):
        assert secret not in told


@pytest.mark.parametrize(
    "start", ["/t%2f", "/t%2F", "%2ft/", "/%74/", "/%2574%252f", "/t%252f"], ids=str
)
@pytest.mark.parametrize("is_let_in", [False, True])
def test_a_token_in_disguise_is_none_and_goes_nowhere(
    start: str,
    is_let_in: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "toolfold")
    headers = {"x-toolfold-token": TOKEN} if is_let_in else {}
    with ModelServer(Says("Hi.")) as model, guarded(model, monkeypatch) as proxy:
        connection = http.client.HTTPConnection(urlsplit(proxy.url).netloc, timeout=5)
        connection.request("POST", f"{start}{TOKEN}{CHAT}", json.dumps(HELLO), headers)
        response = connection.getresponse()
        status, said = response.status, response.read().decode()
        connection.close()
    assert status in ((400,) if is_let_in else (400, 401))
    assert model.requests == []
    assert TOKEN not in said + caplog.text + str(proxy.seen.records)


def test_a_scope_applies_to_the_clients_own_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    tools = [
        {"name": name, "description": name, "input_schema": {"type": "object"}}
        for name in ("read_file", "delete_file")
    ]
    body = {**HELLO, "max_tokens": 5, "tools": tools}
    with (
        ModelServer(Says("Hi.")) as model,
        guarded(model, monkeypatch, deny=("delete_*",)) as proxy,
    ):
        assert proxy.ask("/v1/messages", body, {"x-toolfold-token": TOKEN}).status == 200
    assert [tool["name"] for tool in model.requests[0].body["tools"]] == ["read_file"]


def test_a_rate_limit_holds_for_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        ModelServer(Says("Hi."), repeat=True) as model,
        guarded(model, monkeypatch, rate_limit=2) as proxy,
    ):
        replies = [proxy.ask(CHAT, HELLO, {"x-toolfold-token": TOKEN}) for _ in range(3)]
    assert [reply.status for reply in replies] == [200, 200, 429]
    assert replies[2].json["error"]["type"] == "rate_limit_error"
    assert "retry-after" in replies[2].headers


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"origin": "https://evil.example"}, 403),
        ({"host": "localhost:1"}, 200),
    ],
)
def test_a_page_that_had_its_name_pointed_here_gets_nothing(
    headers: dict[str, str], status: int
) -> None:
    with ModelServer(Says("Hi.")) as model, proxied(model.url) as proxy:
        reply = proxy.ask(CHAT, HELLO, headers)
    assert reply.status == status
    assert len(model.requests) == (status == 200)


def test_requests_go_by_path_then_by_model_then_to_what_is_left() -> None:
    with ExitStack() as stack:
        local, claude, rest = (
            stack.enter_context(ModelServer(Says("Hi."), repeat=True)) for _ in range(3)
        )
        proxy = stack.enter_context(
            proxied(
                Upstream(name="local", url=local.url, path="/local"),
                Upstream(
                    name="claude", url=f"{claude.url}/api/v1", models=("claude-*",), key="${K}"
                ),
                Upstream(name="rest", url=rest.url),
                keys={"claude": "claudes-key"},
            )
        )
        mine = {"authorization": "Bearer my-key"}
        claude_body = {**HELLO, "model": "claude-x"}
        proxy.ask("/local/v1/messages?beta=true", claude_body, mine)
        proxy.ask("/v1/messages", claude_body, mine)
        proxy.ask(CHAT, HELLO, mine)
        proxy.ask("/v1/models")
        upstreams = [proxy.seen.one(i).upstream for i in range(1, 5)]
    assert upstreams == ["local", "claude", "rest", "rest"]
    assert local.requests[0].path == "/v1/messages?beta=true"
    assert local.requests[0].headers["authorization"] == "Bearer my-key"
    assert claude.requests[0].path == "/api/v1/messages"
    assert claude.requests[0].headers["x-api-key"] == "claudes-key"
    assert "my-key" not in str(claude.requests[0].headers)
    assert rest.requests[0].headers["authorization"] == "Bearer my-key"


def test_a_key_goes_to_no_upstream_that_only_a_models_name_leads_to() -> None:
    with (
        ModelServer(Says("Hi.")) as one,
        ModelServer(Says("Hi.")) as two,
        proxied(
            Upstream(name="one", url=one.url, models=("a",)),
            Upstream(name="two", url=two.url, models=("m",), pass_key=True),
        ) as proxy,
    ):
        mine = {"x-api-key": "my-key", "Authorization": "Bearer my-key"}
        assert proxy.ask(CHAT, {**HELLO, "model": "a"}, mine).status == 200
        assert proxy.ask(CHAT, HELLO, mine).status == 200
        unknown = proxy.ask(CHAT, {**HELLO, "model": "zzz"}, mine)
    assert "my-key" not in str(one.requests[0].headers)
    assert two.requests[0].headers["x-api-key"] == "my-key"
    assert unknown.status == 404
    assert "no upstream serves the model 'zzz'" in unknown.json["error"]["message"]


def test_cookies_of_one_client_are_not_sent_for_another() -> None:
    from support.model_server import Raw

    cookie = Raw([b"{}"], 200, {"set-cookie": "session=1; Path=/"})
    with ModelServer(cookie, repeat=True) as model, proxied(model.url) as proxy:
        assert proxy.ask("/v1/models").headers["set-cookie"] == "session=1; Path=/"
        proxy.ask("/v1/models")
    assert all("cookie" not in request.headers for request in model.requests)


def test_settings_of_the_gate_hold() -> None:
    body = {**HELLO, "tools": [{"name": "a", "input_schema": {"type": "object"}}] * 1}
    with (
        ModelServer(Says("Hi."), repeat=True) as model,
        proxied(model.url, settings=Settings(enabled="off")) as proxy,
    ):
        proxy.ask("/v1/messages", body)
        assert proxy.seen.one().outcome == "untouched"
    assert model.requests[0].body == body
