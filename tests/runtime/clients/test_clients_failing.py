"""`toolfold.runtime.clients`: what happens when a server does not answer as it should."""

from __future__ import annotations

import asyncio
import logging
import socket
import subprocess
import sys
import traceback
from contextlib import aclosing
from email.utils import formatdate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.asking import APIS, CLIENTS, AnyClient, base_url
from support.model_server import Fails, ModelServer, Raw, Says, event
from toolfold.errors import ConfigError
from toolfold.runtime.clients import Anthropic, OpenAIChat, OpenAIResponses
from toolfold.runtime.clients._failure import retry_after
from toolfold.runtime.messages import UserMessage
from toolfold.runtime.model import ModelError, Reply, Request

HELLO = Request([UserMessage("hello")])
KEY = "key-of-mine-0123456789"
HI = event({"choices": [{"delta": {"content": "Hi"}}]})
START = event({"type": "message_start", "message": {}}, "message_start")
OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}


class Clock:
    """Remembers how long it was asked to wait, and does not."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)


def client(base: str, api: str, clock: Clock, **options: Any) -> AnyClient:
    given: dict[str, Any] = {"api_key": KEY, **options}
    return CLIENTS[api]("any", base_url=base, sleep=clock.sleep, **given)


def answer(*script: Any, api: str = "openai", **options: Any) -> tuple[str, list[float], int]:
    """The text of the reply, the waits before it and the number of requests."""
    clock = Clock()

    async def main() -> tuple[str, list[float], int]:
        with ModelServer(*script) as server:
            base = base_url(server, api)
            async with (
                client(base, api, clock, **options) as model,
                aclosing(model.stream(HELLO)) as events,
            ):
                replies = [e async for e in events if isinstance(e, Reply)]
            return replies[0].message.text, clock.waits, len(server.requests)

    return asyncio.run(main())


def error(*script: Any, api: str = "openai", **options: Any) -> ModelError:
    with pytest.raises(ModelError) as caught:
        answer(*script, api=api, **options)
    return caught.value


# ---- another attempt


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
def test_a_server_that_is_busy_is_asked_again(api: str, status: int) -> None:
    text, waits, requests = answer(Fails(status), Fails(status), Says("Hi"), api=api)

    assert (text, requests) == ("Hi", 3)
    assert 0 <= waits[0] <= 0.5
    assert 0 <= waits[1] <= 1.0


def test_waits_double_up_to_a_bound_and_differ() -> None:
    _, waits, _ = answer(*[Fails(500)] * 9, Says("Hi"), retries=9)

    bounds = [0.5, 1, 2, 4, 8, 8, 8, 8, 8]
    assert all(0 <= wait <= bound for wait, bound in zip(waits, bounds, strict=True))
    assert len(set(waits)) == len(waits)


@pytest.mark.parametrize(
    ("headers", "least", "most"),
    [
        ({"retry-after": "7"}, 7, 7),
        ({"retry-after": "0.25"}, 0.25, 0.25),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5, 1.5),
        ({"retry-after": "0"}, 0, 0.5),
        ({"retry-after": "soon"}, 0, 0.5),
        ({"retry-after": "nan"}, 0, 0.5),
        ({"retry-after": "-3"}, 0, 0.5),
    ],
)
def test_the_server_says_how_long_to_wait(
    headers: dict[str, str], least: float, most: float
) -> None:
    _, waits, _ = answer(Fails(429, headers=headers), Says("Hi"))

    assert least <= waits[0] <= most


def test_the_server_may_say_until_when_to_wait() -> None:
    now = 1_790_000_000.0

    assert retry_after({"retry-after": formatdate(now + 30, usegmt=True)}, now) == 30
    assert retry_after({"retry-after": formatdate(now - 30, usegmt=True)}, now) == 0


@given(st.text(max_size=30))
def test_no_header_breaks_the_reading_of_it(value: str) -> None:
    wait = retry_after({"retry-after": value, "retry-after-ms": value})

    assert wait is None or wait >= 0


def test_a_server_that_wants_an_hour_is_not_waited_for() -> None:
    caught = error(Fails(429, "slow down", {"retry-after": "3600"}), Says("Hi"))

    assert str(caught) == "model 'any': the server answered 429: 'slow down'"
    assert caught.hint == "the server asks to wait 3,600 s; try again then"


def test_there_are_only_so_many_attempts() -> None:
    caught = error(*[Fails(503, "later")] * 9, retries=2)

    assert str(caught) == "model 'any': the server answered 503: 'later' (after 3 attempts)"
    assert (caught.status, caught.hint) == (503, "try again later, or raise `retries`")


@pytest.mark.parametrize("status", [300, 400, 401, 403, 404, 413, 422])
def test_a_request_that_is_wrong_is_not_repeated(status: int) -> None:
    caught = error(Fails(status), Says("Hi"))

    assert str(caught) == f"model 'any': the server answered {status}: 'no'"
    assert caught.status == status


def test_a_server_knows_best_whether_to_try_again() -> None:
    assert answer(Fails(400, headers={"x-should-retry": "true"}), Says("Hi"))[2] == 2
    assert "500" in str(error(Fails(500, headers={"x-should-retry": "false"}), Says("Hi")))


def test_an_account_without_money_is_not_tried_again() -> None:
    caught = error(Fails(429, "You exceeded your quota", kind="insufficient_quota"), Says("Hi"))

    assert caught.hint == "check the plan and the balance of the account"


def test_a_server_that_is_not_there_is_tried_again_and_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        base = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        clock = Clock()

        async def main() -> None:
            async with client(base, "openai", clock, retries=2) as model:
                await anext(model.stream(HELLO))

        with pytest.raises(ModelError) as caught:
            asyncio.run(main())

    assert str(caught.value).startswith(f"model 'any': cannot reach '{base}/chat/completions': ")
    assert str(caught.value).endswith(" (after 3 attempts)")
    assert caught.value.hint == "check that the server runs, and the base URL"
    assert len(clock.waits) == 2


@pytest.mark.parametrize(
    "step", [Raw(then="break"), Raw(then="break", is_silent=True), Raw([])], ids=str
)
def test_a_connection_that_breaks_before_the_first_byte_is_made_again(step: Raw) -> None:
    assert answer(step, Says("Hi"))[::2] == ("Hi", 2)


def test_a_reply_that_breaks_off_is_an_error_and_not_asked_for_again() -> None:
    caught = error(Raw([HI], then="break"), Says("Hi"))

    assert str(caught).startswith("model 'any': the reply broke off: ")
    assert caught.hint == "try again"


def test_a_stream_that_ends_without_an_end_broke_off() -> None:
    assert str(error(Raw([HI]), Says("Hi"))) == "model 'any': the reply broke off"


def test_an_overload_reported_in_the_stream_is_tried_again_while_nothing_was_said() -> None:
    early = Raw([START, event({"type": "ping"}), event(OVERLOADED, "error")])
    text = {"type": "content_block_start", "content_block": {"type": "text", "text": "Hi"}}
    late = Raw([START, event(text), event(OVERLOADED, "error")])

    assert answer(early, Says("Hi"), api="anthropic")[::2] == ("Hi", 2)
    assert str(error(late, Says("Hi"), api="anthropic")) == (
        "model 'any': the server reported an error: 'Overloaded'"
    )
    assert answer(Raw([event({"error": {"code": 502, "message": "x"}})]), Says("Hi"))[2] == 2


def test_a_server_that_is_silent_for_too_long_is_left() -> None:
    caught = error(Raw([HI], then="hold"), timeout=0.1)

    assert str(caught) == "model 'any': the server was silent for 0.1 s"
    assert caught.hint == "give it more time"


# ---- what people read


@pytest.mark.parametrize(
    ("status", "body", "message", "hint"),
    [
        (
            401,
            b'{"error": {"message": "Incorrect API key"}}',
            "the server answered 401: 'Incorrect API key'",
            "set OPENAI_API_KEY, or give another key",
        ),
        (
            404,
            b'{"detail": "Not Found"}',
            "the server answered 404: 'Not Found'",
            "check the base URL and the model's name",
        ),
        (
            422,
            b'{"detail": [{"loc": ["body"], "msg": "field required"}]}',
            "the server answered 422: 'field required'",
            None,
        ),
        (
            400,
            b'[{"error": {"code": 400, "message": "maximum context length is 10"}}]',
            "the server answered 400: 'maximum context length is 10'",
            "shorten the conversation, or use a model with a larger context window",
        ),
        (400, b"", "the server answered 400", None),
        (400, b"\x00\xff\n\nbad\tthing", "the server answered 400: '\ufffd bad thing'", None),
        (
            413,
            b"<html>" + b"x" * 100_000,
            f"the server answered 413: '<html>{'x' * 293}…'",
            "shorten the conversation, or use a model with a larger context window",
        ),
    ],
)
def test_an_error_says_what_the_server_said_and_what_to_do(
    status: int, body: bytes, message: str, hint: str | None
) -> None:
    caught = error(Raw([body], status, {"content-type": "text/plain"}))

    assert str(caught) == f"model 'any': {message}"
    assert caught.hint == hint


def test_a_redirect_is_told_and_not_followed() -> None:
    caught = error(Fails(308, headers={"location": "https://other.example/v1"}), Says("Hi"))

    assert caught.hint == "it redirects to 'https://other.example/v1': use that as the base URL"


def test_an_error_names_the_request_for_whoever_has_to_find_it() -> None:
    caught = error(Fails(400, "bad", {"request-id": "req_7"}), api="anthropic")

    assert str(caught) == "model 'any': the server answered 400: 'bad', request 'req_7'"


@pytest.mark.parametrize("api", APIS)
def test_a_key_is_never_shown(api: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    secret = "v3ry-secret-header"
    headers = {"X-Api-Token": secret}
    said = f"Incorrect API key provided: {KEY} and Bearer {KEY}, {secret}"
    clock = Clock()
    shown: list[str] = []

    async def main() -> None:
        with ModelServer(Fails(500, said), Fails(401, said)) as server:
            base = base_url(server, api)
            async with client(base, api, clock, headers=headers) as model:
                shown.append(repr(model))
                try:
                    await anext(model.stream(HELLO))
                except ModelError as caught:
                    shown.append("".join(traceback.format_exception(caught)))
            sent = server.requests[0].headers
            assert KEY in (sent.get("authorization") or sent.get("x-api-key") or "")
            assert sent["x-api-token"] == secret

    asyncio.run(main())

    assert "[redacted]" in shown[1]
    assert "trying any again" in caplog.text
    for text in (*shown, caplog.text):
        assert KEY not in text
        assert secret not in text


def test_the_key_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "from-openai\n")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "from-anthropic")

    async def headers(api: str, **options: Any) -> Any:
        with ModelServer(Says("Hi")) as server:
            base = base_url(server, api)
            async with client(base, api, Clock(), **options) as model:
                assert [e async for e in model.stream(HELLO)]
            return server.requests[0].headers

    assert asyncio.run(headers("openai", api_key=None))["authorization"] == "Bearer from-openai"
    assert asyncio.run(headers("anthropic", api_key=None))["x-api-key"] == "from-anthropic"
    assert "authorization" not in asyncio.run(headers("openai", api_key=""))


# ---- what cannot be used


@pytest.mark.parametrize(
    ("base_url", "message"),
    [
        ("localhost:8080/v1", "the base URL 'localhost:8080/v1' is not http or https"),
        ("ftp://host/v1", "the base URL 'ftp://host/v1' is not http or https"),
        ("", "the base URL '' is not http or https"),
        ("http://[::1/v1", "the base URL 'http://[::1/v1' is none"),
        ("https://me:pw@host/v1", "the base URL of 'host' holds a user or password"),
    ],
)
@pytest.mark.parametrize("kind", CLIENTS.values())
def test_an_address_that_cannot_be_used_is_refused(
    kind: type[AnyClient], base_url: str, message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        kind("any", base_url=base_url)

    assert caught.value.message == message
    assert caught.value.hint


@pytest.mark.parametrize("kind", CLIENTS.values())
def test_a_key_that_cannot_be_sent_is_refused_unseen(kind: type[AnyClient]) -> None:
    for key in ("abc\ndef", "schlüssel"):
        with pytest.raises(ConfigError) as caught:
            kind("any", api_key=key)
        assert caught.value.message == "the API key holds a character that cannot be sent"


@pytest.mark.parametrize(
    ("kind", "base_url", "url"),
    [
        (OpenAIChat, "http://h/v1/", "http://h/v1/chat/completions"),
        (OpenAIChat, "http://h/v1/chat/completions", "http://h/v1/chat/completions"),
        (OpenAIChat, "http://h/c", "http://h/c/chat/completions"),
        (OpenAIChat, "https://h/x?api-version=1", "https://h/x/chat/completions"),
        (OpenAIResponses, "http://h/v1/", "http://h/v1/responses"),
        (OpenAIResponses, "http://h/v1/responses", "http://h/v1/responses"),
        (Anthropic, "https://h", "https://h/v1/messages"),
        (Anthropic, "https://h/v1/", "https://h/v1/messages"),
        (Anthropic, "https://h/anthropic", "https://h/anthropic/v1/messages"),
    ],
)
def test_addresses_are_taken_as_people_write_them(
    kind: type[AnyClient], base_url: str, url: str
) -> None:
    assert repr(kind("any", base_url=base_url)) == f"{kind.__name__}('any', at {url!r})"


def test_a_query_in_the_address_is_sent_along() -> None:
    async def main() -> str:
        with ModelServer(Says("Hi")) as server:
            base = f"{server.url}/openai/deployments/x?api-version=1"
            async with OpenAIChat("any", base_url=base, api_key="") as model:
                assert [e async for e in model.stream(HELLO)]
            return server.requests[0].path

    assert asyncio.run(main()) == "/openai/deployments/x/chat/completions?api-version=1"


def python(code: str) -> str:
    command = [sys.executable, "-c", code]
    return subprocess.check_output(command, text=True, timeout=60).strip()


@pytest.mark.parametrize("name", ["OpenAIChat", "OpenAIResponses", "Anthropic"])
def test_without_the_extra_a_client_says_what_to_install(name: str) -> None:
    code = f"""
import sys
sys.modules["httpx2"] = None
from toolfold.errors import MissingExtraError
from toolfold.runtime.clients import {name}
try:
    {name}("any")
except MissingExtraError as error:
    print(error.message, error.hint, error, sep="|")
"""

    who = name.removesuffix("Chat").removesuffix("Responses")
    what = f"the {who} client needs the `agent` extra"
    hint = "install it with `pip install 'toolfold[agent]'`"
    assert python(code) == f"{what}|{hint}|{what}; {hint}"


def test_importing_the_clients_imports_no_http_library() -> None:
    code = "import sys, toolfold.runtime.clients; print('httpx2' in sys.modules)"

    assert python(code) == "False"
