"""What a reload permits that the configuration before did not: said, of every kind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from toolfold.config.gateway_config import GatewayConfig, load_gateway
from toolfold.serve.reload.differences import difference

DIGEST, OTHER = "a" * 64, "b" * 64
ISSUER = {
    "issuer": "https://login.example.com",
    "resource": "https://tools.example.com/mcp",
    "grants": [
        {"name": "all"},
        {"name": "some", "allow": ["@one"], "deny": ["*secret*"], "read_only": True},
    ],
}


def loaded(folder: Path, **blocks: Any) -> GatewayConfig:
    file = folder / "toolfold.json"
    usual: dict[str, Any] = {"mcpServers": {"one": {"command": "one"}}}
    file.write_text(json.dumps({**usual, **blocks}), "utf-8")
    return load_gateway(file, strict=False)


def token(**more: Any) -> dict[str, Any]:
    return {"serve": {"tokens": [{"name": "ci", "sha256": DIGEST, **more}]}}


def serve(**more: Any) -> dict[str, Any]:
    return {"serve": more}


def server(**more: Any) -> dict[str, Any]:
    return {"mcpServers": {"one": {"command": "one", **more}}}


def remote(**more: Any) -> dict[str, Any]:
    return {"mcpServers": {"one": {"url": "https://one.example/mcp", **more}}}


def api(**more: Any) -> dict[str, Any]:
    return {"openapi": {"pets": {"file": "pets.json", **more}}}


def profile(**more: Any) -> dict[str, Any]:
    return {"profiles": {"review": more}}


def oauth(**more: Any) -> dict[str, Any]:
    return {"serve": {"oauth": {**ISSUER, **more}}}


def granted(**more: Any) -> dict[str, Any]:
    return oauth(grants=[{"name": "some", **more}])


def folding(**more: Any) -> dict[str, Any]:
    return {"tools": {"tool_search": more}}


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ({}, server(disabled=True), None),
        (server(disabled=True), {}, "server 'one' is new"),
        (server(), server(command="two"), "server 'one' is reached otherwise (command)"),
        (server(), server(args=["-v"]), "server 'one' is reached otherwise (args)"),
        (server(), server(cwd="/srv"), "server 'one' is reached otherwise (cwd)"),
        (server(), server(timeout=5), None),
        (remote(), remote(oauth=True), "server 'one' is reached otherwise (oauth)"),
        (
            remote(oauth={"client_id": "me", "scopes": ["read"]}),
            remote(oauth={"client_id": "me", "scopes": ["read", "write"]}),
            "server 'one' is reached otherwise (oauth_scopes)",
        ),
        (server(deny=["x"]), server(), "server 'one' is no longer denied 'x'"),
        (server(allow=["x"]), server(), "server 'one' is allowed '*'"),
        (server(), server(allow=["x"]), None),
        (server(per_session=True), server(), "server 'one' is one for all sessions"),
        (
            server(),
            server(prefix=""),
            "server 'one' has other names for its tools, which patterns in `deny` may have meant",
        ),
        (server(result_limit=9), server(result_limit=10), "`result_limit` of server 'one' is 10"),
        (server(result_limit=9), server(), "`result_limit` of server 'one' is no limit"),
        (server(result_limit=9), server(result_limit=8), None),
        (api(response_limit=5000), api(), "`response_limit` of API 'pets' is 4000000"),
        (api(), api(deprecated=True), "API 'pets' has its deprecated operations"),
        (api(), api(base_url="https://b.example"), "API 'pets' is reached otherwise (base_url)"),
        ({}, token(), "token 'ci' is new"),
        (token(), token(sha256=OTHER), "token 'ci' is another one"),
        (token(allow=["@one"]), token(), "token 'ci' is allowed '*'"),
        (token(deny=["x"]), token(), "token 'ci' is no longer denied 'x'"),
        (token(read_only=True), token(), "token 'ci' is no longer read-only"),
        (token(), token(tenant="acme"), "token 'ci' is of the tenant 'acme'"),
        (token(rate_limit=5), token(rate_limit=6), "`rate_limit` of token 'ci' is 6"),
        (token(rate_limit=5), token(), "`rate_limit` of token 'ci' is no limit"),
        (token(rate_limit=5), token(rate_limit=4), None),
        (token(), token(rate_limit=4, read_only=True, deny=["x"]), None),
        (serve(rate_limit=5), serve(rate_limit=9), "`serve.rate_limit` is 9"),
        (serve(rate_limit=5), serve(), "`serve.rate_limit` is no limit"),
        (serve(rate_limit=5), serve(rate_limit=4), None),
        (serve(), serve(rate_limit=4), None),
        (serve(result_limit=5), serve(), "`serve.result_limit` is no limit"),
        (serve(), serve(body_limit=10**7), "`serve.body_limit` is 10000000"),
        (serve(), serve(request_timeout=60), "`serve.request_timeout` is 60.0"),
        (serve(read_only=True), serve(), "`serve.read_only` is off"),
        (serve(destructive="ask"), serve(), "`serve.destructive` is 'allow'"),
        (serve(), serve(allowed_hosts=["a.b"]), "`serve.allowed_hosts` has 'a.b'"),
        (serve(), serve(admin=f"sha256:{DIGEST}"), "`serve.admin` is on, or another token"),
        (serve(admin=f"sha256:{DIGEST}"), serve(), None),
        (
            token(),
            {},
            "there are no tokens any more: whoever reaches the address is let in",
        ),
        (
            oauth(),
            {},
            "there are no tokens any more: whoever reaches the address is let in",
        ),
        ({}, oauth(), "access tokens of 'https://login.example.com' are taken"),
        (
            oauth(),
            oauth(issuer="https://other.example.com"),
            "`serve.oauth.issuer` is 'https://other.example.com'",
        ),
        (oauth(), oauth(audience=["api://x"]), "`serve.oauth.audience` has 'api://x'"),
        (oauth(algorithms=["ES256"]), oauth(algorithms=["ES256", "RS256"]),
         "`serve.oauth.algorithms` has 'RS256'"),
        (oauth(), oauth(claims=["scope", "groups"]), "`serve.oauth.claims` has 'groups'"),
        (oauth(), oauth(default="some"), "`serve.oauth.default` is 'some'"),
        (oauth(default="some"), oauth(), None),
        (oauth(), oauth(tenant="org"), "`serve.oauth.tenant` is 'org'"),
        (oauth(), oauth(leeway=60), "`serve.oauth.leeway` is 60"),
        (oauth(), granted(allow=["@one"], deny=["*secret*"], read_only=True), None),
        (granted(), oauth(), "grant 'all' is new"),
        (granted(allow=["@one"]), granted(), "grant 'some' is allowed '*'"),
        (granted(deny=["x"]), granted(), "grant 'some' is no longer denied 'x'"),
        (granted(read_only=True), granted(), "grant 'some' is no longer read-only"),
        (
            oauth(),
            oauth(grants=[{"name": "all"}]),
            "grant 'some' is gone, and what it took from other grants with it",
        ),
        ({}, profile(), "profile 'review' is new"),
        (profile(servers=["one"]), profile(), "profile 'review' has all servers"),
        (profile(servers=[]), profile(servers=["one"]), "profile 'review' has 'one'"),
        (profile(read_only=True), profile(), "profile 'review' is no longer read-only"),
        (profile(deny=["x"]), profile(), "profile 'review' is no longer denied 'x'"),
        (
            {},
            folding(annotations={"one__*": {"readOnlyHint": True}}),
            "`annotations` says of 'one__*' that less can go wrong",
        ),
        (
            folding(annotations={"one__*": {"destructiveHint": True}}),
            {},
            "`annotations` says of 'one__*' that less can go wrong",
        ),
        ({}, folding(annotations={"one__*": {"readOnlyHint": False}}), None),
        (
            {},
            folding(reranker={"enabled": True, "endpoint": "http://localhost:1/v1/embeddings"}),
            "what is searched for is sent to 'http://localhost:1/v1/embeddings'",
        ),
    ],
)  # fmt: skip
def test_what_permits_more_is_said_and_what_permits_less_is_not(
    tmp_path: Path, before: dict[str, Any], after: dict[str, Any], said: str | None
) -> None:
    found = difference(loaded(tmp_path, **before), loaded(tmp_path, **after))

    assert found.widened == (() if said is None else (said,))
    assert found, "what is different is told, wider or not"


@pytest.mark.parametrize("known", [token(), oauth()], ids=["tokens", "an issuer"])
def test_whose_searches_count_is_settled_at_the_start_and_that_is_said(
    tmp_path: Path, known: dict[str, Any]
) -> None:
    open_door, told_apart = loaded(tmp_path), loaded(tmp_path, **known)

    assert (open_door.serve.knows_callers, told_apart.serve.knows_callers) == (False, True)
    found = difference(open_door, told_apart)
    assert found.needs_restart == ("tools.tool_search.memory.share",)
    assert difference(told_apart, told_apart).needs_restart == ()


def test_a_token_or_a_grant_that_is_for_more_profiles_is_said(tmp_path: Path) -> None:
    def limited(*names: str, is_limited: bool = True) -> GatewayConfig:
        own: dict[str, Any] = {"profiles": list(names)} if is_limited else {}
        blocks = {
            "profiles": {"a": {}, "b": {}},
            "serve": {
                "tokens": [{"name": "ci", "sha256": DIGEST, **own}],
                "oauth": {**ISSUER, "grants": [{"name": "all", **own}]},
            },
        }
        return loaded(tmp_path, **blocks)

    assert difference(limited("a"), limited("a", "b")).widened == (
        "token 'ci' may ask under 'b'",
        "grant 'all' may ask under 'b'",
    )
    assert difference(limited("a", "b"), limited("a")).widened == ()
    assert difference(limited("a"), limited(is_limited=False)).widened == (
        "token 'ci' is limited to no profiles any more",
        "grant 'all' is limited to no profiles any more",
    )


def test_of_a_profile_that_was_chosen_at_the_start_it_is_said_too(tmp_path: Path) -> None:
    def chosen(**more: Any) -> GatewayConfig:
        return loaded(tmp_path, **profile(**more)).under("review")

    narrower = difference(chosen(), chosen(deny=["*delete*"]))
    assert (narrower.profiles, narrower.widened) == (("review",), ())
    wider = difference(chosen(deny=["*delete*"]), chosen())
    assert wider.widened == ("profile 'review' is no longer denied '*delete*'",)
