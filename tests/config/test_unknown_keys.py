"""A key that nobody knows: an error in a file of ours, and wherever it is a slip of ours."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolfold import ConfigError, load_settings
from toolfold.config import Server, ServeSettings, load_gateway
from toolfold.settings._nearness import nearly
from toolfold.settings.declared import declared
from toolfold.setup.client_programs import CLIENTS, Launch

SERVERS = "mcpServers: {a: {command: x}}\n"


def written(folder: Path, text: str, name: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def refused(path: Path) -> tuple[str, str]:
    with pytest.raises(ConfigError) as caught:
        load_gateway(path, {})
    return re.sub(r" in `.*`", "", caught.value.message), caught.value.hint or ""


@pytest.mark.parametrize("name", ["servers.yaml", ".mcp.json", "toolfold.yaml"])
@pytest.mark.parametrize(
    ("block", "key", "hint"),
    [
        ("{server: {read_only: true, deny: ['*']}, %s}", "server", "did you mean `serve`?"),
        ("{srve: {read_only: true}, %s}", "srve", "did you mean `serve`?"),
        ("{Serve: {read_only: true}, %s}", "Serve", "did you mean `serve`?"),
        ("{mcpServer: {b: {command: y}}, %s}", "mcpServer", "did you mean `mcpServers`?"),
        ("{mcp_servers: {b: {command: y}}, %s}", "mcp_servers", "did you mean `mcpServers`?"),
        ("{function: {b: ./b.py}, %s}", "function", "did you mean `functions`?"),
        (
            "{tools: {tool_serch: {enabled: off}}, %s}",
            "tools.tool_serch",
            "did you mean `tools.tool_search`?",
        ),
        ("{tool_search: {enabled: off}, %s}", "tool_search", "write it under `tools:`"),
        ("{read_only: true, %s}", "read_only", "write it under `serve:`, as `read_only`"),
        (
            "{never_defer: [a], %s}",
            "never_defer",
            "write it under `tools:` and `tool_search:`, as `never_defer`",
        ),
    ],
)
def test_a_slip_of_one_of_our_keys_is_an_error_in_a_file_of_any_name(
    tmp_path: Path, name: str, block: str, key: str, hint: str
) -> None:
    text = block % SERVERS.strip()
    if name.endswith(".json"):
        import yaml

        text = json.dumps(yaml.safe_load(text))

    assert refused(written(tmp_path, text, name)) == (f"unknown key `{key}`, line 1", hint)


@pytest.mark.parametrize(
    ("ours", "level"),
    [
        ("serve: {read_only: true}\n", "colour"),
        ("functions: {b: ./b.py}\n", "colour"),
        ("openapi: {b: ./b.yaml}\n", "colour"),
        ("tools: {tool_search: {enabled: off}}\n", "colour"),
    ],
)
def test_a_file_is_ours_by_what_it_holds_and_every_key_in_it_must_be_known(
    tmp_path: Path, ours: str, level: str
) -> None:
    at_the_top = written(tmp_path, f"{ours}{SERVERS}{level}: red\n", "any.yaml")
    assert refused(at_the_top) == (
        "unknown key `colour`, line 3",
        "the keys are functions, mcpServers, openapi, profiles, proxy, serve, servers, tools",
    )

    entry = written(tmp_path, f"{ours}mcpServers: {{a: {{command: x, {level}: red}}}}", "any.yaml")
    message, hint = refused(entry)
    assert message == "unknown key `mcpServers.a.colour`, line 2"
    assert hint.startswith("the keys are allow, args, ")


def test_beside_tool_search_nothing_else_stands_in_a_file_of_ours(tmp_path: Path) -> None:
    file = written(tmp_path, "tools: {tool_search: true, browser: 1}\n", "any.yaml")

    assert refused(file) == (
        "unknown key `tools.browser`, line 1",
        "did you mean `tools.tool_search`?",
    )
    with pytest.raises(ConfigError, match=r"unknown key `tools\.browser`"):
        load_settings(file, environ={})


@pytest.mark.parametrize("name", ["toolfold.yaml", ".mcp.json"])
def test_an_unknown_key_of_a_server_is_the_error_of_that_server_alone(
    tmp_path: Path, name: str
) -> None:
    servers = {"a": {"command": "x"}, "b": {"command": "x", "dney": ["*"]}}
    path = written(tmp_path, json.dumps({"mcpServers": servers}), name)

    good, bad = load_gateway(path, {}, strict=False).servers

    assert good == Server("a", "stdio", "x")
    assert bad.problem is not None
    assert str(bad.problem).startswith("unknown key `mcpServers.b.dney`")
    assert bad.problem.hint == "did you mean `deny`?"
    assert refused(path)[0] == "unknown key `mcpServers.b.dney`, line 1"


def test_what_known_clients_write_in_an_entry_is_passed_over_in_a_file_of_ours(
    tmp_path: Path,
) -> None:
    theirs: dict[str, Any] = {
        "autoApprove": ["a"],
        "alwaysAllow": ["a"],
        "trust": True,
        "auth": {"CLIENT_ID": "x"},
        "gallery": True,
        "enabled": True,
        "alwaysLoad": True,
    }
    text = json.dumps({"mcpServers": {"a": {"command": "x", **theirs}}})

    config = load_gateway(written(tmp_path, text, "toolfold.yaml"), {})

    assert (config.servers, config.notes) == ((Server("a", "stdio", "x"),), ())


@pytest.mark.parametrize("client", CLIENTS.values(), ids=lambda client: client.id)
def test_every_entry_that_we_write_for_a_client_can_stand_in_a_file_of_ours(
    tmp_path: Path, client: Any
) -> None:
    entries = {"a": client.entry(Launch("x", ("serve",), {"A": "1"}))}
    if client.http is not None:
        entries["b"] = client.http("http://127.0.0.1:1/mcp")
    path = written(tmp_path, json.dumps({"mcpServers": entries}), "toolfold.yaml")

    assert load_gateway(path, {}).notes == ()


def test_keys_of_other_programs_that_are_like_ours_are_theirs_in_their_files(
    tmp_path: Path,
) -> None:
    vscode = '{"inputs": [], "servers": {"a": {"command": "x"}}}'
    opencode = '{"server": {"port": 1}, "mcpServers": {"a": {"command": "x"}}}'
    hermes = (
        "model: {default: x}\ntoolsets: [all]\nmcp_servers: {}\nskin: blue\n"
        "tools: {browser: 1, tool_search: {threshold: 9}}\n"
    )

    for name, text in [("mcp.json", vscode), ("opencode.json", opencode)]:
        assert load_gateway(written(tmp_path, text, name), {}).servers
    assert load_gateway(written(tmp_path, hermes, "config.yaml"), {}).settings.threshold == 9


def test_hermes_agents_file_is_ours_once_it_holds_what_only_ours_does(tmp_path: Path) -> None:
    path = written(tmp_path, "model: x\nserve: {read_only: true}\n", "config.yaml")

    assert refused(path)[0] == "unknown key `model`, line 1"


@given(key=st.sampled_from([*declared(Server), *declared(ServeSettings)]), place=st.integers(0, 40))
def test_a_key_with_a_letter_left_out_or_in_other_case_is_nearly_that_key(
    key: str, place: int
) -> None:
    known = [key]
    place %= len(key)

    assert nearly(key.upper().replace("_", "-"), known) == key
    if len(key.replace("_", "")) >= 4:
        assert nearly(key[:place] + key[place + 1 :], known) == key
        assert nearly(f"{key[:place]}x{key[place:]}", known) == key
    assert nearly(f"{key}-something-else", known) is None


@pytest.mark.parametrize("name", ["servers.yaml", ".mcp.json", "toolfold.yaml"])
@pytest.mark.parametrize(
    ("key", "hint"),
    [("client_idd", "client_id"), ("clientID", "client_id"), ("calback_port", "callback_port")],
)
def test_a_slip_in_the_block_oauth_is_that_servers_error(
    tmp_path: Path, name: str, key: str, hint: str
) -> None:
    entry = {"url": "https://a.example/mcp", "oauth": {key: "mine"}}
    path = written(tmp_path, json.dumps({"mcpServers": {"a": entry}}), name)

    (server,) = load_gateway(path, {}, strict=False).servers

    assert f"unknown key `mcpServers.a.oauth.{key}`" in str(server.problem)
    assert f"did you mean `{hint}`?" in str(server.problem)


def test_what_other_clients_write_in_the_block_oauth_is_passed_over(tmp_path: Path) -> None:
    oauth = {"enabled": True, "clientId": "mine", "scopes": ["a"], "redirectUri": "http://a/"}
    entry = {"url": "https://a.example/mcp", "oauth": oauth}
    path = written(tmp_path, json.dumps({"mcpServers": {"a": entry}}), "toolfold.yaml")

    (server,) = load_gateway(path, {}).servers

    assert server.oauth_client_id == "mine"
