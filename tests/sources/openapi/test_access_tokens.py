"""Access tokens of OAuth 2: fetched with client credentials, kept, renewed, never shown."""

from __future__ import annotations

import asyncio
import json
import logging
from base64 import b64decode
from collections.abc import MutableMapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

import httpx2
import pytest

from support.apis import BASE, Answers, Asked, Receive, Send, called, document, operation, source_of
from support.gateways import until
from support.running import wait
from toolfold import ConfigError
from toolfold.sources.calls import CallContext, Output, PendingCall
from toolfold.sources.openapi import ClientCredentials, OpenAPISource
from toolfold.sources.openapi._access_tokens import AccessTokens, NoTokenError
from toolfold.sources.source import SourceError

SECRET = "s3cret/with:odd+signs"
TOKEN_URL = "http://login.test/token"
CLIENT = ClientCredentials(token_url=TOKEN_URL, client_id="me@shop", client_secret=SECRET)
FLOW = {"clientCredentials": {"tokenUrl": "https://login.example.org/token", "scopes": {}}}
SCHEMES = {
    "OAuth": {"type": "oauth2", "flows": FLOW},
    "Key": {"type": "apiKey", "in": "header", "name": "X-Key"},
}


@dataclass
class TokenServer:
    """A token server and an API in one: tokens are counted, and only the newest is taken."""

    life: Any = 3_600
    status: int = 200
    said: dict[str, Any] = field(default_factory=dict[str, Any])
    location: str = ""
    takes: Any = None
    """The only token that the API takes; by default all."""
    given: int = 0
    gate: asyncio.Event | None = None
    asked: list[Asked] = field(default_factory=list[Asked])
    called: list[Asked] = field(default_factory=list[Asked])

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        body = (await receive()).get("body", b"")
        headers = {k.decode().lower(): v.decode() for k, v in scope["headers"]}
        asked = Asked(scope["method"], scope["raw_path"].decode(), headers, body)
        extra: list[tuple[bytes, bytes]] = []
        if headers["host"].startswith("login."):
            self.asked.append(asked)
            if self.gate is not None:
                await self.gate.wait()
            self.given += 1
            status, answer = (
                self.status,
                {
                    "access_token": f"token-number-{self.given}",
                    "token_type": "bearer",
                    "expires_in": self.life,
                    **self.said,
                },
            )
            extra = [(b"location", self.location.encode())] if self.location else []
        else:
            self.called.append(asked)
            is_taken = self.takes in (None, headers.get("authorization"))
            status, answer = 200 if is_taken else 401, {"you sent": headers.get("authorization")}
        pairs = [(b"content-type", b"application/json"), *extra]
        await send({"type": "http.response.start", "status": status, "headers": pairs})
        await send({"type": "http.response.body", "body": json.dumps(answer).encode()})


def shop(server: TokenServer, given: Any = None, **auth: Any) -> OpenAPISource:
    whole = given or document(
        {"/a": {"post": operation(security=[{"OAuth": []}])}},
        components={"securitySchemes": SCHEMES},
    )
    return source_of(whole, server, auth=auth or {"oauth2": CLIENT})  # type: ignore[arg-type]


def tokens(server: TokenServer, clock: list[float]) -> AccessTokens:
    transport = httpx2.ASGITransport(app=server)
    return AccessTokens(CLIENT, TOKEN_URL, transport=transport, clock=lambda: clock[0])


# ---- what is asked for, and where it goes


def test_a_token_is_asked_for_once_and_signs_every_call() -> None:
    server = TokenServer()
    source = shop(server)

    called(source)
    called(source)

    assert [asked.headers["authorization"] for asked in server.called] == [
        "Bearer token-number-1",
        "Bearer token-number-1",
    ]
    (asked,) = server.asked
    assert (asked.method, asked.target) == ("POST", "/token")
    assert dict(parse_qsl(asked.body.decode())) == {"grant_type": "client_credentials"}
    # As OAuth has it: both are encoded as in a form before they are put together.
    pair = b64decode(asked.headers["authorization"].removeprefix("Basic ")).decode()
    assert pair == "me%40shop:s3cret%2Fwith%3Aodd%2Bsigns"


def test_scopes_and_parameters_go_along_and_the_secret_in_the_body_where_that_is_said() -> None:
    server = TokenServer()
    client = ClientCredentials(
        token_url=TOKEN_URL,
        client_id="me",
        client_secret=SECRET,
        scopes=("read", "write"),
        send="body",
        parameters={"audience": "https://api.test"},
    )

    called(shop(server, OAuth=client))

    (asked,) = server.asked
    assert "authorization" not in asked.headers
    assert dict(parse_qsl(asked.body.decode())) == {
        "grant_type": "client_credentials",
        "scope": "read write",
        "audience": "https://api.test",
        "client_id": "me",
        "client_secret": SECRET,
    }


def test_an_operation_that_asks_for_another_scheme_gets_no_token() -> None:
    server = TokenServer()
    given = document(
        {"/a": {"get": operation(security=[{"Key": []}])}},
        components={"securitySchemes": SCHEMES},
    )

    called(shop(server, given, oauth2=CLIENT, Key="key-0123456"))

    assert server.asked == []
    assert "authorization" not in server.called[0].headers
    assert server.called[0].headers["x-key"] == "key-0123456"


def test_a_document_without_schemes_gets_the_token_with_every_call() -> None:
    server = TokenServer()

    called(shop(server, document({"/a": {"get": operation()}}), oauth2=CLIENT))

    assert server.called[0].headers["authorization"] == "Bearer token-number-1"


# ---- kept and renewed


def test_a_token_is_renewed_before_it_ends() -> None:
    server, clock = TokenServer(life=300), [1_000.0]
    own = tokens(server, clock)

    async def main() -> list[str]:
        seen: list[str] = []
        for at in (1_000.0, 1_239.0, 1_240.0, 1_300.0):
            clock[0] = at
            seen.append((await own.credential()).value)
        return seen

    assert wait(main()) == [f"Bearer token-number-{n}" for n in (1, 1, 2, 2)]


@pytest.mark.parametrize(
    ("life", "is_kept_until"), [(10, 8), ("300", 240), (None, 3_540), (-1, 3_540), (True, 3_540)]
)
def test_a_short_or_untold_life_is_kept_for_a_while(life: Any, is_kept_until: float) -> None:
    server, clock = TokenServer(life=life), [0.0]
    own = tokens(server, clock)

    async def main() -> None:
        for at in (0.0, is_kept_until - 0.5, is_kept_until + 0.5):
            clock[0] = at
            await own.credential()

    wait(main())
    assert server.given == 2


def test_many_calls_at_once_ask_for_one_token() -> None:
    server = TokenServer()
    source = shop(server)

    async def main() -> None:
        server.gate = asyncio.Event()
        (tool,) = source.tools()
        async with source:
            calls = [
                asyncio.create_task(
                    source.call(tool, {}, CallContext(PendingCall(tool, {}), lambda *_: None))
                )
                for _ in range(20)
            ]
            await until(lambda: server.asked)
            calls[0].cancel()  # who asked first gives up, and the others get theirs
            server.gate.set()
            await asyncio.wait(calls)

    wait(main())
    assert server.given == 1 and len(server.called) == 19


def test_a_token_that_is_refused_is_renewed_once_and_the_call_made_again() -> None:
    server, clock = TokenServer(), [0.0]
    own = tokens(server, clock)

    async def main() -> None:
        first = await own.credential()
        clock[0] = 60.0
        async with asyncio.TaskGroup() as group:
            both = [group.create_task(own.refused(first)) for _ in range(2)]
        second, same = (task.result() for task in both)
        assert second is not None and second.value == "Bearer token-number-2" and same == second
        # One that was just had is what there is: the API means something else.
        assert await own.refused(second) is None

    wait(main())
    assert server.given == 2


def test_a_call_that_is_answered_401_is_made_again_with_another_token_and_no_third_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("toolfold.sources.openapi._access_tokens.FRESH", 0.0)
    server = TokenServer()
    source = shop(server)
    called(source)

    server.takes = "Bearer token-number-2"
    well = called(source)
    server.takes = "nothing"
    badly = called(source)

    assert not well.is_error and badly.is_error and badly.text.startswith("api__go failed with 401")
    assert [len(server.called), server.given] == [5, 3]


# ---- nothing is shown, nothing goes elsewhere


def test_neither_token_nor_secret_stands_in_a_log_a_result_or_a_repr(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    server = TokenServer()
    source = shop(server)

    output = called(source)

    shown = caplog.text + output.text + str(output.value) + repr(source) + repr(CLIENT)
    assert "token-number-1" not in shown and SECRET not in shown
    assert output.value == {"you sent": "Bearer [redacted]"}


@pytest.mark.parametrize(
    ("server", "reason"),
    [
        (
            TokenServer(status=401, said={"error": "invalid_client", "error_description": SECRET}),
            "the token server answers 401: invalid_client: [redacted]",
        ),
        (
            TokenServer(status=307, location="http://login.test/other"),
            "the token server answers 307",
        ),
        (TokenServer(status=307, location="https://evil.test/"), "the token server answers 307"),
        (TokenServer(said={"access_token": 7}), "the token server answers without a token"),
        (TokenServer(said={"access_token": "a\r\nb"}), "the token server answers without a token"),
        (
            TokenServer(said={"token_type": "mac"}),
            "the token server gives a token of the kind 'mac'",
        ),
    ],
)
def test_without_a_token_nothing_is_sent_to_the_api_and_the_model_is_told(
    server: TokenServer, reason: str
) -> None:
    source = shop(server)

    with pytest.raises(SourceError) as caught:
        called(source)

    (tool,) = source.tools()
    assert isinstance(caught.value, NoTokenError) and str(caught.value) == reason
    assert caught.value.for_model(tool) == (
        f"api__go was not called: {reason}. Only the user can change how it signs in."
    )
    assert server.called == [] and len(server.asked) == 1


def test_a_token_server_that_is_away_is_asked_again_by_the_next_call() -> None:
    server = TokenServer(status=503)
    source = shop(server)

    with pytest.raises(NoTokenError):
        called(source)
    server.status = 200

    assert called(source) == Output(
        '{"you sent": "Bearer [redacted]"}', value={"you sent": "Bearer [redacted]"}
    )


# ---- the document's own address is a stranger's


def test_the_documents_token_address_is_taken_only_where_somebody_says_so() -> None:
    with pytest.raises(ConfigError) as caught:
        ClientCredentials(client_id="me", client_secret=SECRET)

    assert caught.value.message == "`token_url` is missing"
    own = ClientCredentials(token_url="document", client_id="me", client_secret=SECRET)
    server = TokenServer()

    # Its address is looked up before anything is sent, and this name leads nowhere here.
    with pytest.raises(ConfigError) as none:
        shop(server, document({"/a": {"get": operation()}}), oauth2=own)

    assert none.value.message == "`openapi.api.auth.oauth2`: the document names no address for it"
    called(shop(server, OAuth=own))
    assert server.asked[0].headers["host"] == "login.example.org"


@pytest.mark.parametrize(
    "url",
    [
        "http://login.example.org/token",
        "https://169.254.169.254/latest/meta-data",
        "https://localhost/token",
        "https://10.0.0.1/token",
        "file:///etc/passwd",
        "https://me:pw@login.example.org/token",
    ],
)
def test_a_documents_token_address_may_not_be_private_or_without_tls(url: str) -> None:
    flows = {"clientCredentials": {"tokenUrl": url, "scopes": {}}}
    given = document(
        {"/a": {"get": operation()}},
        components={"securitySchemes": {"OAuth": {"type": "oauth2", "flows": flows}}},
    )
    own = ClientCredentials(token_url="document", client_id="me", client_secret=SECRET)

    with pytest.raises(ConfigError) as caught:
        shop(TokenServer(), given, OAuth=own)

    assert caught.value.hint == "write the token server's address as `token_url`"


def test_the_apis_own_host_may_give_tokens_whatever_it_is() -> None:
    flows = {"clientCredentials": {"tokenUrl": "/v1/token", "scopes": {}}}
    given = document(
        {"/a": {"get": operation()}},
        components={"securitySchemes": {"OAuth": {"type": "oauth2", "flows": flows}}},
    )
    own = ClientCredentials(token_url="document", client_id="me", client_secret=SECRET)
    answers = Answers(body=b'{"access_token": "token-0123456"}')

    called(source_of(given, answers, auth={"OAuth": own}))

    assert BASE == "http://api.test/v1"
    assert [asked.target for asked in answers.asked] == ["/v1/token", "/v1/a"]


def test_client_credentials_for_a_scheme_that_takes_no_token_are_an_error() -> None:
    with pytest.raises(ConfigError) as caught:
        shop(TokenServer(), Key=CLIENT)

    assert (
        caught.value.message == "`openapi.api.auth.Key` is for a scheme that takes no access token"
    )
