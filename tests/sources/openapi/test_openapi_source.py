"""Calls of an API: what is sent along, what comes back, and what a model is told of it."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
from typing import Any

import httpx2
import pytest

from support.apis import BASE, Answers, called, document, operation, source_of
from support.outcomes import answered
from support.running import wait
from toolfold import ConfigError, fold
from toolfold.dispatch import Dispatch
from toolfold.runtime import Agent, ScriptedModel
from toolfold.sources.calls import PendingCall
from toolfold.sources.merged import Located
from toolfold.sources.openapi import HttpApi, OpenAPISource

KEY = "key-0123456789"
SCHEMES = {
    "header_key": {"type": "apiKey", "in": "header", "name": "X-Key"},
    "query_key": {"type": "apiKey", "in": "query", "name": "key"},
    "cookie_key": {"type": "apiKey", "in": "cookie", "name": "sid"},
    "token": {"type": "http", "scheme": "bearer"},
    "login": {"type": "http", "scheme": "basic"},
    "oauth": {"type": "oauth2", "flows": {}},
}
JSON = {"content-type": "application/json"}


def secured(*security: Any, **more: Any) -> dict[str, Any]:
    """Return a document with one operation that asks for credentials."""
    own = {"security": list(security)} if security else {}
    components = {"securitySchemes": SCHEMES}
    return document({"/a": {"get": operation(**own, **more)}}, components=components)


def asked_with(given: dict[str, Any], **auth: str) -> tuple[str, dict[str, str]]:
    answers = Answers()
    called(source_of(given, answers, auth=auth))
    (asked,) = answers.asked
    return asked.target, asked.headers


# ---- credentials


def test_each_kind_of_credential_goes_where_the_document_says() -> None:
    assert asked_with(secured({"header_key": []}), header_key=KEY)[1]["x-key"] == KEY
    assert asked_with(secured({"query_key": []}), query_key="a b")[0] == "/v1/a?key=a%20b"
    assert asked_with(secured({"cookie_key": []}), cookie_key=KEY)[1]["cookie"] == f"sid={KEY}"
    assert asked_with(secured({"token": []}), token=KEY)[1]["authorization"] == f"Bearer {KEY}"
    assert asked_with(secured({"oauth": ["x"]}), oauth=KEY)[1]["authorization"] == f"Bearer {KEY}"
    basic = asked_with(secured({"login": []}), login="me:pass word")[1]["authorization"]
    assert basic == "Basic bWU6cGFzcyB3b3Jk"


def test_an_operation_gets_the_first_alternative_that_there_is_and_nothing_else() -> None:
    given = secured({"token": [], "header_key": []}, {"login": []}, {"query_key": []})

    target, headers = asked_with(given, token=KEY, query_key="q", login="me:pw")

    assert target == "/v1/a"
    assert headers["authorization"].startswith("Basic ")
    assert "x-key" not in headers


def test_an_operation_that_wants_no_credentials_gets_none() -> None:
    given = secured(security=[])

    assert "authorization" not in asked_with(given, token=KEY)[1]


def test_a_document_that_says_nothing_gets_what_was_given() -> None:
    given = document({"/a": {"get": operation()}})

    assert asked_with(given, bearer=KEY)[1]["authorization"] == f"Bearer {KEY}"


def test_a_credential_for_no_scheme_is_an_error_that_names_those_there_are() -> None:
    with pytest.raises(ConfigError) as caught:
        source_of(secured({"token": []}), auth={"tokn": KEY})

    assert caught.value.message == "`openapi.api.auth.tokn` is no security scheme"
    assert caught.value.hint is not None and "`token`" in caught.value.hint
    assert KEY not in str(caught.value)


def test_no_model_is_asked_for_what_the_configuration_fills_in() -> None:
    parameters = [
        {"name": "key", "in": "query", "required": True, "schema": {}},
        {"name": "x-version", "in": "header", "schema": {}},
    ]
    given = document(
        {"/a": {"get": operation(*parameters)}}, components={"securitySchemes": SCHEMES}
    )

    source = source_of(given, auth={"query_key": KEY}, headers={"X-Version": "2"})

    assert source.tools()[0].parameters == {"type": "object", "properties": {}}


def test_a_credential_wins_over_what_a_model_writes_into_a_header() -> None:
    answers = Answers()
    own = {"name": "X-Tenant", "in": "header", "schema": {}}
    source = source_of(
        document({"/a": {"get": operation(own)}}), answers, headers={"X-Tenant": "me"}
    )

    called(source, **{"X-Tenant": "you"})

    assert answers.asked[0].headers["x-tenant"] == "me"


def test_no_log_and_no_result_shows_a_credential(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    echo = json.dumps({"you sent": KEY, "basic": "bWU6" + "c2VjcmV0LXBhc3M="}).encode()
    source = source_of(
        secured({"query_key": []}),
        Answers(body=echo),
        auth={"query_key": KEY, "login": "me:secret-pass"},
    )

    output = called(source)

    assert KEY not in caplog.text and KEY not in output.text and KEY not in str(output.value)
    assert output.value["you sent"] == "[redacted]"
    assert KEY not in repr(source) + repr(HttpApi("x", auth={"k": KEY}))


def test_a_credential_that_no_header_takes_is_refused_without_being_shown() -> None:
    for name in ("token", "header_key", "bearer"):
        with pytest.raises(ConfigError) as caught:
            source_of(secured({"token": []}), auth={name: "ключ-012345"})
        assert "ключ" not in str(caught.value)


def test_what_is_no_credential_stays_in_a_result() -> None:
    body = b'{"version": "2022-11-28", "key": "shown-only-to-us"}'
    headers = {"X-Version": "2022-11-28", "X-Api-Key": "shown-only-to-us"}

    output = called(
        source_of(document({"/a": {"get": operation()}}), Answers(body=body), headers=headers)
    )

    assert output.value == {"version": "2022-11-28", "key": "[redacted]"}


# ---- answers


def test_json_is_a_value_and_its_text() -> None:
    output = called(source_of(document({"/a": {"get": operation()}}), Answers(body=b'{"a": [1]}')))

    assert (output.text, output.value, output.is_error) == ('{"a": [1]}', {"a": [1]}, False)


@pytest.mark.parametrize(
    ("status", "headers", "body", "text"),
    [
        (204, {}, b"", "(Done: 204, no content.)"),
        (200, {"content-type": "text/plain; charset=iso-8859-1"}, b"gr\xfcn", "grün"),
        (200, {"content-type": "text/plain; charset=punycode"}, b"a-b", "a-b"),
        (
            200,
            {"content-type": "image/png"},
            b"\x89PNG" * 500,
            "[image/png, 2 kB: not shown, it is no text]",
        ),
        (200, {"content-type": "application/json"}, b"{not json", "{not json"),
    ],
)
def test_other_answers_are_texts(
    status: int, headers: dict[str, str], body: bytes, text: str
) -> None:
    output = called(
        source_of(document({"/a": {"get": operation()}}), Answers(status, headers, body))
    )

    assert (output.text, output.value, output.is_error) == (text, None, False)


def test_an_answer_is_read_to_its_bound_and_says_so() -> None:
    answers = Answers(body=json.dumps({"a": "x" * 5_000}).encode())

    output = called(
        source_of(document({"/a": {"get": operation()}}), answers, response_limit=1_000)
    )

    assert len(output.text) < 1_200
    assert output.text.endswith(
        "(Cut: the answer has more than 1,000 bytes. Ask for less, or for a page.)"
    )
    assert output.value is None


def test_a_packed_answer_is_bounded_by_what_it_unpacks_to() -> None:
    bomb = gzip.compress(b"x" * 50_000_000)
    answers = Answers(headers={**JSON, "content-encoding": "gzip"}, body=bomb)

    output = called(
        source_of(document({"/a": {"get": operation()}}), answers, response_limit=1_000)
    )

    assert len(output.text) < 1_200


def test_an_error_is_a_next_step() -> None:
    answers = Answers(400, JSON, b'{"detail": "age must be above 0"}')

    output = called(source_of(document({"/a": {"get": operation()}}), answers))

    assert output.is_error
    assert output.text == (
        "api__go failed with 400 Bad Request. "
        'The API says: {"detail": "age must be above 0"}\n'
        "Mend the arguments and call again."
    )


def test_an_api_that_is_tired_says_how_long_to_wait() -> None:
    answers = Answers(429, {"retry-after": "30"}, b"")

    assert called(source_of(document({"/a": {"get": operation()}}), answers)).text == (
        "api__go failed with 429 Too Many Requests. It asks to wait 30 seconds.\n"
        "Wait before you call again."
    )


def test_missing_credentials_name_the_key_that_a_person_has_to_set() -> None:
    source = source_of(secured({"token": []}, {"query_key": []}), Answers(401, {}, b""))

    assert called(source).text == (
        "api__go failed with 401 Unauthorized.\n"
        "No credentials are configured for it: the user has to set "
        "`openapi.api.auth.token` or `openapi.api.auth.query_key`."
    )


def test_credentials_that_do_not_do_are_no_missing_ones() -> None:
    source = source_of(secured({"token": []}), Answers(403, {}, b""), auth={"token": KEY})

    assert called(source).text.endswith(
        "The credentials do not allow it; only the user can change them."
    )


def test_a_long_error_is_cut_and_a_page_of_html_is_left_out() -> None:
    given = document({"/a": {"get": operation()}})
    long = called(source_of(given, Answers(500, {"content-type": "text/plain"}, b"x" * 90_000)))
    page = called(source_of(given, Answers(502, {"content-type": "text/html"}, b"<html>")))

    assert len(long.text) < 2_200
    assert page.text == "api__go failed with 502 Bad Gateway.\nIt may work later."


def test_an_answer_that_is_not_as_promised_is_withheld_where_schemas_are_on() -> None:
    schema = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
    responses = {"200": {"content": {"application/json": {"schema": schema}}}}
    given = document({"/a": {"get": operation(responses=responses)}})

    good = called(source_of(given, Answers(body=b'{"id": 7}'), output_schemas=True))
    bad = called(source_of(given, Answers(body=b'{"id": "x"}'), output_schemas=True))

    assert good.value == {"id": 7}
    assert bad.is_error and "not as its description promises" in bad.text


# ---- redirects


def test_a_redirect_to_another_host_is_not_followed() -> None:
    answers = Answers(302, {"location": "http://evil.example/x"}, b"")
    source = source_of(secured({"token": []}), answers, auth={"token": KEY})

    output = called(source)

    assert output.is_error
    assert output.text == (
        "api__go was redirected to evil.example (302), which is not followed. Tell the user."
    )
    assert len(answers.asked) == 1


def test_a_redirect_within_the_host_is_followed_with_its_credentials() -> None:
    answers = Answers(body=b'{"ok": true}')
    answers.by_target["/v1/a"] = (301, {"location": "/v2/a?b=c"}, b"")

    output = called(source_of(secured({"token": []}), answers, auth={"token": KEY}))

    assert output.value == {"ok": True}
    assert [(a.target, a.headers["authorization"]) for a in answers.asked] == [
        ("/v1/a", f"Bearer {KEY}"),
        ("/v2/a?b=c", f"Bearer {KEY}"),
    ]


def test_a_redirect_of_what_has_effects_is_not_repeated() -> None:
    answers = Answers(307, {"location": "/v2/a"}, b"")

    output = called(source_of(document({"/a": {"post": operation()}}), answers))

    assert output.is_error and len(answers.asked) == 1


def test_redirects_without_end_end() -> None:
    answers = Answers(302, {"location": "/v1/a"}, b"")

    assert called(source_of(document({"/a": {"get": operation()}}), answers)).is_error
    assert len(answers.asked) < 10


def test_cookies_that_an_api_sets_are_not_kept() -> None:
    answers = Answers(headers={**JSON, "set-cookie": "session=another; Path=/"})
    source = source_of(document({"/a": {"get": operation()}}), answers)

    called(source)
    called(source)

    assert ["cookie" in asked.headers for asked in answers.asked] == [False, False]


def test_a_source_that_nobody_opened_can_be_called_from_one_loop_after_another() -> None:
    source = source_of(document({"/a": {"get": operation()}}))
    (tool,) = source.tools()

    def once() -> str:
        done = Dispatch().run(PendingCall(tool, {}), Located(tool, source))
        return wait(done).output.text

    assert [once(), once()] == ["{}", "{}"]


# ---- no answer


class Broken(httpx2.AsyncBaseTransport):
    def __init__(self, error: Exception) -> None:
        self._error = error

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        raise self._error


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (httpx2.ConnectError("x"), "api__go got no answer: the API cannot be reached."),
        (
            httpx2.ReadTimeout("x"),
            "api__go got no answer: it did not answer in time. It may have had effects.",
        ),
        (
            httpx2.RemoteProtocolError("x"),
            "api__go got no answer: the connection broke. It may have had effects.",
        ),
    ],
)
def test_a_call_without_an_answer_says_whether_it_may_have_run(error: Exception, text: str) -> None:
    api = HttpApi("api", base_url=BASE)
    given = document({"/a": {"post": operation()}})
    source = OpenAPISource(api, document=given, transport=Broken(error))

    async def main() -> str:
        (tool,) = source.tools()
        async with source:
            done = await Dispatch().run(PendingCall(tool, {}), Located(tool, source))
        return done.output.text

    assert wait(main()) == text


def test_a_name_that_leads_into_a_private_network_is_not_gone_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def lookup(*_: object, **__: object) -> list[Any]:
        return [(2, 1, 6, "", ("10.0.0.7", 443))]

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", lookup)
    servers = [{"url": "https://rebound.example.org"}]
    source = OpenAPISource(
        HttpApi("api"), document=document({"/a": {"get": operation()}}, servers=servers)
    )

    async def main() -> str:
        (tool,) = source.tools()
        async with source:
            done = await Dispatch().run(PendingCall(tool, {}), Located(tool, source))
        return done.output.text

    assert wait(main()) == (
        "api__go got no answer: its name leads into a private network; name it as `base_url`."
    )


# ---- documents at an address


def at_an_address(
    answers: Answers, url: str = "http://api.test/openapi.json", **api: Any
) -> OpenAPISource:
    return OpenAPISource(
        HttpApi("api", url=url, **api), transport=httpx2.ASGITransport(app=answers)
    )


def test_a_document_at_an_address_is_fetched_when_the_source_is_opened() -> None:
    text = json.dumps(document({"/a": {"get": operation()}}, servers=[{"url": "/v9"}])).encode()
    answers = Answers()
    answers.by_target["/openapi.json"] = (200, JSON, text)
    source = at_an_address(answers, auth={"bearer": KEY})

    assert source.tools() == ()
    assert [(await_and_call(source).text), answers.asked[-1].target] == ["{}", "/v9/a"]
    assert "authorization" not in answers.asked[0].headers
    assert answers.asked[1].headers["authorization"] == f"Bearer {KEY}"


def await_and_call(source: OpenAPISource) -> Any:
    async def main() -> Any:
        async with source:
            (tool,) = source.tools()
            done = await Dispatch().run(PendingCall(tool, {}), Located(tool, source))
            return done.output

    return wait(main())


def test_a_document_at_an_address_may_name_no_other_host() -> None:
    text = json.dumps(
        document({"/a": {"get": operation()}}, servers=[{"url": "https://other.example.org"}])
    ).encode()
    answers = Answers(body=text)
    source = at_an_address(answers)

    async def main() -> str | None:
        async with source:
            return source.problem

    problem = wait(main())
    assert problem is not None and "another than the document's; name it as `base_url`" in problem


@pytest.mark.parametrize(
    ("answers", "cause"),
    [
        (Answers(404), "its address answers 404"),
        (
            Answers(302, {"location": "https://elsewhere.example/x"}, b""),
            "its address leads to the host elsewhere.example: give that one",
        ),
        (Answers(body=b"{}"), "its document cannot be used"),
    ],
)
def test_a_source_without_its_document_is_absent_and_says_when_it_is_tried_again(
    answers: Answers, cause: str
) -> None:
    source = at_an_address(answers)

    async def main() -> None:
        async with source:
            away = source.absence()
            assert away is not None and away.cause == cause
            assert away.retry_in is not None and 0 < away.retry_in <= 2
            assert source.tools() == ()

    wait(main())


def test_a_document_that_comes_late_is_told_of() -> None:
    answers = Answers(503)
    transport = httpx2.ASGITransport(app=answers)
    source = OpenAPISource(
        HttpApi("api", url="http://api.test/openapi.json"), transport=transport, retries=(0.01,)
    )

    async def main() -> None:
        heard = asyncio.Event()
        source.on_change(heard.set)
        async with source:
            assert source.tools() == ()
            answers.status = 200
            answers.body = json.dumps(document({"/a": {"get": operation()}})).encode()
            await heard.wait()
            assert len(source.tools()) == 1 and source.absence() is None

    wait(main())


# ---- with everything around


def test_an_agent_finds_an_operation_and_calls_it() -> None:
    answers = Answers(body=b'{"id": 7, "name": "Rex"}')
    paths = {f"/things{n}": {"get": {"operationId": f"list_things_{n}"}} for n in range(200)}
    pet = {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}
    paths["/pets/{id}"] = {"get": operation(pet, summary="Show a pet by its number")}
    source = source_of(document(paths), answers)
    folded = fold(source.tools(), context_length=32_000)

    found = answered(folded.resolve("tool_search", {"query": "show a pet"}))

    async def main() -> str:
        async with Agent(ScriptedModel([]), source) as agent:
            return (await agent.call("api__go", {"id": 7})).text

    assert folded.active
    assert "api__go(id: integer)" in found.text
    assert wait(main()) == '{"id": 7, "name": "Rex"}'
    assert answers.asked[0].target == "/v1/pets/7"
