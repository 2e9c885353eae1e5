"""A document at an address is asked for again; the last one that can be used stays."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import httpx2
import pytest

from support.apis import Answers, document, operation
from support.gateways import until
from support.running import wait
from toolfold.sources.calls import CallContext, PendingCall
from toolfold.sources.openapi import ClientCredentials, HttpApi, OpenAPISource

JSON = {"content-type": "application/json"}
PLACE = "/openapi.json"


def text_of(*paths: str, **more: Any) -> bytes:
    own = {p: {"get": operation(operationId=p.strip("/"))} for p in paths}
    return json.dumps(document(own, **more)).encode()


def served(answers: Answers, content: bytes, status: int = 200, **headers: str) -> None:
    kept = {name.replace("_", "-"): value for name, value in headers.items()}
    answers.by_target[PLACE] = (status, {**JSON, **kept}, content)


def refreshed(answers: Answers, refresh: float = 0.01, **api: Any) -> OpenAPISource:
    return OpenAPISource(
        HttpApi("api", url=f"http://api.test{PLACE}", refresh=refresh, **api),
        transport=httpx2.ASGITransport(app=answers),
        retries=(0.01,),
    )


def names(source: OpenAPISource) -> list[str]:
    return [tool.name for tool in source.tools()]


def test_a_document_that_changed_makes_other_tools_and_those_that_stayed_are_the_same_objects() -> (
    None
):
    answers = Answers()
    served(answers, text_of("/a", "/b"))
    source = refreshed(answers)

    async def main() -> None:
        heard = asyncio.Event()
        async with source:
            source.on_change(heard.set)
            kept = source.tools()[0]
            served(answers, text_of("/a", "/c"))
            await heard.wait()
            assert names(source) == ["api__a", "api__c"]
            assert source.tools()[0] is kept

    wait(main())


def test_what_has_not_changed_is_asked_for_with_conditions_and_tells_nobody() -> None:
    answers = Answers()
    served(answers, text_of("/a"), etag='"v1"', last_modified="Mon, 16 Nov 2026 10:00:00 GMT")
    source = refreshed(answers)

    async def main() -> None:
        heard: list[str] = []
        async with source:
            source.on_change(lambda: heard.append("changed"))
            tools = source.tools()
            served(answers, b"", 304)
            await until(lambda: len(answers.asked) >= 3)
            assert heard == [] and source.tools() is tools and source.notes == ()

    wait(main())
    assert "if-none-match" not in answers.asked[0].headers
    assert answers.asked[1].headers["if-none-match"] == '"v1"'
    assert answers.asked[1].headers["if-modified-since"] == "Mon, 16 Nov 2026 10:00:00 GMT"


@pytest.mark.parametrize(
    ("status", "content", "told"),
    [
        (503, b"", "its address answers 503"),
        (200, b'{"swagger": "2.0"}', "it is Swagger 2.0"),
        (200, b"{", "line 1"),
        (200, json.dumps(document({})).encode(), "there is no operation"),
    ],
)
def test_the_last_good_document_stays_while_no_other_can_be_had_and_that_is_said_once(
    status: int, content: bytes, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    answers = Answers()
    served(answers, text_of("/a"), etag='"v1"')
    source = refreshed(answers)

    async def main() -> None:
        async with source:
            served(answers, content, status)
            await until(lambda: source.notes and len(answers.asked) >= 4)
            (note,) = source.notes
            assert note.startswith("openapi api: the last document is used, since: ")
            assert told in note and names(source) == ["api__a"] and source.problem is None
            (tool,) = source.tools()
            context = CallContext(PendingCall(tool, {}), lambda *_: None)
            assert (await source.call(tool, {}, context)).text == "{}"
            # The good one has not changed since.
            served(answers, b"", 304)
            await until(lambda: source.notes == ())

    wait(main())
    assert len([r for r in caplog.records if "the last document is used" in r.message]) == 1
    asked = [a for a in answers.asked[1:] if a.target == PLACE]
    assert {a.headers["if-none-match"] for a in asked} == {'"v1"'}


def test_zero_asks_once() -> None:
    answers = Answers()
    served(answers, text_of("/a"))
    source = refreshed(answers, refresh=0)

    async def main() -> None:
        async with source:
            for _ in range(20):
                await asyncio.sleep(0)

    wait(main())
    wait(main())
    assert len(answers.asked) == 1


def test_an_open_source_asks_no_more_when_it_is_closed() -> None:
    answers = Answers()
    served(answers, text_of("/a"))
    source = refreshed(answers)

    async def main() -> int:
        async with source:
            await until(lambda: len(answers.asked) >= 2)
        asked = len(answers.asked)
        for _ in range(20):
            await asyncio.sleep(0)
        return asked

    assert wait(main()) == len(answers.asked)


def test_a_document_that_moves_the_token_server_is_not_taken() -> None:
    def flows(host: str) -> dict[str, Any]:
        flow = {"tokenUrl": f"https://{host}/token", "scopes": {}}
        scheme = {"type": "oauth2", "flows": {"clientCredentials": flow}}
        return {"components": {"securitySchemes": {"OAuth": scheme}}}

    answers = Answers()
    served(answers, text_of("/a", **flows("login.example.org")))
    client = ClientCredentials(token_url="document", client_id="me", client_secret="s3cret")
    source = refreshed(answers, auth={"OAuth": client})

    async def main() -> None:
        async with source:
            served(answers, text_of("/a", "/b", **flows("evil.example.org")))
            await until(lambda: source.notes)
            assert "would ask for tokens at another address" in source.notes[0]
            assert names(source) == ["api__a"]

    wait(main())
