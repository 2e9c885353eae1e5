"""The block `proxy`: upstreams, their keys, and what is refused with the fix."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from toolfold.config.proxy_config import ProxyConfig, load_proxy
from toolfold.errors import ConfigError

ONE = "proxy:\n  upstreams:\n    - name: a\n      url: http://a\n"


def loaded(
    folder: Path, text: str, environ: dict[str, str] | None = None, **given: Any
) -> ProxyConfig:
    file = folder / "toolfold.yaml"
    file.write_text(text, encoding="utf-8")
    return load_proxy(file, environ or {}, **given)


def test_upstreams_tokens_and_the_common_settings_are_read(tmp_path: Path) -> None:
    text = f"""\
proxy:
  listen: 0.0.0.0:99
  body_limit: 5000
  tokens: [{{name: ci, env: CI}}]
  upstreams:
    - {{name: a, url: "https://a/api/", models: ["claude-*"], key: "${{A_KEY}}"}}
    - {{name: b, url: "http://b:1", path: /b, recover: true, context_length: 8000}}
serve: {{rate_limit: 7, state_dir: {tmp_path}}}
tools: {{tool_search: {{enabled: on}}}}
"""
    config = loaded(tmp_path, text, {"A_KEY": " secret\n", "TOOLFOLD_CONFIG": ""})
    first, second = config.proxy.upstreams
    assert (first.url, first.serves("claude-x"), first.serves("x")) == (
        "https://a/api",
        True,
        False,
    )
    assert (second.path, second.recover, second.context_length) == ("/b", True, 8000)
    assert config.keys == {"a": "secret"}
    assert "secret" not in repr(config)
    assert config.address == ("0.0.0.0", 99)
    assert config.settings.enabled == "on"
    door = config.door
    assert [token.name for token in door.tokens] == ["ci"]
    assert (door.rate_limit, door.body_limit) == (7, 5000)


def test_the_command_line_wins(tmp_path: Path) -> None:
    config = loaded(tmp_path, ONE, upstream="http://x", listen="9")
    assert [each.url for each in config.proxy.upstreams] == ["http://x"]
    assert config.address == ("127.0.0.1", 9)


@pytest.mark.parametrize(
    ("more", "message", "hint"),
    [
        ("      key: sk-123\n", "`proxy.upstreams.a.key` is no reference", "key: ${NAME}"),
        ("      key: ${GONE}\n", "needs the environment variable `GONE`", "set it"),
        ("      key: ${EMPTY}\n", "leads to no key", "check"),
        ("      path: x/\n", "`proxy.upstreams.a.path` is 'x/'", "/local"),
        ("      modles: [x]\n", "unknown key `proxy.upstreams.modles`", "models"),
        ("    - name: a\n      url: http://b\n", "two upstreams have the name `a`", "its own"),
        ("    - name: b\n      url: ftp://b\n", "is no address of a model server", "http://"),
        ("    - name: b\n      url: http://u:p@b\n", "holds a password", "key"),
        ("    - url: http://b\n", "an upstream has no `name`", "name: local"),
        ("  tokens:\n    - name: x\n      token: abc\n", "a token itself stands", "env: NAME"),
        ("  keep_alive: 0\n", "`proxy.keep_alive` is 0", "from 0.05"),
        ("  listen: here\n", "the proxy is to listen at 'here'", "HOST:PORT"),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_fix(
    tmp_path: Path, more: str, message: str, hint: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, ONE + more, {"EMPTY": ""})
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")
    assert "sk-123" not in str(caught.value)


def test_a_folders_own_file_must_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "toolfold.yaml").write_text(ONE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as caught:
        load_proxy(None, {}, upstream="http://x")
    assert "this folder's file says where requests go" in caught.value.message
    assert load_proxy("toolfold.yaml", {}).proxy.upstreams[0].url == "http://a"


def test_without_an_upstream_there_is_nothing_to_stand_before(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, "proxy: {}\n")
    assert "--upstream URL" in (caught.value.hint or "")


def test_another_programs_word_proxy_is_its_own(tmp_path: Path) -> None:
    from toolfold.config import load_gateway

    file = tmp_path / "settings.json"
    file.write_text('{"proxy": "http://corp:8080", "proxies": {}, "mcpServers": {}}', "utf-8")
    assert load_gateway(file, {}).servers == ()
