"""Profiles, read: what they may say, what they may not, and what each error says to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolfold.config import GatewayConfig, load_gateway
from toolfold.config.served_profiles import ServedProfile, is_profile_name
from toolfold.errors import ConfigError
from toolfold.scope import Scope
from toolfold.tool import Tool

SERVERS = {name: {"command": "true"} for name in ("github", "jira", "mail")}


def read(folder: Path, profiles: Any, name: str = "toolfold.json", **blocks: Any) -> GatewayConfig:
    file = folder / name
    file.write_text(json.dumps({"mcpServers": SERVERS, "profiles": profiles, **blocks}), "utf-8")
    return load_gateway(file, {}, strict=False)


def test_a_profile_has_servers_a_scope_and_settings_over_the_files_own(tmp_path: Path) -> None:
    config = read(
        tmp_path,
        {
            "review": {
                "servers": ["github"],
                "deny": ["*delete*"],
                "read_only": True,
                "context_length": 32_000,
                "tools": {"tool_search": {"strategy": "reveal", "core": ["github__get"]}},
            }
        },
        tools={"tool_search": {"listing": "names", "core": ["github__me"]}},
    )

    review = config.profile("review")
    assert review is not None
    assert (review.servers, review.read_only, review.context_length) == (("github",), True, 32_000)
    assert (review.settings.listing, review.settings.strategy) == ("names", "reveal")
    assert review.settings.core == ("github__me", "github__get")
    assert config.folding_under(review).strategy == "reveal"
    assert config.folding.strategy == "bridge"
    assert Tool("github__get", source="github") in review.scope
    assert Tool("github__delete", source="github") not in review.scope
    assert Tool("jira__get", source="jira") not in review.scope


@pytest.mark.parametrize(
    ("profiles", "said", "hint"),
    [
        ({"a": {"severs": []}}, "unknown key `profiles.a.severs`", "did you mean `servers`?"),
        ({"a": {"servers": ["githup"]}}, "names 'githup', which is not there", "`github`"),
        ({"a/b": {}}, "the name 'a/b'", "letters, digits"),
        ({"..": {}}, "the name '..'", "letters, digits"),
        ({"": {}}, "the name ''", "letters, digits"),
        ({"a": {"servers": "github"}}, "`profiles.a.servers` is the text 'github'", ""),
        ({"a": {"read_only": "no"}}, "`profiles.a.read_only`", ""),
        (["a"], "`profiles` is no mapping", "profiles: {NAME"),
        ({"a": {"tools": {"search": {}}}}, "unknown key `tools.search`", "tool_search"),
        ({"a": {"tools": {"tool_search": {"listings": "off"}}}}, "`listings`", "`listing`"),
        (
            {"a": {"tools": {"tool_search": {"annotations": {"*": {"readOnlyHint": True}}}}}},
            "`profiles.a.tools.tool_search.annotations` cannot be a profile's",
            "at the top of the file",
        ),
        (
            {"a": {"tools": {"tool_search": {"bridge_prefix": "x_"}}}},
            "bridge_prefix` cannot be a profile's",
            "at the top of the file",
        ),
    ],
)
def test_what_a_profile_cannot_say_is_refused_with_the_fix(
    tmp_path: Path, profiles: Any, said: str, hint: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, profiles)

    assert said in caught.value.message
    assert hint in (caught.value.hint or "")
    assert "toolfold.json" in caught.value.message


def test_a_server_that_is_disabled_may_be_named(tmp_path: Path) -> None:
    servers = {**SERVERS, "mail": {"command": "true", "disabled": True}}
    config = read(tmp_path, {"a": {"servers": ["mail"]}}, mcpServers=servers)

    assert [profile.name for profile in config.profiles] == ["a"]


@pytest.mark.parametrize("whose", ["token", "grant"])
def test_a_token_or_a_grant_for_a_profile_that_is_not_there_is_refused(
    tmp_path: Path, whose: str
) -> None:
    serve: dict[str, Any] = {"tokens": [{"name": "t", "sha256": "a" * 64, "profiles": ["rewiev"]}]}
    if whose == "grant":
        grants = [{"name": "t", "profiles": ["rewiev"]}]
        address = "https://login.example.com"
        serve = {"oauth": {"issuer": address, "resource": f"{address}/mcp", "grants": grants}}
    with pytest.raises(ConfigError, match=f"the {whose} `t` is limited .* 'rewiev'") as caught:
        read(tmp_path, {"review": {}}, serve=serve)

    assert "`review`" in (caught.value.hint or "")


def test_profiles_beside_the_servers_of_a_clients_own_file_are_read(tmp_path: Path) -> None:
    config = read(tmp_path, {"a": {"servers": ["jira"]}}, name="mcp.json", theirs={"x": 1})

    assert [profile.name for profile in config.profiles] == ["a"]


def test_what_another_program_calls_profiles_is_left_alone(tmp_path: Path) -> None:
    config = read(tmp_path, {"default": {"model": "x"}}, name="settings.json", profile="default")

    assert config.profiles == ()
    assert len(config.servers) == 3


def test_a_folders_own_file_is_not_read_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toolfold.yaml").write_text("profiles: {a: {deny: [x]}}\n", "utf-8")

    with pytest.raises(ConfigError, match="says how to serve"):
        load_gateway(environ={})


def test_under_one_profile_only_its_servers_are_left(tmp_path: Path) -> None:
    config = read(
        tmp_path,
        {"a": {"servers": ["mail", "jira"], "read_only": True, "allow": ["*_get"]}},
        functions={"shop": "./shop.py"},
    )

    under = config.under("a")
    assert [server.name for server in under.servers] == ["jira", "mail"]
    assert (under.functions, under.serve.read_only, under.profiles) == ((), True, ())
    assert Tool("jira__x_get", source="jira") in under.scope
    assert Tool("jira__x", source="jira") not in under.scope
    assert config.under(None) is config
    with pytest.raises(ConfigError, match="there is no profile 'b'"):
        config.under("b")


NAMES = st.text(st.sampled_from("ab]*?!_-@"), min_size=1, max_size=5)


@given(st.lists(NAMES, max_size=3), NAMES, st.text(st.sampled_from("ab_"), max_size=4))
def test_the_servers_of_a_profile_are_those_that_it_names_to_the_letter(
    servers: list[str], source: str, own: str
) -> None:
    tool = Tool(f"{source}__{own}x", source=source)

    assert (tool in ServedProfile("p", tuple(servers)).scope) == (source in servers)


PATTERNS = st.lists(st.sampled_from(["*", "@a", "@b", "a__*", "*_x", "b__y_x"]), max_size=3)
TOOLS = [Tool(f"{s}__{n}", source=s) for s in ("a", "b", "c") for n in ("x", "y", "y_x")]


@given(PATTERNS, PATTERNS, PATTERNS, PATTERNS, st.none() | st.lists(st.sampled_from("abc")))
def test_no_profile_lets_a_scope_hold_what_it_does_not_hold(
    allow: list[str], deny: list[str], more: list[str], less: list[str], servers: list[str] | None
) -> None:
    token = Scope(tuple(allow), tuple(deny))
    named = None if servers is None else tuple(servers)
    profile = ServedProfile("p", named, tuple(more), tuple(less))
    both = token.also(profile.scope)

    for tool in TOOLS:
        assert (tool in both) == (tool in token and tool in profile.scope)


@given(st.text(max_size=8))
def test_a_profiles_name_stands_in_an_address_as_it_is(name: str) -> None:
    from urllib.parse import quote

    if is_profile_name(name):
        assert quote(name, safe="") == name
        assert name not in (".", "..")
