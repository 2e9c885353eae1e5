"""Who may ask the gateway over HTTP, what exists for them, and how much they may ask."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.running import wait
from toolfold import ConfigError, Scope, Tool
from toolfold.config.serve_settings import ServeSettings, Token
from toolfold.serve.http.guard import Guard, Hosts, Origins, check_bind, is_loopback
from toolfold.serve.http.rate_limit import Bucket, Rates, TooLargeError, read_within
from toolfold.serve.principals import (
    LOCAL,
    NOBODY,
    Principal,
    TokenTable,
    local_principal,
    principal_of,
)

SECRET = "a-token-of-some-length"
OTHER = "another-token-of-some-length"
READ = {"readOnlyHint": True}

GET = Tool("github__get_issue", source="github", annotations=READ)
PUSH = Tool("github__push", source="github")
PAY = Tool("bank__pay", source="bank", annotations={"destructiveHint": True})


def digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


# ---- principals


def test_a_principal_knows_only_the_tools_of_its_scope() -> None:
    reader = Principal("reader", Scope(allow=("@github",), deny=("*push*",)))

    assert [tool.name for tool in (GET, PUSH, PAY) if reader.admits(tool)] == ["github__get_issue"]


def test_the_local_one_knows_everything_and_nobody_nothing() -> None:
    assert all(LOCAL.admits(tool) for tool in (GET, PUSH, PAY))
    assert not any(NOBODY.admits(tool) for tool in (GET, PUSH, PAY))


@pytest.mark.parametrize("hint", [False, None, 1, "true", "yes", [True], {"a": True}])
def test_read_only_takes_nothing_for_the_hint_but_true(hint: Any) -> None:
    tool = Tool("a", annotations={"readOnlyHint": hint})

    assert not Principal("reader", read_only=True).admits(tool)


@given(
    annotations=st.dictionaries(
        st.sampled_from(["readOnlyHint", "destructiveHint", "idempotentHint", "x"]),
        st.none() | st.booleans() | st.integers(0, 1) | st.text(max_size=4),
    ),
    allow=st.lists(st.sampled_from(["*", "a*", "@s", "b"]), max_size=2),
)
def test_a_read_only_principal_never_admits_a_tool_without_the_hint(
    annotations: dict[str, Any], allow: list[str]
) -> None:
    tool = Tool("ab", source="s", annotations=annotations)
    principal = Principal("reader", Scope(tuple(allow)), read_only=True)

    if principal.admits(tool):
        assert annotations["readOnlyHint"] is True
        assert tool in principal.scope


def test_whoever_came_through_no_door_is_nobody() -> None:
    assert principal_of({"type": "http", "user": "root"}) is NOBODY
    assert principal_of({"toolfold.principal": "local"}) is NOBODY


# ---- tokens


def test_a_token_stands_in_the_environment_or_as_its_digest() -> None:
    hexadecimal = digest(OTHER).hex()
    settings = ServeSettings(
        tokens=(
            Token(name="laptop", env="LAPTOP_TOKEN", allow=("@github",), rate_limit=5),
            Token(name="build", sha256=f"sha256:{hexadecimal}", read_only=True),
        ),
        rate_limit=60,
    )
    keeper = TokenTable.of(settings, {"LAPTOP_TOKEN": f"{SECRET}\n"})

    assert keeper.admit(SECRET) == Principal("laptop", Scope(("@github",)), rate_limit=5)
    assert keeper.admit(OTHER) == Principal("build", read_only=True, rate_limit=60)
    assert keeper.admit(hexadecimal) is None
    assert keeper.admit("") is None
    assert keeper.admit("x" * 1_000_000) is None
    assert repr(keeper) == "TokenTable(['laptop', 'build'])"


def test_read_only_for_everybody_holds_for_every_token_and_for_the_local_one() -> None:
    settings = ServeSettings(tokens=(Token(name="a", env="A"),), read_only=True)

    admitted = TokenTable.of(settings, {"A": SECRET}).admit(SECRET)

    assert admitted is not None and admitted.read_only
    assert local_principal(settings).read_only


@pytest.mark.parametrize(
    ("environment", "message", "hint"),
    [
        (
            {},
            "the token 'a' is to be in the variable 'A_TOKEN', which is not set",
            "set it, for example with `export A_TOKEN=$(openssl rand -hex 32)`",
        ),
        (
            {"A_TOKEN": "short"},
            "the token 'a' in 'A_TOKEN' has 5 characters",
            "use at least 16, for example from `openssl rand -hex 32`",
        ),
    ],
)
def test_a_missing_or_weak_token_is_refused_with_the_fix(
    environment: dict[str, str], message: str, hint: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        TokenTable.of(ServeSettings(tokens=(Token(name="a", env="A_TOKEN"),)), environment)

    assert caught.value.message == message
    assert caught.value.hint == hint


def test_two_with_the_same_token_are_refused() -> None:
    tokens = (Token(name="a", env="A"), Token(name="b", env="B"))

    with pytest.raises(ConfigError) as caught:
        TokenTable.of(ServeSettings(tokens=tokens), {"A": SECRET, "B": SECRET})

    assert caught.value.message == "the tokens 'a' and 'b' are the same"
    assert SECRET not in caught.value.message


def test_a_token_cannot_take_the_name_of_the_local_one() -> None:
    with pytest.raises(ConfigError):
        TokenTable.of(ServeSettings(tokens=(Token(name="local", env="A"),)), {"A": SECRET})


@given(presented=st.text(max_size=40))
@example(SECRET)
@example(SECRET + " ")
@example(SECRET[:-1])
@example("\ud800")
def test_only_the_very_token_is_admitted(presented: str) -> None:
    keeper = TokenTable([(digest(SECRET), Principal("a"))])

    assert (keeper.admit(presented) is not None) == (presented == SECRET)


def test_every_token_is_compared_whether_one_was_found_or_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import hmac

    compared: list[bytes] = []
    real = hmac.compare_digest

    def counting(a: bytes, b: bytes) -> bool:
        compared.append(b)
        return real(a, b)

    monkeypatch.setattr(hmac, "compare_digest", counting)
    keeper = TokenTable((digest(f"{i}{SECRET}"), Principal(str(i))) for i in range(5))

    assert keeper.admit(f"0{SECRET}") is not None
    assert keeper.admit("none of them at all") is None
    assert len(compared) == 10


# ---- the door


@dataclass
class Answer:
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""


@dataclass
class Behind:
    """What stands behind the door in these tests: it remembers who came, and how much."""

    who: list[Principal] = field(default_factory=list[Principal])
    bodies: list[bytes] = field(default_factory=list[bytes])

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        self.who.append(principal_of(scope))
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        self.bodies.append(body)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"in"})


def door(app: Any = None, *, host: str = "127.0.0.1", clock: Any = None, **settings: Any) -> Guard:
    """A door with two tokens: `a` for everything, `b` for GitHub."""
    serve = ServeSettings(**settings)
    keeper = TokenTable(
        [
            (digest(SECRET), Principal("a", rate_limit=serve.rate_limit, watches=True)),
            (digest(OTHER), Principal("b", Scope(("@github",)), rate_limit=serve.rate_limit)),
        ]
    )
    return Guard(
        app or Behind(),
        keeper,
        hosts=Hosts(host, serve.allowed_hosts),
        origins=Origins(serve.allowed_origins),
        local=local_principal(serve),
        body_limit=serve.body_limit,
        rates=Rates(clock) if clock else None,
    )


def ask(
    target: Guard,
    method: str = "POST",
    path: str = "/mcp",
    *,
    token: str | None = SECRET,
    headers: Mapping[str, str] | None = None,
    chunks: Iterable[bytes] = (b"{}",),
    more: Iterable[tuple[bytes, bytes]] = (),
) -> Answer:
    answer = Answer()
    given = {"host": "127.0.0.1:8000", **(headers or {})}
    if token is not None:
        given.setdefault("authorization", f"Bearer {token}")
    parts = chunks if isinstance(chunks, list) else list(chunks)
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "server": ("127.0.0.1", 8000),
        "client": ("127.0.0.1", 5),
        "headers": [*((k.encode(), v.encode("latin-1")) for k, v in given.items()), *more],
    }

    async def receive() -> dict[str, Any]:
        body = parts.pop(0) if parts else b""
        return {"type": "http.request", "body": body, "more_body": bool(parts)}

    async def send(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            answer.status = message["status"]
            answer.headers = {k.decode(): v.decode("latin-1") for k, v in message["headers"]}
        else:
            answer.body += message.get("body", b"")

    wait(target(scope, receive, send))
    return answer


def test_a_known_token_opens_and_the_handler_learns_whose_it_is() -> None:
    behind = Behind()

    assert ask(door(behind)).body == b"in"
    assert ask(door(behind), token=OTHER).status == 200
    assert [principal.name for principal in behind.who] == ["a", "b"]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": ""},
        {"authorization": "Bearer"},
        {"authorization": "Bearer wrong-token-of-some-length"},
        {"authorization": f"Basic {SECRET}"},
        {"authorization": SECRET},
        {"authorization": f"Bearer {SECRET}x"},
    ],
)
@pytest.mark.parametrize("path", ["/mcp", "/metrics", "/", "/nothing"])
def test_without_a_known_token_every_path_answers_the_same(
    path: str, headers: dict[str, str]
) -> None:
    behind = Behind()

    answer = ask(door(behind), path=path, token=None, headers=headers)

    assert (answer.status, answer.body) == (401, b"a token is needed\n")
    assert answer.headers["www-authenticate"] == "Bearer"
    assert behind.who == []


def test_two_authorization_headers_are_none() -> None:
    second = [(b"authorization", f"Bearer {OTHER}".encode())]

    assert ask(door(), more=second).status == 401


def test_without_tokens_everybody_is_the_local_one() -> None:
    behind = Behind()
    target = Guard.of(behind, ServeSettings(read_only=True), "127.0.0.1")

    assert ask(target, token=None).status == 200
    assert behind.who == [Principal("local", read_only=True, watches=True)]


def test_an_address_that_others_reach_needs_tokens() -> None:
    with pytest.raises(ConfigError) as caught:
        Guard.of(Behind(), ServeSettings(), "0.0.0.0")

    served = "without tokens, '0.0.0.0' would serve everybody who can reach it"
    assert caught.value.message == served
    assert caught.value.hint == "add `tokens` under `serve`, or bind to 127.0.0.1"
    check_bind("127.0.0.1", ServeSettings())
    check_bind("::1", ServeSettings())
    check_bind("localhost", ServeSettings())
    check_bind("0.0.0.0", ServeSettings(tokens=(Token(name="a", env="A"),)))


def test_health_is_open_to_everybody_and_metrics_only_to_those_who_see_everything() -> None:
    target = door()

    assert ask(target, "GET", "/healthz", token=None, headers={"host": "10.0.0.7"}).status == 200
    assert ask(target, "GET", "/metrics").status == 200
    hidden = ask(target, "GET", "/metrics", token=OTHER)
    assert (hidden.status, hidden.body) == (404, b"not found\n")


def test_a_client_that_looks_for_a_way_to_log_in_is_told_there_is_none() -> None:
    path = "/.well-known/oauth-protected-resource/mcp"

    assert ask(door(), "GET", path, token=None).status == 404


# ---- hosts and origins


@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST:8000", "127.0.0.1:8000", "127.0.0.2", "[::1]:8000", "app.localhost"],
)
def test_loopback_names_are_served(host: str) -> None:
    assert ask(door(), headers={"host": host}).status == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8000",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "evil-localhost",
        "localhost:8000@evil.example",
        "[::1",
        "[::1]evil",
        "localhost:x",
        "10.0.0.1",
        "",
        ":8000",
    ],
)
def test_a_name_that_somebody_pointed_here_is_refused_before_the_token_is_looked_at(
    host: str,
) -> None:
    for token in (SECRET, None):
        answer = ask(door(), token=token, headers={"host": host})
        assert (answer.status, answer.body) == (421, b"this host is not served here\n")


def test_a_missing_and_a_doubled_host_are_refused() -> None:
    assert ask(door(), more=[(b"host", b"localhost")]).status == 421
    assert not Hosts("127.0.0.1").admit("")


def test_more_hosts_can_be_allowed_with_a_port_or_all_below_a_name() -> None:
    hosts = Hosts("10.0.0.5", ["gateway.example", "other.example:444", "*.tail.example"])

    admitted = ["10.0.0.5:80", "gateway.example:1", "GATEWAY.example.", "other.example:444",
                "a.b.tail.example", "localhost"]  # fmt: skip
    refused = ["other.example", "other.example:445", "tail.example", "xgateway.example", "10.0.0.6",
               "evil/a.tail.example", "evil@a.tail.example", "evil a.tail.example"]  # fmt: skip
    assert [host for host in admitted + refused if hosts.admit(host)] == admitted


def test_bound_to_every_address_any_address_is_served_and_no_name() -> None:
    for bound in ("0.0.0.0", "::"):
        hosts = Hosts(bound)
        assert hosts.admit("192.168.1.7:8000") and hosts.admit("[fe80::1]:8000")
        assert not hosts.admit("evil.example")


@given(
    st.text(max_size=30)
    | st.lists(
        st.sampled_from(["localhost", "[", "]", "::1", ":", "1", ".", "@", "evil", "/"])
    ).map("".join)
)
@example("localhost\x00.evil")
@example("localhost .evil")
def test_a_host_that_is_served_is_an_own_name(header: str) -> None:
    if Hosts("gateway.example").admit(header):
        name = urlsplit(f"//{header.strip()}").hostname or ""
        assert name.removesuffix(".") == "gateway.example" or is_loopback(name.removesuffix("."))


def test_a_request_without_an_origin_or_from_an_own_page_passes() -> None:
    pages: dict[str, Any] = {"allowed_origins": ["https://app.example"]}

    for origin in ("http://localhost:8000", "http://127.0.0.1:8000", "https://APP.example:443"):
        answer = ask(door(**pages), headers={"origin": origin})
        assert answer.status == 200
        assert answer.headers["access-control-allow-origin"] == origin


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "http://evil.example",
        "http://localhost:9000",
        "http://localhost",
        "http://app.example",
        "https://app.example:444",
        "https://app.example.evil",
        "https://evil@app.example",
        "https://app.example/path",
        "file://",
        "chrome-extension://abc",
        "localhost:8000",
    ],
)
def test_a_page_from_elsewhere_may_not_ask(origin: str) -> None:
    answer = ask(door(allowed_origins=["https://app.example"]), headers={"origin": origin})

    assert (answer.status, answer.body) == (403, b"this origin may not ask\n")
    assert "access-control-allow-origin" not in answer.headers


def test_a_browser_may_ask_beforehand_without_a_token() -> None:
    target = door(allowed_origins=["https://app.example"])

    answer = ask(target, "OPTIONS", token=None, headers={"origin": "https://app.example"})
    refused = ask(target, "OPTIONS", token=None, headers={"origin": "https://evil.example"})

    assert (answer.status, refused.status) == (204, 403)
    assert "authorization" in answer.headers["access-control-allow-headers"]
    assert answer.headers["access-control-allow-origin"] == "https://app.example"


def test_refusals_are_logged_once_for_each_and_counted_every_time(
    caplog: pytest.LogCaptureFixture,
) -> None:
    reasons: list[str] = []
    settings = ServeSettings()
    target = Guard.of(Behind(), settings, "127.0.0.1", refused=reasons.append)

    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            ask(target, headers={"host": "evil.example\x1b[2J"})

    assert [record.getMessage() for record in caplog.records] == [
        "refused a request: host 'evil.example[2J', asked by 127.0.0.1"
    ]
    assert reasons == ["host"] * 3


def test_who_comes_without_a_token_is_logged_with_the_reason_and_the_address(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A", SECRET)
    settings = ServeSettings(tokens=(Token(name="a", env="A"),))
    target = Guard.of(Behind(), settings, "127.0.0.1")

    with caplog.at_level(logging.WARNING):
        ask(target, token=None)

    assert [record.getMessage() for record in caplog.records] == [
        "refused a request: a token is needed, asked by 127.0.0.1"
    ]


# ---- limits


def test_a_body_within_the_limit_arrives_whole_and_one_beyond_it_not_at_all() -> None:
    behind = Behind()
    target = door(behind, body_limit=1024)

    assert ask(target, chunks=[b"a" * 500, b"b" * 524]).status == 200
    assert behind.bodies == [b"a" * 500 + b"b" * 524]
    chunked = ask(target, chunks=[b"a" * 500, b"b" * 525])
    assert (chunked.status, chunked.body) == (413, b"a request may have 1024 bytes\n")
    for length in ("1025", "9" * 30, "9" * 10_000):
        declared = ask(target, headers={"content-length": length}, chunks=[b"{}"])
        assert declared.status == 413
    assert len(behind.bodies) == 1


def test_the_body_of_a_request_without_a_token_is_not_read() -> None:
    class Unread(list[bytes]):
        def pop(self, index: Any = -1, /) -> bytes:
            raise AssertionError("the body was read")

    assert ask(door(), token=None, chunks=Unread([b"{}"])).status == 401


@given(parts=st.lists(st.binary(max_size=30), max_size=8), limit=st.integers(0, 100))
def test_a_body_is_given_again_exactly_or_refused(parts: list[bytes], limit: int) -> None:
    left = list(parts) or [b""]

    async def receive() -> MutableMapping[str, Any]:
        body = left.pop(0)
        return {"type": "http.request", "body": body, "more_body": bool(left)}

    async def main() -> bytes | None:
        try:
            again = await read_within(receive, limit, None)
        except TooLargeError:
            return None
        body = b""
        while True:
            message = await again()
            body += message["body"]
            if not message["more_body"]:
                return body

    whole = b"".join(parts)
    assert wait(main()) == (whole if len(whole) <= limit else None)


def test_whoever_asks_too_often_is_told_when_to_come_back() -> None:
    now = [0]
    target = door(rate_limit=60, clock=lambda: now[0])

    answers = [ask(target).status for _ in range(12)]
    late = ask(target)
    others = ask(target, token=OTHER).status
    now[0] += 1_000_000_000
    again = [ask(target).status for _ in range(2)]

    assert answers == [200] * 10 + [429] * 2
    assert (late.headers["retry-after"], late.body) == ("1", b"too many requests\n")
    assert (others, again) == (200, [200, 429])


def test_streams_that_only_listen_are_not_counted() -> None:
    target = door(rate_limit=1, clock=lambda: 0)

    assert [ask(target, "GET").status for _ in range(5)] == [200] * 5


@given(
    per_minute=st.integers(1, 5_000),
    burst=st.integers(1, 50),
    steps=st.lists(st.integers(0, 3_000_000_000), max_size=80),
)
def test_no_window_ever_admits_more_than_burst_and_rate(
    per_minute: int, burst: int, steps: list[int]
) -> None:
    bucket, now, admitted = Bucket(per_minute, burst), 0, list[int]()
    for step in steps:
        now += step
        if bucket.take(now) == 0:
            admitted.append(now)

    for first in range(len(admitted)):
        for last in range(first, len(admitted)):
            window = admitted[last] - admitted[first]
            assert last - first + 1 <= burst + window * per_minute / 60e9


@given(per_minute=st.integers(1, 100_000), burst=st.integers(1, 20))
def test_whoever_asks_the_moment_they_may_gets_no_more_than_the_rate(
    per_minute: int, burst: int
) -> None:
    bucket, now, admitted = Bucket(per_minute, burst), 0, 0
    while admitted < 3_000:
        told = bucket.take(now)
        now += told
        admitted += not told

    assert admitted <= burst + now * per_minute / 60e9
    assert admitted >= now * per_minute / 60e9 * 0.999


@given(per_minute=st.integers(1, 10_000), tries=st.integers(1, 60))
def test_after_the_time_that_was_told_one_is_admitted(per_minute: int, tries: int) -> None:
    bucket, now = Bucket(per_minute, 3), 0
    for _ in range(tries):
        told = bucket.take(now)
        if told:
            now += told
            assert bucket.take(now) == 0


def test_no_limit_is_no_limit() -> None:
    assert [Rates(lambda: 0).take("a", 0) for _ in range(1000)] == [0] * 1000


def test_however_many_people_ask_only_those_who_asked_lately_are_kept() -> None:
    now = 0
    rates = Rates(lambda: now)
    for number in range(30_000):
        now += 100_000_000
        assert rates.take(f"oauth:{number}", 60) == 0
    assert rates.kept <= 10_000

    assert [rates.take("a", 60) for _ in range(10)] == [0] * 10
    assert rates.take("a", 60) > 0


# ---- with the protocol library behind the door


def test_a_session_belongs_to_the_token_that_opened_it() -> None:
    import httpx2
    from mcp.server.lowlevel import Server

    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    }
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}

    async def main() -> list[int]:
        inner = Server("behind").streamable_http_app()
        transport = httpx2.ASGITransport(door(inner))  # pyright: ignore[reportArgumentType]
        async with (
            inner.router.lifespan_context(inner),
            httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client,
        ):

            async def post(body: object, token: str, **more: str) -> httpx2.Response:
                accept = "application/json, text/event-stream"
                headers = {"authorization": f"Bearer {token}", "accept": accept, **more}
                return await client.post("/mcp", content=json.dumps(body), headers={
                    "content-type": "application/json", **headers})  # fmt: skip

            opened = await post(hello, SECRET)
            session = opened.headers["mcp-session-id"]
            key = {"mcp-session-id": session, "mcp-protocol-version": "2025-11-25"}
            own = await post(ping, SECRET, **key)
            theirs = await post(ping, OTHER, **key)
            nobodys = await post(ping, "no-token-at-all-of-ours", **key)
            return [opened.status_code, own.status_code, theirs.status_code, nobodys.status_code]

    assert wait(main(), 20) == [200, 200, 404, 401]
