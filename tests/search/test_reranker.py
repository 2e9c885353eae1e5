"""The endpoint reranker, against a real HTTP server that misbehaves in every way."""

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from toolfold import Reranker, Settings, Tool, fold

TOOLS = [
    Tool("mail_send", "Send a message by mail."),
    Tool("chat_send", "Send a message in a chat."),
    Tool("fax_send", "Send a message by fax."),
]

Respond = Callable[[BaseHTTPRequestHandler, dict[str, Any]], None]


@contextmanager
def endpoint(respond: Respond) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A server on loopback; yields its address and the requests it got."""
    asked: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append({**body, "authorization": self.headers.get("Authorization")})
            with suppress(BrokenPipeError, ConnectionResetError):
                respond(self, body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1/embeddings", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def answer(handler: BaseHTTPRequestHandler, body: Any, status: int = 200) -> None:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(text)))
    handler.end_headers()
    handler.wfile.write(text)


def vectors(texts: list[str], wanted: str) -> dict[str, Any]:
    """Vectors in which the text that holds `wanted` is nearest to the query."""
    near = [[1.0, 0.0] if i == 0 or wanted in text else [0.1, 1.0] for i, text in enumerate(texts)]
    data = [{"index": i, "embedding": vector} for i, vector in enumerate(near)]
    return {"data": data[::-1]}


def prefers(wanted: str) -> Respond:
    return lambda handler, body: answer(handler, vectors(body["input"], wanted))


def search(url: str, times: int = 1, **more: Any) -> list[list[str]]:
    reranker = Reranker(enabled=True, endpoint=url, model=f"test-{url}", **more)
    settings = Settings(enabled="on", ranker="bm25", reranker=reranker)
    folded = fold(TOOLS, settings=settings)
    return [[h.name for h in folded.bridge.search("send a message", 3)] for _ in range(times)]


EMBEDDED = [["mail_send", "chat_send", "fax_send"]]


def test_the_endpoint_orders_what_the_embedded_search_found() -> None:
    with endpoint(prefers("fax")) as (url, asked):
        found = search(url)

    assert found[0][0] == "fax_send"
    assert sorted(found[0]) == sorted(EMBEDDED[0])
    assert asked[0]["input"][0] == "search_query: send a message"
    assert asked[0]["input"][1].startswith("search_document: ")


def test_one_request_a_query_and_each_tool_is_embedded_once() -> None:
    with endpoint(prefers("fax")) as (url, asked):
        search(url, times=3)

    assert [len(request["input"]) for request in asked] == [4, 1, 1]


def test_rank_fusion_takes_both_orders_into_account() -> None:
    with endpoint(prefers("fax")) as (url, _):
        found = search(url, mode="rrf", rrf_k=10)

    assert sorted(found[0]) == sorted(EMBEDDED[0])
    assert found[0] != ["fax_send", "mail_send", "chat_send"] or found[0][0] == "fax_send"


def test_the_key_comes_from_the_environment_and_reaches_no_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("EMBEDDING_KEY", "s3cret")

    with endpoint(lambda handler, _: answer(handler, {}, 401)) as (url, asked):
        search(url, api_key_env="EMBEDDING_KEY")

    assert asked[0]["authorization"] == "Bearer s3cret"
    assert "s3cret" not in caplog.text


def hang(handler: BaseHTTPRequestHandler, _: Any) -> None:
    handler.rfile.read(1)  # until the client gives up


def drip(handler: BaseHTTPRequestHandler, _: Any) -> None:
    handler.wfile.write(b"HTTP/1.0 200 OK\r\n")
    for _ in range(20):
        handler.wfile.write(b"X")
        handler.wfile.flush()
        time.sleep(0.05)


def cut_off(handler: BaseHTTPRequestHandler, _: Any) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"data": [')


def redirect(handler: BaseHTTPRequestHandler, _: Any) -> None:
    handler.send_response(307)
    handler.send_header("Location", "http://127.0.0.1:9/elsewhere")
    handler.send_header("Content-Length", "0")
    handler.end_headers()


def body(value: Any, status: int = 200) -> Respond:
    return lambda handler, _: answer(handler, value, status)


def rows(*values: Any) -> Respond:
    return body({"data": [{"index": i, "embedding": v} for i, v in enumerate(values)]})


@pytest.mark.parametrize(
    "respond",
    [
        pytest.param(hang, id="no answer"),
        pytest.param(drip, id="byte by byte"),
        pytest.param(cut_off, id="cut off"),
        pytest.param(redirect, id="redirect"),
        pytest.param(body({"error": "x"}, 500), id="500"),
        pytest.param(body({"error": "x"}, 429), id="429"),
        pytest.param(body(b""), id="empty"),
        pytest.param(body(b"<html>"), id="html"),
        pytest.param(body(b"\xff\xfe\x00"), id="not utf-8"),
        pytest.param(body([]), id="a list"),
        pytest.param(body({"data": {}}), id="data is an object"),
        pytest.param(rows([1.0, 0.0]), id="too few"),
        pytest.param(rows([1.0], [1.0], [1.0], [1.0], [1.0]), id="too many"),
        pytest.param(rows([1.0, 0.0], [1.0], [1.0, 0.0], [1.0, 0.0]), id="lengths differ"),
        pytest.param(rows([0, 0], [0, 0], [0, 0], [0, 0]), id="zero vectors"),
        pytest.param(rows(["a"], ["b"], ["c"], ["d"]), id="texts for numbers"),
        pytest.param(rows([1e308, 1e308], [1.0, 0], [1.0, 0], [1.0, 0]), id="overflow"),
        pytest.param(rows(None, None, None, None), id="no vectors"),
        pytest.param(body(b'{"data":[{"index":0,"embedding":[NaN]}]}'), id="nan"),
        pytest.param(
            body({"data": [{"index": 0, "embedding": [1.0]}] * 4}), id="the same index again"
        ),
        pytest.param(body(b"[" * 100_000), id="deep nesting"),
    ],
)
def test_whatever_goes_wrong_the_embedded_order_stands(
    respond: Respond, caplog: pytest.LogCaptureFixture
) -> None:
    with endpoint(respond) as (url, _), caplog.at_level(logging.WARNING):
        started = time.monotonic()
        found = search(url, times=2, timeout=0.3)
        took = time.monotonic() - started

    assert found == EMBEDDED * 2
    assert took < 2
    assert len([r for r in caplog.records if "the embedded order stands" in r.message]) == 1


def test_an_endpoint_that_is_not_there_leaves_the_embedded_order() -> None:
    assert search("http://127.0.0.1:9/v1/embeddings") == EMBEDDED


def test_only_http_is_asked() -> None:
    assert search("file:///etc/passwd") == EMBEDDED


def test_a_reranker_that_is_off_is_never_asked() -> None:
    with endpoint(prefers("fax")) as (url, asked):
        settings = Settings(enabled="on", ranker="bm25", reranker=Reranker(endpoint=url))
        fold(TOOLS, settings=settings).bridge.search("send a message", 3)

    assert asked == []


# ---- a floor of its own


@pytest.mark.parametrize(("floor", "names"), [(0.0, []), (0.9, ["fax_send"]), (1.0, ["fax_send"])])
def test_the_endpoint_lifts_what_the_embedded_floor_refused_only_by_its_own_floor(
    floor: float, names: list[str]
) -> None:
    with endpoint(prefers("fax")) as (url, _):
        reranker = Reranker(enabled=True, endpoint=url, model=f"test-{url}", floor=floor)
        settings = Settings(enabled="on", reranker=reranker)
        hits = fold(TOOLS, settings=settings).bridge.search("zebra crossing at midnight", 3)

    assert [hit.name for hit in hits][:1] == names
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert all(0 <= hit.score <= 1 for hit in hits)


def test_what_the_endpoint_finds_dissimilar_stays_refused() -> None:
    with endpoint(prefers("nothing of this kind")) as (url, _):
        reranker = Reranker(enabled=True, endpoint=url, model=f"test-{url}", floor=0.5)
        settings = Settings(enabled="on", reranker=reranker)

        assert fold(TOOLS, settings=settings).bridge.search("zebra crossing at midnight", 3) == ()
