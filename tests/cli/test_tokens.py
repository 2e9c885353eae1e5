"""`toolfold tokens`: printed once, kept as a digest, and gone when revoked."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from toolfold.cli import main
from toolfold.config.gateway_config import load_gateway
from toolfold.serve.control.run_folder import RunFolder
from toolfold.serve.principals import TokenTable
from toolfold.serve.token_store import TokenStore, with_kept_tokens


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "toolfold.json"
    own = {"name": "filed", "sha256": "ab" * 32}
    serve = {"state_dir": str(tmp_path / "state"), "tokens": [own]}
    path.write_text(
        json.dumps({"mcpServers": {"one": {"command": "true"}}, "serve": serve}), "utf-8"
    )
    return path


def tokens(config: Path, *words: str) -> Any:
    return CliRunner().invoke(main, ["tokens", *words, "--config", str(config)])


def table(config: Path) -> TokenTable:
    return TokenTable.of(with_kept_tokens(load_gateway(config)).serve)


def test_a_token_is_printed_once_and_only_its_digest_is_kept(config: Path) -> None:
    made = tokens(config, "create", "laptop", "--allow", "@one", "--read-only")
    value = made.stdout.strip()
    kept = config.parent / "state" / "tokens.json"

    assert made.exit_code == 0, made.output
    assert len(value) > 40
    assert value not in kept.read_text("utf-8")
    assert hashlib.sha256(value.encode()).hexdigest() in kept.read_text("utf-8")
    assert kept.stat().st_mode & 0o777 == 0o600
    found = table(config).admit(value)
    assert found is not None
    assert (found.name, found.scope.allow, found.read_only) == ("laptop", ("@one",), True)
    listed = tokens(config, "list")
    assert "laptop" in listed.stdout
    assert "filed" in listed.stdout
    assert value not in listed.stdout


def test_a_revoked_token_opens_nothing_and_its_name_may_be_used_again(config: Path) -> None:
    first = json.loads(tokens(config, "create", "laptop", "--json").stdout)["token"]
    assert tokens(config, "create", "laptop").exit_code == 2
    assert tokens(config, "revoke", "laptop").exit_code == 0
    assert table(config).admit(first) is None
    assert tokens(config, "revoke", "laptop").exit_code == 2

    second = tokens(config, "create", "laptop").stdout.strip()
    assert table(config).admit(first) is None
    assert table(config).admit(second) is not None
    [_, one] = json.loads(tokens(config, "list", "--json").stdout)["tokens"]
    assert (one["name"], one["from"], one["revoked"]) == ("laptop", "command", None)


def test_where_the_last_token_was_revoked_nobody_is_let_in(config: Path) -> None:
    whole = json.loads(config.read_text("utf-8"))
    del whole["serve"]["tokens"]
    config.write_text(json.dumps(whole), "utf-8")
    assert table(config).is_open
    value = tokens(config, "create", "laptop").stdout.strip()
    assert not table(config).is_open
    revoked = tokens(config, "revoke", "laptop")
    assert (revoked.stdout, revoked.stderr) == (
        "revoked laptop\n",
        "it was the last: over HTTP nobody is let in until you make another\n",
    )

    assert not table(config).is_open
    assert table(config).admit(value) is None


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("create", "filed"), "the configuration has a token named 'filed'"),
        (("revoke", "filed"), "no token named 'filed' was made by command"),
        (("create", ""), "a token has no `name`"),
        (("create", " "), "a token is named ' '"),
        (("create", "a\nb"), "a token is named 'a\\nb'"),
        (("create", "local"), "a token is named 'local', which toolfold uses itself"),
        (("create", "the admin"), "a token is named 'the admin', which toolfold uses itself"),
        (("create", "oauth:bob"), "'oauth:bob' is named like somebody whom the issuer knows"),
    ],
)
def test_what_cannot_be_done_is_refused_and_nothing_is_kept(
    config: Path, words: tuple[str, ...], why: str
) -> None:
    result = tokens(config, *words)

    assert result.exit_code == 2
    assert why in result.stderr
    assert TokenStore(config.parent / "state").load() == ()


def test_a_revocation_that_a_running_gateway_does_not_take_up_is_an_error(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolfold.cli.tokens._PATIENCE", 0.2)
    assert tokens(config, "create", "laptop", "--tenant", "acme").exit_code == 0
    assert "laptop  of 2" in tokens(config, "list").stdout
    assert "of the tenant acme" in tokens(config, "list").stdout
    hangs, _ = RunFolder(config.parent / "state").listen()  # and nobody answers there
    try:
        result = tokens(config, "revoke", "laptop")
    finally:
        hangs.close()

    assert result.exit_code == 1
    assert "a gateway runs at which 'laptop' may still be let in" in result.stderr
    (kept,) = TokenStore(config.parent / "state").load()
    assert kept.revoked is not None


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("words", [("tokens", "create", "laptop"), ("trust", "approve", "--all")])
def test_root_writes_nothing_that_the_gateways_own_user_could_not_read(
    config: Path, words: tuple[str, ...]
) -> None:
    state = config.parent / "state"
    state.mkdir()
    os.chown(state, 10001, 10001)

    result = CliRunner().invoke(main, [*words, "--config", str(config)])

    assert result.exit_code == 2
    assert f"`{state}` is the user 10001's, who could not read what root writes" in result.stderr
    assert list(state.iterdir()) == []


@pytest.mark.parametrize("text", ["", "{}", '{"version": 1, "tokens": [{"name": "x"}]}', "\x00"])
def test_a_damaged_file_lets_nobody_in_and_is_an_error(config: Path, text: str) -> None:
    state = config.parent / "state"
    state.mkdir()
    (state / "tokens.json").write_text(text, "utf-8")

    result = tokens(config, "list")

    assert result.exit_code == 2
    assert "cannot be used" in result.stderr
    with pytest.raises(Exception, match="cannot be used"):
        table(config)


def test_a_list_says_whose_a_token_is_and_that_there_are_none(config: Path) -> None:
    whole = json.loads(config.read_text("utf-8"))
    del whole["serve"]["tokens"]
    config.write_text(json.dumps(whole), "utf-8")

    none = tokens(config, "list")
    tokens(config, "create", "laptop", "--tenant", "acme")
    one = tokens(config, "list")

    assert (none.exit_code, none.stdout, none.stderr) == (
        0, "", "there are no tokens; `toolfold tokens create NAME` makes one\n",
    )  # fmt: skip
    assert one.stdout.startswith("laptop  of ")
    assert one.stdout.endswith(", of the tenant acme\n")


def test_a_state_folder_that_cannot_be_written_to_is_said_to_be_that(config: Path) -> None:
    state = config.parent / "state"
    state.write_text("a file", "utf-8")

    made = tokens(config, "create", "laptop")

    assert (made.exit_code, made.stdout) == (2, "")
    assert made.stderr.startswith(f"error: cannot write `{state / 'tokens.json'}`: ")
    assert "hint: see who may write there" in made.stderr
