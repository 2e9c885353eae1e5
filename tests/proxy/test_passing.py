"""What is not folded passes: every byte, both ways, whatever it is."""

from __future__ import annotations

import gzip
import http.client
import json
import socket
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from support.model_server import Fails, ModelServer, Raw, Received, Says
from support.proxies import SECONDS, ask, proxied

HELLO = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
PATHS = {
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic-messages": "/v1/messages",
}
OF_A_CONNECTION = {"connection", "transfer-encoding", "content-length", "date", "server"}


def of_the_answer(headers: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in headers.items() if key not in OF_A_CONNECTION}


@pytest.mark.parametrize("path", [*PATHS.values(), "/v1/models", "/v1/files?purpose=x%2Fy"])
def test_a_request_and_its_answer_pass_to_the_byte(path: str) -> None:
    odd = b'{ "model" : "m",\n"messages":[{"role":"user","content":"\\u00e4 \xc3\xa4"}] }'
    answer = Raw([b'{"a":', b" 1}"], 200, {"content-type": "application/json", "x-odd": "Y"})
    with ModelServer(answer, answer) as model, proxied(model.url) as proxy:
        direct = ask(model.url, path, odd, {"X-Some": "1", "anthropic-beta": "a,b"})
        through = proxy.ask(path, odd, {"X-Some": "1", "anthropic-beta": "a,b"})
    assert through.body == direct.body == b'{"a": 1}'
    assert through.status == direct.status
    assert of_the_answer(through.headers) == of_the_answer(direct.headers)
    first, second = model.requests
    assert second.raw == first.raw == odd
    assert second.path == first.path == path
    changed = {"host", "connection", "accept-encoding"}
    assert {k: v for k, v in second.headers.items() if k not in changed} == {
        k: v for k, v in first.headers.items() if k not in changed
    }


@pytest.mark.parametrize("path", PATHS.values())
def test_a_stream_passes_piece_by_piece(path: str) -> None:
    """The first event arrives while the upstream has not sent the second."""
    with ModelServer(Raw([b"data: 1\n\n"], then="hold")) as model, proxied(model.url) as proxy:
        connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=SECONDS)
        connection.request("POST", path, json.dumps({**HELLO, "stream": True}))
        response = connection.getresponse()
        assert response.read1(100) == b"data: 1\n\n"
        connection.close()
        assert model.gone.wait(SECONDS)
        assert proxy.seen.one().outcome == "cancelled"


def test_a_client_that_leaves_before_the_answer_begins_ends_the_upstreams_work() -> None:
    with ModelServer(Raw(is_silent=True, then="hold")) as model, proxied(model.url) as proxy:
        connection = socket.create_connection(("127.0.0.1", proxy.port))
        body = json.dumps(HELLO).encode()
        head = f"POST /v1/messages HTTP/1.1\r\nhost: x.localhost\r\ncontent-length: {len(body)}\r\n"
        connection.sendall(head.encode() + b"\r\n" + body)
        model.wait_for(1)
        connection.close()
        assert model.gone.wait(SECONDS)
        assert proxy.seen.one().status == 0


def test_an_upload_passes_while_it_comes() -> None:
    """A body that is not folded is not held: the upstream has its head before its end is sent."""
    arrived = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        got: list[bytes] = []

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                while b"first" not in b"".join(got):
                    got.append(connection.recv(65536))
                arrived.set()
                while b"last" not in b"".join(got):
                    got.append(connection.recv(65536))
                connection.sendall(b"HTTP/1.1 201 Made\r\ncontent-length: 2\r\n\r\nok")

        thread = threading.Thread(target=serve)
        thread.start()
        with proxied(f"http://127.0.0.1:{listening.getsockname()[1]}") as proxy:
            sender = socket.create_connection(("127.0.0.1", proxy.port), timeout=SECONDS)
            head = b"POST /v1/files HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n"
            sender.sendall(head + b"first")
            assert arrived.wait(SECONDS)
            sender.sendall(b"last")
            assert sender.recv(65536).startswith(b"HTTP/1.1 201")
            sender.close()
        thread.join(SECONDS)
    assert b"content-length: 9" in b"".join(got).lower()


def test_head_and_unknown_paths_and_methods_pass() -> None:
    def aside(request: Received) -> Raw:
        return Raw([], 200, {"x-path": request.path})

    with ModelServer(aside, repeat=True) as model, proxied(model.url) as proxy:
        assert proxy.ask("/api/hello", method="HEAD").headers["x-path"] == "/api/hello"
        put = proxy.ask("/x/y%2Fz?beta=true&q=%20", b'{"a":1}', method="PUT")
        assert put.headers["x-path"] == "/x/y%2Fz?beta=true&q=%20"
        gone = proxy.ask("/v1/files/1", method="DELETE")
        assert gone.headers["x-path"] == "/v1/files/1"


def test_an_answer_that_is_compressed_stays_so() -> None:
    packed = gzip.compress(b'{"data": []}')
    answer = Raw([packed], 200, {"content-encoding": "gzip", "content-type": "application/json"})
    with ModelServer(answer) as model, proxied(model.url) as proxy:
        reply = proxy.ask("/v1/models", headers={"accept-encoding": "gzip"})
        assert reply.body == packed
        assert reply.headers["content-encoding"] == "gzip"
        assert model.requests[0].headers["accept-encoding"] == "gzip"


@pytest.mark.parametrize("path", PATHS.values())
@pytest.mark.parametrize("status", [400, 401, 413, 429, 500, 529])
def test_an_error_keeps_its_status_body_and_retry_headers(path: str, status: int) -> None:
    refusal = Fails(status, "wait", {"retry-after": "7", "x-should-retry": "true"}, "odd_error")
    with ModelServer(refusal, refusal) as model, proxied(model.url) as proxy:
        direct, through = ask(model.url, path, HELLO), proxy.ask(path, HELLO)
    assert (through.status, through.body) == (direct.status, direct.body)
    assert through.headers["retry-after"] == "7"
    assert through.headers["x-should-retry"] == "true"


@pytest.mark.parametrize(("dialect", "path"), PATHS.items())
def test_an_upstream_that_is_not_there_is_said_in_the_clients_dialect(
    dialect: str, path: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with proxied(f"http://127.0.0.1:{port}") as proxy:
        reply = proxy.ask(path, HELLO)
        assert proxy.seen.one().outcome == "failed"
    assert reply.status == 502
    assert "cannot be reached" in reply.json["error"]["message"]
    assert (reply.json.get("type") == "error") == (dialect == "anthropic-messages")


def test_an_upstream_that_hangs_is_given_up() -> None:
    silent = Raw(is_silent=True, then="hold")
    with ModelServer(silent) as model, proxied(model.url, timeout=0.2) as proxy:
        reply = proxy.ask("/v1/messages", HELLO)
        assert model.gone.wait(SECONDS)
    assert reply.status == 504
    assert reply.json["error"]["type"] == "timeout_error"
    assert "silent for 0.2 s" in reply.json["error"]["message"]


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/v1/chat/completions", b'data: {"error":'),
        ("/v1/responses", b'event: error\ndata: {"type":"error"'),
        ("/v1/messages", b'event: error\ndata: {"type":"error","error":'),
    ],
)
def test_a_stream_that_breaks_off_between_two_events_ends_with_an_error_of_its_kind(
    path: str, kind: bytes
) -> None:
    broken = Raw([b"event: x\ndata: {}\n\n"], then="break")
    with ModelServer(broken) as model, proxied(model.url) as proxy:
        reply = proxy.ask(path, {**HELLO, "stream": True})
    assert reply.body.startswith(b"event: x\ndata: {}\n\n" + kind)


def test_a_stream_that_breaks_off_within_an_event_breaks_for_the_client_too() -> None:
    with (
        ModelServer(Raw([b'data: {"a"'], then="break")) as model,
        proxied(model.url) as proxy,
        pytest.raises(http.client.IncompleteRead),
    ):
        proxy.ask("/v1/chat/completions", {**HELLO, "stream": True})


def _raw_server(answer: bytes) -> tuple[socket.socket, threading.Thread]:
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listening.accept()
        with connection:
            # Read whole: what is left unread at the end is told to the other side as a reset.
            with connection.makefile("rb") as request:
                request.readline()
                headers = http.client.parse_headers(request)
                request.read(int(headers.get("content-length", 0)))
            connection.sendall(answer)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    return listening, thread


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort", "broken"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nlonger", b"lo"),
        (b"HTTP/1.1 200 OK\r\n\r\nno end but the connection's", b"no end but the connection's"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", 502),
        (b"", 502),
    ],
)
def test_an_upstream_that_lies_about_its_length_deceives_nobody(
    answer: bytes, outcome: Any
) -> None:
    listening, thread = _raw_server(answer)
    with listening, proxied(f"http://127.0.0.1:{listening.getsockname()[1]}") as proxy:
        if outcome == "broken":
            with pytest.raises(http.client.IncompleteRead):
                proxy.ask("/v1/chat/completions", HELLO)
        else:
            reply = proxy.ask("/v1/chat/completions", HELLO)
            assert outcome in (reply.status, reply.body)
    thread.join(SECONDS)


LACKING = [
    Raw([b"404 page not found"], 404, {"content-type": "text/plain"}),
    Raw([b'{"detail":"Not Found"}'], 404, {"content-type": "application/json"}),
    Raw([b"<html>nope</html>"], 404, {"content-type": "text/html"}),
    Raw([b'{"error":{"message":"File Not Found","code":404}}'], 404),
    Raw([b'{"error":{"message":"Invalid URL (POST /v1/messages)"}}'], 404),
    Raw([b""], 405),
]


@pytest.mark.parametrize("answer", LACKING)
@pytest.mark.parametrize("tools", [0, 60])
def test_a_dialect_that_the_upstream_lacks_is_named(answer: Raw, tools: int) -> None:
    body = {**HELLO, "tools": some_tools(tools)} if tools else HELLO
    with ModelServer(answer) as model, proxied(model.url) as proxy:
        reply = proxy.ask("/v1/messages", body)
    assert reply.status == answer.status
    assert reply.json["type"] == "error"
    assert "does not speak Anthropic Messages" in reply.json["error"]["message"]


def test_a_model_that_the_upstream_lacks_is_the_upstreams_to_say() -> None:
    said = b'{"error":{"message":"model \'m\' not found","type":"not_found_error"}}'
    answer = Raw([said], 404, {"content-type": "application/json"})
    with ModelServer(answer) as model, proxied(model.url) as proxy:
        assert proxy.ask("/v1/chat/completions", HELLO).body == said


def test_a_web_page_in_place_of_an_answer_comes_as_it_came() -> None:
    page = Raw([b"<html>log in</html>"], 200, {"content-type": "text/html"})
    with ModelServer(page, repeat=True) as model, proxied(model.url) as proxy:
        for path in PATHS.values():
            for more in ({}, {"stream": True}, {"tools": some_tools(60), "stream": True}):
                reply = proxy.ask(path, {**HELLO, **more})
                assert reply.body == b"<html>log in</html>"
                assert reply.headers["content-type"] == "text/html"


@pytest.mark.parametrize("path", PATHS.values())
@pytest.mark.parametrize("body", [b"no json", b"[]", b'{"a', b'"x"', b"null", b"\xff\xfe"])
def test_a_body_that_is_no_request_is_the_upstreams_to_refuse(path: str, body: bytes) -> None:
    listening, thread = _raw_server(b"HTTP/1.1 400 Bad\r\ncontent-length: 3\r\n\r\nbad")
    with listening, proxied(f"http://127.0.0.1:{listening.getsockname()[1]}") as proxy:
        reply = proxy.ask(path, body)
        assert (reply.status, reply.body) == (400, b"bad")
    thread.join(SECONDS)


def test_a_body_beyond_the_limit_is_refused_in_the_clients_dialect() -> None:
    big = {**HELLO, "pad": "x" * 5000}
    with ModelServer(Says("no")) as model, proxied(model.url, body_limit=2048) as proxy:
        reply = proxy.ask("/v1/messages", big)
        assert (reply.status, reply.json["error"]["type"]) == (413, "request_too_large")
        assert "2048 bytes" in reply.json["error"]["message"]
        assert proxy.ask("/v1/files", big).status == 200
    assert [request.path for request in model.requests] == ["/v1/files"]


def some_tools(number: int) -> list[dict[str, Any]]:
    """Tools enough to be folded, in Anthropic's shape, which every dialect reads or passes."""
    return [
        {
            "name": f"mcp__s__tool_{place}",
            "description": f"Does the thing number {place}. " * 20,
            "input_schema": {"type": "object", "properties": {"x": {"type": "string"}}},
        }
        for place in range(number)
    ]


@pytest.mark.parametrize(
    "target",
    [
        "http://evil.example/v1/models",
        "@evil.example/",
        "*",
        "/v1/models#x",
        "/../tenant",
        "/v1/%2e%2E/x",
        "/v1/..%2Fx",
        "/a/..",
    ],
)
def test_a_path_that_leads_elsewhere_is_not_passed_on(target: str) -> None:
    with ModelServer(Says("no")) as model, proxied(f"{model.url}/tenant") as proxy:
        connection = socket.create_connection(("127.0.0.1", proxy.port), timeout=SECONDS)
        connection.sendall(f"GET {target} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
        answer = connection.recv(65536)
        connection.close()
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert model.requests == []


def test_a_path_with_dots_in_its_names_is_an_upstreams_own() -> None:
    with ModelServer(Raw([b"{}"])) as model, proxied(f"{model.url}/tenant") as proxy:
        assert proxy.ask("//v1/a..b/.well-known/...").status == 200
    assert model.requests[0].path == "/tenant//v1/a..b/.well-known/..."
