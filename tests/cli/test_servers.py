"""`toolfold servers`: the servers of a running gateway, from another terminal."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from support.served import Served
from support.servers.place import SECONDS, Place, prepared
from toolfold.cli import main
from toolfold.config.gateway_config import load_gateway


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with prepared(tmp_path) as made:
        yield made


def servers(place: Place, *words: str) -> Any:
    [verb, *others] = words
    return CliRunner().invoke(main, ["servers", verb, "--config", str(place.config), *others])


def ready(place: Place) -> None:
    end = time.monotonic() + 2 * SECONDS
    while True:
        listed = servers(place, "list", "--json")
        if listed.exit_code == 0:
            found = json.loads(listed.stdout)["gateways"]
            if all(server["state"] == "ready" for server in found[0]["servers"]):
                return
        assert time.monotonic() < end, listed.output
        time.sleep(0.05)


@pytest.mark.slow
def test_servers_are_listed_restarted_turned_off_and_on_and_read(place: Place) -> None:
    place.add("good").add("other")
    with Served(place) as served:
        served.greet()
        ready(place)

        text = servers(place, "list").stdout
        assert f"gateway {served.process.pid}\n  good   ready, " in text

        done = servers(place, "restart", "good")
        assert done.exit_code == 0, done.output
        assert f"gateway {served.process.pid}: good ready, " in done.stdout
        assert "restarted 1×" in done.stdout

        off = servers(place, "disable", "good", "--json")
        [one] = json.loads(off.stdout)["gateways"]
        assert one == {
            "pid": served.process.pid,
            "name": "good",
            "state": "disabled",
            "changed": True,
        }
        assert "good   disabled" in servers(place, "list").stdout
        assert "is not available" in served.call("good__echo", "hi")
        assert served.call("other__echo", "hi") == "other:hi"
        enabled = servers(place, "enable", "good").stdout
        assert "good ready, " in enabled
        assert "0 tools" not in enabled

        logs = json.loads(servers(place, "logs", "good", "--json").stdout)["gateways"][0]
        assert logs["lines"] == []
        assert servers(place, "logs", "good").stderr == "good has written nothing\n"

        added = servers(place, "add", "gone", "--", "no-such-program")
        assert added.exit_code == 0
        assert f"gateway {served.process.pid}: gone failed, 0 tools, " in added.stdout
        assert "'no-such-program' is not there" in added.stdout
        assert "has taken it up" in servers(place, "remove", "gone").stdout

        wrong = servers(place, "restart", "goood")
        assert wrong.exit_code == 1
        assert "no server is named 'goood'; did you mean 'good'?" in wrong.stderr


def test_where_no_gateway_runs_that_is_said(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["servers", "list", "--state-dir", str(tmp_path)])

    assert result.exit_code == 1
    assert result.stderr.startswith("error: no gateway runs that could be asked\n")


def test_a_server_is_put_into_the_file_and_taken_out_with_the_rest_left_alone(
    tmp_path: Path,
) -> None:
    config = tmp_path / "toolfold.yaml"
    before = f"# mine\nmcpServers:\n  one: {{command: one}}\nserve:\n  state_dir: {tmp_path}\n"
    config.write_text(before, "utf-8")

    def invoke(*words: str) -> Any:
        return CliRunner().invoke(main, ["servers", *words])

    file = ("--config", str(config))
    added = invoke("add", "two", "--env", "A=b=c", *file, "--", "uvx", "two", "--flag")
    assert added.exit_code == 0, added.output
    assert "wrote" in added.stdout
    assert "no gateway runs" in added.stderr
    loaded = load_gateway(config)
    assert [server.name for server in loaded.servers] == ["one", "two"]
    assert loaded.servers[1].args == ("two", "--flag")
    assert dict(loaded.servers[1].env) == {"A": "b=c"}
    assert config.read_text("utf-8").startswith("# mine\n")

    again = invoke("add", "two", *file, "--", "uvx", "two")
    assert again.exit_code == 2
    assert "has a server named 'two' already" in again.stderr
    assert invoke("add", "two", "--replace", "--url", "https://x.example/mcp", *file).exit_code == 0
    assert load_gateway(config).servers[1].url == "https://x.example/mcp"

    assert invoke("remove", "two", *file).exit_code == 0
    assert [server.name for server in load_gateway(config).servers] == ["one"]
    assert invoke("remove", "two", *file).exit_code == 2
    assert invoke("add", "three", *file).exit_code == 2
    assert invoke("add", "three", "--url", "u", "--env", "A", *file).exit_code == 2


def test_a_name_that_functions_or_an_api_have_is_not_given_to_a_server(tmp_path: Path) -> None:
    config = tmp_path / "toolfold.yaml"
    before = (
        "mcpServers:\n  one: {command: one}\nfunctions: {mine: {module: ./own.py}}\n"
        f"openapi: {{pets: {{file: pets.json}}}}\nserve: {{state_dir: {tmp_path}}}\n"
    )
    config.write_text(before, "utf-8")

    for name, key in (("mine", "functions"), ("pets", "openapi")):
        words = ["servers", "add", name, "--config", str(config), "--", "true"]
        refused = CliRunner().invoke(main, words)
        assert refused.exit_code == 2
        assert f"has `{key}.{name}` already" in refused.stderr
    assert config.read_text("utf-8") == before

    # One that was written so by hand can be taken out again.
    config.write_text(before.replace("  one:", "  mine: {command: x}\n  one:"), "utf-8")
    removed = CliRunner().invoke(main, ["servers", "remove", "mine", "--config", str(config)])
    assert removed.exit_code == 0, removed.output
    assert [server.name for server in load_gateway(config).servers] == ["one"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--env", "API_TOKEN=abc", "--", "true"), "`env.API_TOKEN` of 'two' looks like a secret"),
        (
            ("--url", "https://x.example", "--header", "Authorization=Bearer abc"),
            "`headers.Authorization` of 'two' looks like a secret",
        ),
        (("--", "true", "--api-key", "abc"), "`args[1]` of 'two' looks like a secret"),
        (("--url", "not an address"), "`mcpServers.two.url`"),
        (("--env", "API_TOKEN=${HOME}", "--", "true"), None),
    ],
)
def test_a_server_with_a_secret_in_the_file_or_without_a_use_is_said(
    tmp_path: Path, words: tuple[str, ...], said: str | None
) -> None:
    config = tmp_path / "toolfold.yaml"
    config.write_text(f"mcpServers: {{}}\nserve: {{state_dir: {tmp_path}}}\n", "utf-8")

    added = CliRunner().invoke(main, ["servers", "add", "two", "--config", str(config), *words])

    assert added.exit_code == 0, added.output
    warnings = [line for line in added.stderr.splitlines() if line.startswith("warning")]
    assert (said in warnings[0]) if said else not warnings


@pytest.mark.parametrize("words", [("status",), ("servers", "list"), ("reload",)])
def test_with_a_broken_file_it_is_said_how_running_gateways_are_found(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    config = tmp_path / "toolfold.yaml"
    config.write_text("mcpServers: [", "utf-8")

    result = CliRunner().invoke(main, [*words, "--config", str(config)])

    assert result.exit_code == 2
    assert (
        "hint: mend the YAML; gateways that run go on, and are found with --state-dir DIR"
        in result.stderr
    )
