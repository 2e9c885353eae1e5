"""The audit holds more than calls: resources, prompts, and names that came to nothing."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest
from mcp.shared.exceptions import MCPError

from support.gateways import Seen, client, gateway, odd, run, said
from toolfold.scope import Scope
from toolfold.serve.catalog import session_servers
from toolfold.serve.observe.audit import AuditLog
from toolfold.serve.principals import Principal


def test_resources_prompts_and_refused_names_are_in_the_audit(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.jsonl")
    narrow = Principal("narrow", Scope(allow=("one__echo",)))

    async def main() -> None:
        async with (
            gateway(odd("one"), odd("two"), observers=(Seen(), log)) as made,
            client(made) as c,
            client(made, "legacy", narrow) as other,
        ):
            uri = str((await c.list_resources()).resources[0].uri)
            await c.read_resource(uri)
            prompt = (await c.list_prompts()).prompts[0].name
            await c.get_prompt(prompt, {"who": "you"})
            for fails in (
                c.read_resource("no://such/thing"),
                c.get_prompt("no_such_prompt"),
                c.call_tool("one__no_such_tool", {"password": "hunter2"}),
                other.call_tool("one__slow", {"x": "1"}),
            ):
                with suppress(MCPError):
                    await fails
            await c.call_tool("one__echo", {"x": "a"})

    run(main)
    log.close()
    text = (tmp_path / "audit.jsonl").read_text("utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    assert [(e["via"], e["outcome"], e["principal"]) for e in lines] == [
        ("resource", "ok", "local"),
        ("prompt", "ok", "local"),
        ("resource", "refused", "local"),
        ("prompt", "refused", "local"),
        ("direct", "refused", "local"),
        ("direct", "refused", "narrow"),
        ("direct", "ok", "local"),
    ]
    assert [e["tool"] for e in lines[2:6]] == [
        "no://such/thing", "no_such_prompt", "one__no_such_tool", "one__slow",
    ]  # fmt: skip
    assert lines[0]["server"] == lines[1]["server"] == "one"
    assert lines[0]["result_size"] > 0
    assert "hunter2" not in text


def test_a_client_for_whom_there_is_no_server_left_is_in_the_audit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(session_servers, "OWN_AT_MOST", 1)
    log = AuditLog(tmp_path / "audit.jsonl")

    async def main() -> None:
        async with (
            gateway(odd("one", per_session=True), observers=(log,)) as made,
            client(made) as first,
            client(made) as second,
        ):
            await first.call_tool("one__echo", {"x": "a"})
            for _ in range(2):
                refused = await second.call_tool("one__echo", {"x": "b"})
                assert refused.is_error
                assert "serves too many clients already" in said(refused)
            with pytest.raises(MCPError, match="serves too many clients already"):
                await second.read_resource((await second.list_resources()).resources[0].uri)

    run(main)
    log.close()
    lines = [json.loads(x) for x in (tmp_path / "audit.jsonl").read_text("utf-8").splitlines()]
    assert [(e["tool"], e["outcome"]) for e in lines[:3]] == [
        ("one__echo", "ok"),
        ("one__echo", "refused"),
        ("one__echo", "refused"),
    ]
    assert all("too many clients" in e["error"] for e in lines[1:])
    assert (lines[3]["via"], lines[3]["outcome"]) == ("resource", "failed")
    assert caplog.text.count("there are 1 servers for single clients: no more") == 1


def test_one_token_cannot_take_all_servers_for_single_clients(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session_servers, "OWN_OF_A_TOKEN_AT_MOST", 1)
    greedy, other = Principal("greedy"), Principal("other")

    async def main() -> None:
        async with (
            gateway(odd("one", per_session=True)) as made,
            client(made, who=greedy) as first,
            client(made, who=greedy) as second,
            client(made, who=other) as third,
        ):
            await first.call_tool("one__echo", {"x": "a"})
            assert said(await second.call_tool("one__echo", {"x": "b"})) == (
                "one__echo failed: the server 'one' serves 1 conversations of this token already. "
                "It was not run. Tell the user, or go on without it."
            )
            assert said(await third.call_tool("one__echo", {"x": "c"})) == "one:c"

    run(main)


def test_a_line_names_the_tenant_where_it_is_anybodys_in_particular(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.jsonl")
    acme = Principal("ada", tenant="acme")

    async def main() -> None:
        async with (
            gateway(odd("one"), observers=(Seen(), log)) as made,
            client(made) as c,
            client(made, "legacy", acme) as other,
        ):
            for each in (c, other):
                await each.call_tool("one__echo", {"x": "a"})
                await each.call_tool("one__no_such_tool", {})
                await each.read_resource(str((await each.list_resources()).resources[0].uri))

    run(main)
    log.close()
    lines = (tmp_path / "audit.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line).get("tenant") for line in lines] == [None] * 3 + ["acme"] * 3
