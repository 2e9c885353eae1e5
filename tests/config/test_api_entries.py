"""The block `openapi` of a configuration: entries, references, errors with their place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.apis import document, operation
from support.running import wait
from toolfold import ConfigError
from toolfold.config import GatewayConfig, load_gateway, sources_of
from toolfold.runtime import Agent, ScriptedModel
from toolfold.sources.openapi import ClientCredentials

KEY = "key-0123456789"


def configured(folder: Path, openapi: Any, *, strict: bool = True, **more: Any) -> GatewayConfig:
    file = folder / "toolfold.yaml"
    file.write_text(json.dumps({"openapi": openapi, **more}), "utf-8")
    return load_gateway(file, {"KEY": KEY}, strict=strict)


def write_document(folder: Path, name: str = "pets.json") -> str:
    given = document({"/pets": {"get": operation()}})
    (folder / name).write_text(json.dumps(given), "utf-8")
    return f"./{name}"


def test_an_entry_is_a_file_an_address_or_a_block(tmp_path: Path) -> None:
    apis = configured(
        tmp_path,
        {
            "a": "./pets.json",
            "b": "https://b.example/openapi.yaml",
            "c": {"file": "./pets.json", "base_url": "https://c.example", "timeout": 5},
        },
    ).apis

    assert [(api.name, api.file, api.url) for api in apis] == [
        ("a", "./pets.json", ""),
        ("b", "", "https://b.example/openapi.yaml"),
        ("c", "./pets.json", ""),
    ]
    assert apis[0].path == tmp_path / "pets.json"
    assert (apis[2].base_url, apis[2].timeout) == ("https://c.example", 5)


def test_references_are_resolved_and_never_shown(tmp_path: Path) -> None:
    (tmp_path / "key.txt").write_text("another-secret\n", "utf-8")
    entry = {
        "file": "pets.json",
        "base_url": "https://${HOST:-pets.example}/v1",
        "auth": {"token": "${KEY}"},
        "headers": {"X-Key": "${file:key.txt}", "X-Number": 7},
    }

    (api,) = configured(tmp_path, {"pets": entry}).apis

    assert api.base_url == "https://pets.example/v1"
    assert api.auth == {"token": KEY}
    assert dict(api.headers) == {"X-Key": "another-secret", "X-Number": "7"}
    assert KEY not in repr(api) and {KEY, "another-secret"} <= set(api.secrets)


@pytest.mark.parametrize(
    ("openapi", "message"),
    [
        (7, "`openapi` is no mapping in"),
        ("3.0.0", "`openapi` is no mapping in"),
        ({"a": 7}, "`openapi.a` is 7 in"),
        ({"a": {}}, "`openapi.a` has neither `file` nor `url` in"),
        ({"a": {"file": "x", "url": "http://x"}}, "`openapi.a` has both `file` and `url` in"),
        ({"a": {"fle": "x"}}, "unknown key `openapi.a.fle` in"),
        ({"a": {"file": "x", "timeout": 0}}, "`openapi.a.timeout` is 0 in"),
        ({"a": {"url": "ftp://x"}}, "`openapi.a.url` is no address in"),
        (
            {"a": {"file": "x", "base_url": "http://u:p@x"}},
            "`openapi.a.base_url` holds a user's name in",
        ),
        ({"a": {"file": "x", "headers": {"X": "a\nb"}}}, "`openapi.a.headers.X` cannot be sent in"),
        ({"a": {"file": "x", "auth": {"k": "${NOT_SET}"}}}, "`openapi.a.auth.k` in"),
        ({"a": {"file": "x", "auth": {"k": ["y"]}}}, "`openapi.a.auth.k` is no text in"),
    ],
)
def test_an_error_names_the_key_and_the_line(tmp_path: Path, openapi: Any, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        configured(tmp_path, openapi)

    assert caught.value.message.startswith(message)
    assert "line 1" in caught.value.message
    assert caught.value.hint


def test_an_entry_that_cannot_be_used_takes_no_other_with_it(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text('{"swagger": "2.0"}', "utf-8")
    good = {"file": write_document(tmp_path), "base_url": "http://localhost:1"}
    entries = {"a": {"url": "nowhere"}, "b": "./bad.json", "c": good}
    config = configured(tmp_path, entries, strict=False)

    async def main() -> list[str]:
        sources = sources_of(config)
        assert [bool(source.absence()) for source in sources] == [True, True, False]
        async with Agent(ScriptedModel([]), sources) as agent:
            return [tool.name for tool in agent.tools()]

    assert wait(main()) == ["c__go"]


def test_a_disabled_api_is_left_out(tmp_path: Path) -> None:
    config = configured(tmp_path, {"a": {"file": "x", "disabled": True}})

    assert (config.apis, config.disabled, config.has_tools) == ((), ("a",), False)


def test_a_name_that_is_taken_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        configured(tmp_path, {"a": "x.json"}, functions={"a": "./tools.py"})

    assert caught.value.message.startswith("`openapi.a` has a name that is taken in")


def test_a_folders_file_that_names_apis_must_be_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toolfold.yaml").write_text("openapi: {a: ./x.json}", "utf-8")

    with pytest.raises(ConfigError) as caught:
        load_gateway(None, {})

    assert caught.value.message.startswith("this folder's file names HTTP APIs to call in")


def test_another_programs_key_openai_is_its_own(tmp_path: Path) -> None:
    file = tmp_path / "other.json"
    file.write_text('{"openai": {"model": "x"}, "mcpServers": {}}', "utf-8")

    assert load_gateway(file, {}).apis == ()


def test_a_token_is_asked_for_with_what_references_say_and_nothing_of_it_is_shown(
    tmp_path: Path,
) -> None:
    block = {
        "token_url": "https://login.example/token",
        "client_id": "me",
        "client_secret": "${KEY}",
        "scopes": "read write",
        "parameters": {"audience": "pets"},
    }
    entry = {"file": "pets.json", "auth": {"oauth2": block, "token": "plain"}, "refresh": "30m"}

    config = configured(tmp_path, {"pets": entry})

    (api,) = config.apis
    assert api.refresh == 1_800
    assert api.auth["oauth2"] == ClientCredentials(
        token_url="https://login.example/token",
        client_id="me",
        client_secret=KEY,
        scopes=("read", "write"),
        parameters={"audience": "pets"},
    )
    assert KEY in config.secrets and KEY not in repr(config)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (
            {"auth": {"oauth2": {"client_id": "me", "client_secret": "${KEY}"}}},
            "in `openapi.a.auth.oauth2`, `token_url` is missing",
        ),
        (
            {"auth": {"oauth2": {"token_url": "https://l.example", "client_id": "me"}}},
            "in `openapi.a.auth.oauth2`, `client_secret` is missing",
        ),
        (
            {"auth": {"oauth2": {"token_uri": "https://l.example"}}},
            "unknown key `openapi.a.auth.oauth2.token_uri`",
        ),
        (
            {"auth": {"oauth2": {"token_url": "l.example"}}},
            "in `openapi.a.auth.oauth2`, `token_url` is no address",
        ),
        (
            {"auth": {"oauth2": {"client_secret": [KEY]}}},
            "`openapi.a.auth.oauth2.client_secret` is no text",
        ),
        ({"auth": KEY}, "`openapi.a.auth` is no mapping"),
        ({"headers": [KEY]}, "`openapi.a.headers` is no mapping"),
        ({"refresh": "soon"}, "`openapi.a.refresh` is 'soon'"),
    ],
)
def test_what_is_wrong_with_credentials_is_said_without_showing_them(
    tmp_path: Path, entry: Any, message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        configured(tmp_path, {"a": {"file": "pets.json", **entry}})

    assert caught.value.message.startswith(message)
    assert "line 1" in caught.value.message and KEY not in str(caught.value)
