"""The gateway's configuration: everybody's `mcpServers`, our settings, and no secret shown."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolfold import ConfigError
from toolfold.config import (
    FunctionModule,
    GatewayConfig,
    Server,
    ServeSettings,
    Token,
    find_config,
    load_gateway,
)
from toolfold.config.proxy_config import load_proxy


def written(folder: Path, text: str, name: str = "toolfold.yaml") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def loaded(folder: Path, servers: dict[str, Any], environ: dict[str, str] | None = None) -> Any:
    path = written(folder, json.dumps({"mcpServers": servers}), "mcp.json")
    return load_gateway(path, environ or {})


def one(folder: Path, entry: dict[str, Any], environ: dict[str, str] | None = None) -> Server:
    return loaded(folder, {"it": entry}, environ).servers[0]


def refused(folder: Path, entry: Any, environ: dict[str, str] | None = None) -> tuple[str, str]:
    with pytest.raises(ConfigError) as caught:
        loaded(folder, {"it": entry}, environ)
    return caught.value.message.replace(str(folder / "mcp.json"), "FILE"), caught.value.hint or ""


# ---- servers


def test_an_ordinary_mcp_json_is_a_configuration(tmp_path: Path) -> None:
    config = loaded(
        tmp_path,
        {
            "files": {"command": "npx", "args": ["-y", "files", "/data"], "env": {"A": "1"}},
            "web": {"url": "https://example.com/mcp", "headers": {"X": "y"}},
        },
    )

    assert config == GatewayConfig(
        servers=(
            Server("files", "stdio", command="npx", args=("-y", "files", "/data"), env={"A": "1"}),
            Server("web", "http", url="https://example.com/mcp", headers={"X": "y"}),
        ),
        path=tmp_path / "mcp.json",
    )


@pytest.mark.parametrize(
    ("entry", "transport"),
    [
        ({"url": "https://a.example/mcp"}, "http"),
        ({"url": "https://a.example/sse"}, "sse"),
        ({"url": "https://a.example/sse/?x=1"}, "sse"),
        ({"url": "https://a.example/sse", "type": "http"}, "http"),
        ({"url": "https://a.example/mcp", "transport": "sse"}, "sse"),
        ({"url": "https://a.example/x", "type": "streamable-http"}, "http"),
        ({"url": "https://a.example/x", "type": "streamableHttp"}, "http"),
        ({"url": "https://a.example/x", "type": "remote"}, "http"),
        ({"httpUrl": "https://a.example/x"}, "http"),
        ({"serverUrl": "https://a.example/sse"}, "sse"),
        ({"command": "x", "type": "local"}, "stdio"),
        ({"command": "x"}, "stdio"),
    ],
)
def test_how_a_server_is_reached_is_said_or_guessed(
    tmp_path: Path, entry: dict[str, Any], transport: str
) -> None:
    assert one(tmp_path, entry).transport == transport


def test_a_command_may_be_a_list_or_a_block(tmp_path: Path) -> None:
    as_list = one(tmp_path, {"command": ["node", "a.js"], "environment": {"A": "b"}})
    as_block = one(tmp_path, {"command": {"path": "node", "args": ["a.js"], "env": {"A": "b"}}})

    assert as_list == as_block == Server("it", "stdio", "node", ("a.js",), {"A": "b"})


def test_our_own_keys_stand_beside_those_of_everybody(tmp_path: Path) -> None:
    entry = {
        "command": "x",
        "timeout": 5,
        "call_timeout": 9.5,
        "lazy": True,
        "per_session": True,
        "allow": ["get_*"],
        "deny": ["get_secret"],
        "oauth": True,
    }

    assert one(tmp_path, entry) == Server(
        "it",
        "stdio",
        "x",
        oauth=True,
        start_timeout=5,
        call_timeout=9.5,
        lazy=True,
        per_session=True,
        allow=("get_*",),
        deny=("get_secret",),
    )
    assert one(tmp_path, {"command": "x", "call_timeout": None}).call_timeout is None
    assert one(tmp_path, {"command": "x", "call_timeout": 0}).call_timeout is None


def test_a_server_runs_at_each_replica_or_once(tmp_path: Path) -> None:
    assert one(tmp_path, {"command": "x"}).run == "each"
    assert one(tmp_path, {"command": "x", "run": "once"}).run == "once"


@pytest.mark.parametrize(
    ("entry", "message", "hint"),
    [
        ({"url": "http://x/mcp", "run": "once"}, "is 'once'",
         "take `run` out: a server at an address is not started here"),
        ({"command": "x", "per_session": True, "run": "once"},
         "is 'once', and `per_session` gives each session one", "take one of the two out"),
    ],
)  # fmt: skip
def test_what_cannot_run_once_is_not_told_to(
    tmp_path: Path, entry: dict[str, Any], message: str, hint: str
) -> None:
    where = "`mcpServers.it.run` in `FILE`, line 1"
    assert refused(tmp_path, entry) == (f"{where} {message}", hint)


def test_lists_of_tools_in_other_clients_words_count(tmp_path: Path) -> None:
    server = one(tmp_path, {"command": "x", "includeTools": ["a"], "disabledTools": ["b"]})
    all_of_them = one(tmp_path, {"command": "x", "includeTools": [], "tools": ["*"]})

    assert (server.allow, server.deny) == (("a",), ("b",))
    assert all_of_them.allow == ("*",)


def test_a_disabled_server_is_left_out_and_named(tmp_path: Path) -> None:
    config = loaded(
        tmp_path,
        {
            "a": {"command": "x", "disabled": True},
            "b": {"command": "x", "enabled": False},
            "c": {"command": "x", "disabled": False},
        },
    )

    assert [server.name for server in config.servers] == ["c"]
    assert config.disabled == ("a", "b")


def test_what_is_unknown_or_odd_is_noted_and_used_all_the_same(tmp_path: Path) -> None:
    config = loaded(
        tmp_path, {"a": {"command": "x", "colour": "y", "timeout": 60_000, "autoApprove": []}}
    )

    where = f"in `{tmp_path / 'mcp.json'}`, line 1"
    assert config.servers[0].start_timeout == 60
    assert config.notes == (
        f"unknown key `mcpServers.a.colour` {where} is passed over",
        f"`mcpServers.a.timeout` {where} is read as milliseconds",
    )


def test_vs_codes_block_and_comments_are_read(tmp_path: Path) -> None:
    text = """\
// mine
{
  "inputs": [],
  "servers": {
    "a": {"type": "stdio", "command": "x", "args": ["// no comment"],}, /* one */
  },
}
"""

    config = load_gateway(written(tmp_path, text, ".vscode/mcp.json"), {})

    assert config.servers == (Server("a", "stdio", "x", ("// no comment",)),)


@pytest.mark.parametrize(
    ("entry", "message", "hint"),
    [
        (
            {"args": []},
            "`mcpServers.it` in `FILE`, line 1 has neither `command` nor `url`",
            "give it one of them",
        ),
        (
            {"command": "x", "type": "websocket"},
            "`mcpServers.it.type` in `FILE`, line 1 is 'websocket'",
            "write stdio, http or sse",
        ),
        (
            {"type": "stdio", "url": "https://a.example"},
            "`mcpServers.it.type` in `FILE`, line 1 is 'stdio', and there is no `command`",
            "give `command`",
        ),
        (
            {"url": "example.com"},
            "`mcpServers.it.url` in `FILE`, line 1 is 'example.com'",
            "write an address with http:// or https://",
        ),
        (
            {"command": "x", "args": "-y"},
            "`mcpServers.it.args` in `FILE`, line 1 is no list",
            'write ["one", "two"]',
        ),
        (
            {"command": "x", "args": [["a"]]},
            "`mcpServers.it.args.0` in `FILE`, line 1 is no text",
            "write a text in quotes",
        ),
        (
            {"command": "x", "env": ["A=b"]},
            "`mcpServers.it.env` in `FILE`, line 1 is no mapping",
            'write {"NAME": "value"}',
        ),
        (
            {"url": "https://a.example", "headers": {"X": "a\nb"}},
            "`mcpServers.it.headers.X` in `FILE`, line 1 cannot be sent",
            "leave line breaks and control characters out",
        ),
        (
            {"command": "x", "timeout": -1},
            "`mcpServers.it.timeout` is -1 in `FILE`, line 1",
            "write a number from 0.1 to 600,000",
        ),
        (
            {"command": "x", "allow": "get_*"},
            "`mcpServers.it.allow` is the text 'get_*', not a list in `FILE`, line 1",
            "write [get_*]",
        ),
        (
            {"command": "x", "envFile": "no.env"},
            "`mcpServers.it.envFile` in `FILE`, line 1 names 'no.env', which cannot be read",
            "check the path",
        ),
        ("x", "`mcpServers.it` is no mapping in `FILE`, line 1", "write `key: value`"),
    ],
)
def test_an_entry_that_cannot_be_used_names_server_key_line_and_fix(
    tmp_path: Path, entry: Any, message: str, hint: str
) -> None:
    assert refused(tmp_path, entry) == (message, hint)


# ---- references


def test_references_to_the_environment_are_resolved(tmp_path: Path) -> None:
    entry = {
        "command": "${BIN}/x",
        "args": ["${A}-${env:A}", "${NONE:-7}", "${EMPTY:-8}", "$${A}", "${#array}", "$A"],
        "env": {"B": "${A}"},
        "cwd": "~/here",
    }

    server = one(tmp_path, entry, {"BIN": "/b", "A": "aa", "EMPTY": "", "HOME": "/home-of-me"})

    assert server.command == "/b/x"
    assert server.args == ("aa-aa", "7", "8", "${A}", "${#array}", "$A")
    assert server.env == {"B": "aa"}
    assert server.cwd == "/home-of-me/here"


def test_what_editors_know_is_known_here(tmp_path: Path) -> None:
    text = '{"servers": {"a": {"command": "${userHome}/x", "cwd": "${workspaceFolder}/y"}}}'
    path = written(tmp_path, text, "project/.vscode/mcp.json")

    server = load_gateway(path, {"HOME": "/me"}).servers[0]

    assert (server.command, server.cwd) == ("/me/x", str(tmp_path / "project" / "y"))


@pytest.mark.parametrize(
    ("name", "text", "pointer"),
    [
        ("a.json", '// c\n{"x": {"y/z": ["s3cret-value",]},}', "/x/y~1z/0"),
        ("a.toml", '[x]\n"y/z" = ["s3cret-value"]', "/x/y~1z/0"),
        ("a.toml.before-toolfold", '[x]\n"y/z" = ["s3cret-value"]', "/x/y~1z/0"),
        ("a.yaml", "x:\n  y/z: [s3cret-value]", "/x/y~1z/0"),
    ],
)
def test_a_value_may_stay_in_another_programs_file(
    tmp_path: Path, name: str, text: str, pointer: str
) -> None:
    written(tmp_path, text, name)

    server = one(tmp_path, {"command": "x", "env": {"K": f"${{file:{name}#{pointer}}}"}})

    assert server.env == {"K": "s3cret-value"}
    assert server.secrets == ("s3cret-value",)


def test_a_whole_file_may_be_a_value(tmp_path: Path) -> None:
    secret = written(tmp_path, "s3cret-value\n", "token")
    entry = {
        "url": "https://a.example",
        "headers": {"Authorization": f"Bearer ${{file:{secret}}}"},
    }

    assert one(tmp_path, entry).headers == {"Authorization": "Bearer s3cret-value"}


def test_variables_come_from_a_file_too(tmp_path: Path) -> None:
    written(tmp_path, "# c\nexport A=1\nB = 'two words'\nC=3\n", ".env")

    server = one(tmp_path, {"command": "x", "envFile": ".env", "env": {"C": "own"}})

    assert server.env == {"A": "1", "B": "two words", "C": "own"}
    assert "two words" in server.secrets


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=one # a comment", "one"),
        ("A=p#ss", "p#ss"),
        ("A='one # two' # three", "one # two"),
        ('A="it\'s"', "it's"),
        ("A='\"quoted\"'", '"quoted"'),
        (r'A="one\ntwo"', "one\ntwo"),
        (r"A='one\ntwo'", r"one\ntwo"),
        ('A="one\ntwo"', "one\ntwo"),
        ("A=$HOME and ${B}", "$HOME and ${B}"),
        ("A=", ""),
        ("A= # nothing", ""),
        ("A=1=2", "1=2"),
        ("A=1\r\n", "1"),
        ("\ufeffA=1", "1"),
        ("A=1\nA=2", "2"),
    ],
)
def test_a_variable_from_a_file_has_the_value_that_a_shell_would_give_it(
    tmp_path: Path, line: str, value: str
) -> None:
    (tmp_path / ".env").write_bytes(line.encode())

    assert one(tmp_path, {"command": "x", "envFile": ".env"}).env == {"A": value}


def test_lines_of_a_file_that_name_no_variable_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("A", raising=False)
    written(tmp_path, "A=1\n\nnothing\n'half=2\nB=3\n", ".env")
    path = written(
        tmp_path, json.dumps({"mcpServers": {"it": {"command": "x", "envFile": ".env"}}})
    )

    made = load_gateway(path, environ={})

    assert made.servers[0].env == {"A": "1", "B": "3"}
    (note,) = made.notes
    assert note.endswith("line 3, 4 of '.env' is no `NAME=value`; passed over")
    assert "A" not in os.environ


@pytest.mark.parametrize(
    ("value", "message", "hint"),
    [
        (
            "${TOKEN}",
            "needs the environment variable `TOKEN`, which is not set",
            "set it, or write a default as `${TOKEN:-…}`",
        ),
        (
            "${input:my key}",
            "asks for the input `my key`, which only an editor can show",
            "put it into a variable and write `${MY_KEY}`",
        ),
        (
            "${command:x.y}",
            "has a reference of the unknown kind `command:`",
            "use ${NAME}, ${env:NAME} or ${file:PATH#/pointer}; write `$${` for a plain `${`",
        ),
        (
            "${file:none.json#/a}",
            "refers to `none.json`: No such file or directory",
            "run `toolfold import` again, or put the value into a variable",
        ),
        (
            "${file:mcp.json#/a/b}",
            "refers to `/a/b` in `mcp.json`: not there",
            "run `toolfold import` again, or put the value into a variable",
        ),
    ],
)
def test_a_reference_to_nothing_names_server_key_and_fix(
    tmp_path: Path, value: str, message: str, hint: str
) -> None:
    assert refused(tmp_path, {"command": "x", "env": {"K": value}}) == (
        f"`mcpServers.it.env.K` in `FILE`, line 1 {message}",
        hint,
    )


def test_one_bad_server_does_not_take_the_others_with_it(tmp_path: Path) -> None:
    servers = {"bad": {"command": "x", "env": {"A": "${NONE}"}}, "good": {"command": "y"}}
    path = written(tmp_path, json.dumps({"mcpServers": servers}), "mcp.json")

    bad, good = load_gateway(path, {}, strict=False).servers

    assert good == Server("good", "stdio", "y")
    assert bad.problem is not None and "`NONE`, which is not set" in str(bad.problem)
    with pytest.raises(ConfigError):
        load_gateway(path, {})


# ---- nothing shown

secrets = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="${}"),
    min_size=8,
    max_size=40,
).filter(
    lambda text: (
        text.strip() == text
        and text not in f"mcpServers.it.command NAME x {GatewayConfig()!r}"
        and text not in "write an address with http:// or https://"
    )
)
places: Any = st.sampled_from(
    [
        {"command": "x", "args": ["--flag", "{}"]},
        {"command": "x", "args": ["--other={}"]},
        {"command": "x", "env": {"PLAIN": "{}"}},
        {"command": "x", "env": {"A": "a {} b"}},
        {"command": "{}"},
        {"command": "x", "cwd": "{}"},
        {"url": "https://a.example/{}"},
        {"url": "https://a.example/?q={}", "headers": {"X-Thing": "{}"}},
        {"url": "{}"},
        {"command": "x", "args": "{}"},
        {"command": "x", "type": "sse", "url": "{}", "timeout": "no"},
    ]
)


@given(secret=secrets, place=places, by=st.sampled_from(["variable", "file"]))
def test_a_resolved_value_is_neither_in_a_repr_nor_in_an_error(
    tmp_path_factory: pytest.TempPathFactory, secret: str, place: dict[str, Any], by: str
) -> None:
    folder = tmp_path_factory.mktemp("shown")
    written(folder, json.dumps({"k": secret}), "other.json")
    reference = "${NAME}" if by == "variable" else "${file:other.json#/k}"
    entry = json.loads(json.dumps(place).replace("{}", reference))
    path = written(folder, json.dumps({"mcpServers": {"it": entry}}), "mcp.json")

    config = load_gateway(path, {"NAME": secret}, strict=False)

    server = config.servers[0]
    shown = f"{server!r} {server.shown} {config!r} {server.problem} {server.problem!r}"
    shown += str(server.problem.hint if server.problem else "")
    assert secret not in shown.replace(str(folder), "")
    if server.problem is None:
        assert any(secret in hidden for hidden in server.secrets)


@pytest.mark.parametrize(
    ("entry", "secret"),
    [
        ({"command": "x", "env": {"GITHUB_TOKEN": "plain-words"}}, "plain-words"),
        ({"command": "x", "env": {"DB_PASS": "hunter2hunter2"}}, "hunter2hunter2"),
        ({"command": "x", "env": {"THING": "ghp_abcdefghijklmnop1234"}}, "ghp_abcdefghijklm"),
        ({"command": "x", "args": ["--api-key", "plainword"]}, "plainword"),
        ({"command": "x", "args": ["--api-key=plainword"]}, "plainword"),
        ({"command": "x", "args": ["a8f3k2m9q1z7x5c4v6b0n2"]}, "a8f3k2m9q1z7x5c4v6b0n2"),
        ({"url": "https://a.example", "headers": {"X-Any": "plainword"}}, "plainword"),
        ({"url": "https://me:pw-of-me@a.example/"}, "pw-of-me"),
        ({"url": "https://a.example/?api_key=plainword"}, "plainword"),
    ],
)
def test_what_looks_like_a_secret_is_not_shown(
    tmp_path: Path, entry: dict[str, Any], secret: str
) -> None:
    server = one(tmp_path, entry)

    assert secret not in repr(server)
    assert secret not in server.shown


def test_what_is_no_secret_is_shown(tmp_path: Path) -> None:
    entry = {
        "command": "npx",
        "args": ["-y", "@modelcontextprotocol/server-filesystem", "/srv/projects/website-2026"],
        "env": {"LOG_LEVEL": "debug", "HOME_DIR": "${HOME}"},
    }

    server = one(tmp_path, entry, {"HOME": "/me"})

    assert server.secrets == ()
    assert server.shown == (
        "npx -y @modelcontextprotocol/server-filesystem /srv/projects/website-2026"
    )


# ---- how to serve


def test_one_file_holds_servers_serving_and_folding(tmp_path: Path) -> None:
    text = """\
mcpServers:
  a: {command: x}
serve:
  mode: reveal
  trust: off
  audit: off
  read_only: true
  allowed_hosts: [tools.example.com]
  tokens:
    - name: laptop
      env: TOOLFOLD_TOKEN
      allow: ["@a"]
      rate_limit: 30
    - {name: ci, sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08}
tools:
  tool_search: {enabled: on}
"""

    config = load_gateway(written(tmp_path, text), {"TOOLFOLD_TOKEN": "0123456789abcdef"})

    assert config.servers == (Server("a", "stdio", "x"),)
    assert config.settings.enabled == "on"
    assert config.serve == ServeSettings(
        mode="reveal",
        trust="off",
        audit="off",
        read_only=True,
        allowed_hosts=("tools.example.com",),
        tokens=(
            Token("laptop", env="TOOLFOLD_TOKEN", allow=("@a",), rate_limit=30),
            Token("ci", sha256="9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"),
        ),
    )
    assert config.serve.audit_file is None


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (
            "serve:\n  mod: reveal\n",
            "unknown key `serve.mod` in `FILE`, line 2",
            "did you mean `mode`?",
        ),
        (
            "serve:\n  mode: reveals\n",
            "`serve.mode` is 'reveals' in `FILE`, line 2",
            "write bridge | reveal",
        ),
        (
            "serve:\n  body_limit: 1\n",
            "`serve.body_limit` is 1 in `FILE`, line 2",
            "write a whole number from 1,024 to 1e+09",
        ),
        (
            "serve:\n  tokens: {name: a}\n",
            "`serve.tokens` is no list in `FILE`, line 2",
            "write `- name: …` and `env: …`",
        ),
        (
            "serve:\n  tokens:\n    - name: a\n      token: s3cret-value\n",
            "a token itself stands under `serve.tokens` in `FILE`, line 4",
            "put it into an environment variable and name that: `env: NAME`",
        ),
        (
            "serve:\n  tokens:\n    - name: a\n      sha256: s3cret-value\n",
            "`tokens.a.sha256` is not 64 hexadecimal digits in `FILE`, line 3",
            'write the digest, for example from `printf %s "$TOKEN" | sha256sum`',
        ),
        (
            "serve:\n  tokens:\n    - name: a\n      env: s3cret-value\n",
            "`tokens.a.env` is not the name of a variable in `FILE`, line 3",
            "write a name, as `TOOLFOLD_TOKEN`; the token itself does not belong here",
        ),
        (
            "serve:\n  tokens:\n    - name: a\n",
            "the token `a` has neither `env` nor `sha256` in `FILE`, line 3",
            "name the environment variable that holds it, or give its SHA-256 digest",
        ),
        (
            "serve:\n  tokens:\n    - {name: a, env: A}\n    - {name: a, env: B}\n",
            "two tokens are named `a` in `FILE`, line 1",
            "give every token a name of its own",
        ),
        (
            "mcpservers: {}\n",
            "unknown key `mcpservers` in `FILE`, line 1",
            "did you mean `mcpServers`?",
        ),
        (
            "mcpServers:\n  a: {command: x}\nservers:\n  b: {command: x}\n",
            "both `mcpServers` and `servers` stand in `FILE`, line 3",
            "put all servers under `mcpServers`",
        ),
        ("mcpServers: [a]\n", "`mcpServers` is no mapping in `FILE`, line 1", "write `key: value`"),
    ],
)
def test_a_mistake_in_the_file_names_key_value_line_and_fix(
    tmp_path: Path, text: str, message: str, hint: str
) -> None:
    path = written(tmp_path, text)

    with pytest.raises(ConfigError) as caught:
        load_gateway(path, {})

    assert caught.value.message.replace(str(path), "FILE") == message
    assert caught.value.hint == hint


def test_a_shared_catalog_needs_a_database_and_a_tenant_a_name() -> None:
    with pytest.raises(ConfigError) as caught:
        ServeSettings(catalog="shared")

    assert str(caught.value.message) == (
        "`serve.catalog` is shared, and `serve.store` names no PostgreSQL"
    )
    assert caught.value.hint == "write its address, as `store: postgresql://user@host/name`"
    assert ServeSettings(catalog="shared", store="TOOLFOLD_STORE").catalog_tenant == "default"
    with pytest.raises(ConfigError, match=r"`serve\.catalog_tenant` is blank"):
        ServeSettings(catalog_tenant=" ")
    for name in ("a\0b", "a\nb", "\ud800", "x" * 256):
        with pytest.raises(ConfigError, match=r"`tokens\.t\.tenant` cannot be"):
            Token("t", env="T", tenant=name)


def test_serve_settings_that_exist_can_be_used() -> None:
    with pytest.raises(ConfigError, match=r"`serve\.max_parallel` is 0"):
        ServeSettings(max_parallel=0)


# ---- which file


def test_the_nearest_configuration_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)

    assert find_config(environ={}) is None
    assert load_gateway(environ={}) == GatewayConfig()

    from toolfold.config import user_config

    user_config().parent.mkdir(parents=True)
    user_config().write_text("mcpServers: {users: {command: x}}", encoding="utf-8")
    assert load_gateway(environ={}).servers[0].name == "users"

    here = written(work, "mcpServers: {here: {command: x}}")
    with pytest.raises(ConfigError, match="this folder's file names servers to start") as caught:
        load_gateway(environ={})
    assert caught.value.hint == "give `--config toolfold.yaml` if you trust it"
    assert load_gateway(here, {}).servers[0].name == "here"

    other = written(tmp_path, '{"mcpServers": {"named": {"command": "x"}}}', "other.json")
    assert load_gateway(environ={"TOOLFOLD_CONFIG": str(other)}).servers[0].name == "named"
    assert load_gateway(user_config(), {}).servers[0].name == "users"


# ---- which strategy counts

MODE_HINT = "write `strategy: {}` under `tools: tool_search:` in its place"
OBEYED = "`strategy: stub` is obeyed: clients list every tool, without parameters at first"


@pytest.mark.parametrize(
    ("text", "strategy", "notes"),
    [
        ("serve: {lazy: true}\n", "bridge", ()),
        ("tools: {tool_search: {strategy: auto}}\n", "bridge", ()),
        (
            "tools: {tool_search: {strategy: native}}\n",
            "bridge",
            (
                "`strategy: native` is for who speaks to a model's provider: clients of the "
                "gateway get the bridge",
            ),
        ),
        ("tools: {tool_search: {strategy: reveal}}\n", "reveal", ()),
        ("tools: {tool_search: {strategy: stub}}\n", "stub", (OBEYED,)),
        (
            "serve: {mode: reveal}\n",
            "reveal",
            (
                "`serve.mode: reveal` is still understood and wins over `strategy: bridge`; "
                + MODE_HINT.format("reveal"),
            ),
        ),
        (
            "serve: {mode: reveal}\ntools: {tool_search: {strategy: reveal}}\n",
            "reveal",
            ("`serve.mode: reveal` is still understood; " + MODE_HINT.format("reveal"),),
        ),
        (
            "serve: {mode: bridge}\ntools: {tool_search: {strategy: stub}}\n",
            "bridge",
            (
                "`serve.mode: bridge` is still understood and wins over `strategy: stub`; "
                + MODE_HINT.format("bridge"),
            ),
        ),
    ],
)
def test_the_strategy_that_counts_is_told_where_another_may_be_expected(
    text: str, strategy: str, notes: tuple[str, ...], tmp_path: Path
) -> None:
    config = load_gateway(written(tmp_path, text), {})

    assert (config.folding.strategy, config.notes) == (strategy, notes)


def test_a_strategy_that_is_asked_for_wins_over_the_file_without_a_word(tmp_path: Path) -> None:
    text = "serve: {mode: bridge}\ntools: {tool_search: {strategy: reveal}}\n"

    config = load_gateway(written(tmp_path, text), {}, strategy="stub")

    assert (config.folding.strategy, config.notes) == ("stub", ())


def test_the_environment_says_the_strategy_too(tmp_path: Path) -> None:
    config = load_gateway(written(tmp_path, "serve: {}\n"), {"TOOLFOLD_STRATEGY": "stub"})

    assert (config.folding.strategy, config.notes) == ("stub", (OBEYED,))


# ---- functions


def test_functions_stand_beside_servers_and_nothing_is_imported(tmp_path: Path) -> None:
    written(tmp_path, "raise SystemExit('was run')", "tools.py")
    path = written(
        tmp_path,
        """
mcpServers:
  time: {command: x}
functions:
  own: ./tools.py
  shop:
    module: no_such_package.tools
    allow: ["get_*"]
    deny: [get_secret]
""",
    )

    config = load_gateway(path, {})

    assert config.has_tools
    assert config.functions == (
        FunctionModule("own", "./tools.py", folder=tmp_path),
        FunctionModule(
            "shop", "no_such_package.tools", ("get_*",), ("get_secret",), folder=tmp_path
        ),
    )
    assert [entry.path for entry in config.functions] == [tmp_path / "tools.py", None]


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (
            "functions: {a: 3}",
            "`functions.a` is 3 in `FILE`, line 1",
            "write a module, as `package.module`, or a file, as `./tools.py`",
        ),
        (
            "functions:\n  a: not a module",
            "`functions.a` names 'not a module', which is no module in `FILE`, line 2",
            "write a module, as `package.module`, or a file, as `./tools.py`",
        ),
        (
            "functions:\n  a:\n    modul: x",
            "unknown key `functions.a.modul` in `FILE`, line 3",
            "did you mean `module`?",
        ),
        (
            "functions:\n  a:\n    module: x\n    allow: y",
            "`functions.a.allow` is the text 'y', not a list in `FILE`, line 4",
            "write [y]",
        ),
        ("functions: [a]", "`functions` is no mapping in `FILE`, line 1", "write `key: value`"),
        (
            "mcpServers: {a: {command: x}}\nfunctions: {a: b}",
            "`functions.a` has the name of a server in `FILE`, line 2",
            "give it a name of its own",
        ),
    ],
)
def test_an_entry_of_functions_that_cannot_be_used_is_refused_with_its_place_and_fix(
    tmp_path: Path, text: str, message: str, hint: str
) -> None:
    path = written(tmp_path, text)

    with pytest.raises(ConfigError) as caught:
        load_gateway(path, {})

    assert caught.value.message.replace(str(path), "FILE") == message
    assert caught.value.hint == hint


def test_a_folders_own_file_that_names_functions_must_be_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, "functions: {own: ./tools.py}")

    with pytest.raises(ConfigError, match="this folder's file names Python functions") as caught:
        load_gateway(environ={})

    assert caught.value.hint == "give `--config toolfold.yaml` if you trust it"
    assert load_gateway("toolfold.yaml", {}).has_tools


@pytest.mark.parametrize(
    "entry",
    [
        {"oauth_client_id": "mine", "oauth_client_secret": "${SECRET}", "oauth_port": 8123},
        {"oauth": {"client_id": "mine", "client_secret": "${SECRET}", "callback_port": 8123}},
        {"oauth": {"clientId": "mine", "clientSecret": "${SECRET}", "callbackPort": 8123}},
    ],
)
def test_a_client_of_ones_own_is_read_with_its_secret_by_reference(
    tmp_path: Path, entry: dict[str, Any]
) -> None:
    server = one(tmp_path, {"url": "https://a.example/mcp", **entry}, {"SECRET": "s3cret-of-mine"})

    assert server.oauth
    assert server.oauth_client_id == "mine"
    assert server.oauth_client_secret == "s3cret-of-mine"
    assert server.oauth_port == 8123
    assert "s3cret-of-mine" in server.secrets


def test_the_variable_of_the_stores_address_is_no_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "toolfold.yaml"
    file.write_text("serve:\n  store: TOOLFOLD_STORE\nproxy:\n  listen: '8788'\n")
    monkeypatch.setenv("TOOLFOLD_STORE", "postgresql://app:hush@db/tools")

    serve = load_gateway(file, strict=False).serve
    assert serve.store_address == "postgresql://app:hush@db/tools"
    assert serve.token_variables == ("TOOLFOLD_STORE",)
    assert load_proxy(file, needs_upstream=False).serve == serve
