"""`toolfold doctor`: what it finds, what it says to do, and that it changes nothing."""

from __future__ import annotations

import json
import socket
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from support.gateways import ODD
from support.terminals import ran_on_terminal
from toolfold.chat._loop_thread import LoopThread
from toolfold.cli import main
from toolfold.serve.control.control_socket import ControlSocket
from toolfold.tool import Json


@pytest.fixture(autouse=True)
def _on_a_machine_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in (
        "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE", "NO_COLOR",
        "ANTHROPIC_BASE_URL", "TOOLFOLD_CONFIG", "HTTP_PROXY", "HTTPS_PROXY", "http_proxy",
        "https_proxy", "NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy", "COLUMNS",
    ):  # fmt: skip
        monkeypatch.delenv(name, raising=False)


def doctor(*arguments: str) -> tuple[int, list[dict[str, Any]]]:
    """Return the exit code and the checks."""
    ran = CliRunner().invoke(main, ["doctor", "--json", *arguments])
    return ran.exit_code, json.loads(ran.stdout)["checks"]


def of(part: str, *arguments: str) -> list[tuple[str, str, str, str]]:
    """Return what is said of one part."""
    _, checks = doctor(*arguments)
    return [
        (check["name"], check["health"], check["message"], check["fix"])
        for check in checks
        if check["part"] == part
    ]


def write(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")


@pytest.fixture
def free_port() -> Iterator[int]:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
    yield port


def test_a_machine_without_anything_is_in_order_and_told_how_to_begin(tmp_path: Path) -> None:
    code, checks = doctor()

    assert code == 0
    assert {check["part"] for check in checks} == {
        "installation", "configuration", "clients", "files", "running", "environment",
    }  # fmt: skip
    assert of("configuration") == [
        ("file", "warning", "there is none: the bundled demo stands in for tools",
         "toolfold import"),
    ]  # fmt: skip
    assert of("clients") == [
        ("all", "ok", "no MCP client is found on this machine", "toolfold install --list"),
    ]
    assert list(tmp_path.iterdir()) == []  # it leaves nothing behind


def test_the_report_says_how_things_are_with_the_command_that_mends_them() -> None:
    write(Path(".cursor/mcp.json"), {"mcpServers": {"files": {"command": "files-server"}}})

    ran = CliRunner().invoke(main, ["doctor"])
    lines = ran.stdout.splitlines()

    assert lines[lines.index("clients") :][:3] == [
        "clients",
        "  warning  Cursor: starts 1 server of its own; toolfold is not entered",
        "           toolfold install cursor",
    ]
    assert lines[-1].endswith(" ok, 2 warnings, 0 broken")


def test_each_server_is_started_and_asked_all_at_once() -> None:
    servers = {
        "good": {"command": sys.executable, "args": [str(ODD), "good"]},
        "gone": {"command": "no-such-program"},
        "secretive": {"command": "anything", "env": {"TOKEN": "${NOT_SET_ANYWHERE}"}},
    }
    write(Path("mcp.json"), {"mcpServers": servers})

    code, checks = doctor("--config", "mcp.json", "--timeout", "30")
    found = {check["name"]: check for check in checks if check["part"] == "servers"}

    assert code == 1
    assert found["good"]["health"] in ("ok", "warning")  # slow on a slow machine
    assert " tools in " in found["good"]["message"]
    assert found["gone"]["health"] == found["secretive"]["health"] == "broken"
    assert found["gone"]["fix"] == "install no-such-program, or write its whole path into mcp.json"
    assert found["secretive"]["fix"] == "export NOT_SET_ANYWHERE=…"


def test_servers_are_left_alone_where_they_are_not_asked_for() -> None:
    write(Path("mcp.json"), {"mcpServers": {"gone": {"command": "no-such-program"}}})

    code, checks = doctor("--config", "mcp.json", "--no-servers")

    assert code == 0
    assert not [check for check in checks if check["part"] == "servers"]


def test_a_configuration_that_cannot_be_read_is_broken_and_the_rest_is_looked_at() -> None:
    Path("toolfold.yaml").write_text("mcpServers: [", encoding="utf-8")

    code, checks = doctor("--config", "toolfold.yaml")

    assert code == 1
    assert [check["health"] for check in checks if check["part"] == "configuration"] == ["broken"]
    assert checks[-1]["part"] == "environment"


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        ({"command": "/nowhere/toolfold", "args": ["serve"]},
         "there is no program `/nowhere/toolfold`"),
        ({"command": sys.executable, "args": ["-m", "toolfold", "serve", "--config", "/no/file"]},
         "there is no configuration `/no/file`"),
        ({"url": "http://127.0.0.1:9/mcp?token=geheim"}, "nothing listens at http://127.0.0.1:9/mcp"),
    ],
)  # fmt: skip
def test_an_entry_of_a_client_that_cannot_work_is_broken(entry: Json, fault: str) -> None:
    write(Path(".cursor/mcp.json"), {"mcpServers": {"toolfold": entry}})

    said = f"its entry `toolfold` in ~/.cursor/mcp.json does not work: {fault}"
    assert of("clients") == [("Cursor", "broken", said, "toolfold install cursor")]


def test_servers_beside_toolfold_in_a_client_are_worth_a_look() -> None:
    own = {"command": sys.executable, "args": ["-m", "toolfold", "serve"]}
    write(Path(".cursor/mcp.json"), {"mcpServers": {"toolfold": own, "files": {"command": "x"}}})

    assert of("clients") == [
        ("Cursor", "warning", "toolfold is entered, and it still starts 1 server by itself",
         "toolfold install cursor --only"),
    ]  # fmt: skip


def test_a_file_of_a_client_that_cannot_be_read_is_broken() -> None:
    Path(".cursor").mkdir()
    Path(".cursor/mcp.json").write_text("{", encoding="utf-8")

    assert [row[:2] for row in of("clients")] == [("Cursor", "broken")]


def test_keys_are_present_or_not_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-geheim-1")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "'sk-geheim-2'")

    ran = CliRunner().invoke(main, ["doctor"])

    assert (ran.exit_code, "geheim" in ran.output) == (1, False)
    assert of("environment") == [
        ("OPENAI_API_KEY", "ok", "set", ""),
        ("ANTHROPIC_API_KEY", "broken", "has quotes or spaces around it, which no provider takes",
         "set ANTHROPIC_API_KEY again without them"),
    ]  # fmt: skip


def test_an_address_of_a_proxy_that_does_not_run_is_broken(
    monkeypatch: pytest.MonkeyPatch, free_port: int
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://me:geheim@127.0.0.1:{free_port}/v1?key=geheim")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")

    said = f"leads to http://127.0.0.1:{free_port}, where nothing listens"
    assert of("environment")[2:] == [
        ("OPENAI_BASE_URL", "broken", said, "unset OPENAI_BASE_URL"),
        ("HTTPS_PROXY", "warning",
         "HTTPS_PROXY is set, and servers on this machine would be sought through it",
         "export NO_PROXY=localhost,127.0.0.1"),
    ]  # fmt: skip


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are POSIX's")
def test_a_state_folder_that_others_may_enter_is_worth_a_look(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "toolfold"
    folder.mkdir(parents=True)
    folder.chmod(0o755)

    assert of("files")[0] == (
        "state folder", "warning", f"{folder} can be entered by others", f"chmod 700 {folder}",
    )  # fmt: skip


def test_a_damaged_memory_is_broken(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "toolfold"
    folder.mkdir(parents=True, mode=0o700)
    memory = folder / "memory.sqlite"
    memory.write_bytes(b"no database at all" * 100)

    name, health, _, fix = of("files")[1]
    assert (name, health, fix) == ("memory", "broken", "toolfold memory clear")
    assert memory.read_bytes().startswith(b"no database")


def test_another_databases_file_in_the_memorys_place_is_broken(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "toolfold"
    folder.mkdir(parents=True, mode=0o700)
    with sqlite3.connect(folder / "memory.sqlite") as made:
        made.execute("CREATE TABLE others (a)")
    made.close()

    assert of("files")[1][:2] == ("memory", "broken")


def test_what_runs_is_named_and_servers_that_failed_there_are_worth_a_look(tmp_path: Path) -> None:
    async def status(_: object) -> Json:
        failed = {"name": "files", "state": "failed"}
        return {"transport": "http", "address": "http://127.0.0.1:1/mcp", "servers": [failed]}

    with LoopThread() as loop:
        listening = ControlSocket(tmp_path / "state" / "toolfold", {"status": status})
        loop.run(listening.__aenter__())
        found = of("running")
        loop.run(listening.__aexit__())

    assert found[0][1:] == ("warning", "http://127.0.0.1:1/mcp: files failed", "toolfold status")


def test_a_port_that_another_program_has_is_worth_a_look() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        settings = {"listen": f"127.0.0.1:{port}", "upstreams": [{"name": "a", "url": "http://a"}]}
        write(Path("toolfold.yaml"), {"proxy": settings})
        found = of("running", "--config", "toolfold.yaml")

    assert found[-1][:3] == (
        "proxy's port", "warning", f"127.0.0.1:{port} is another program's",
    )  # fmt: skip


def test_it_fits_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    write(Path(".cursor/mcp.json"), {"mcpServers": {"files": {"command": "files-server"}}})

    shown = ran_on_terminal(50, "doctor")

    assert shown.too_wide(50) == []
    assert "           toolfold install cursor" in shown.lines


def test_a_database_that_is_away_is_one_thing_that_is_broken_and_the_rest_is_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("psycopg")
    monkeypatch.setenv("TOOLS_STORE", "postgresql://app:geheim@127.0.0.1:1/tools")
    write(Path("mcp.json"), {"mcpServers": {}, "serve": {"store": "TOOLS_STORE"}})

    code, checks = doctor("--config", "mcp.json", "--no-servers")
    broken = [check for check in checks if check["health"] == "broken"]

    assert code == 1
    assert [(check["part"], check["name"], check["fix"]) for check in broken] == [
        ("files", "store", "check that PostgreSQL runs, and who may do what there"),
    ]
    assert broken[0]["message"].startswith("the database does not answer as it should: ")
    assert "geheim" not in json.dumps(checks)
    assert {check["part"] for check in checks} > {"files", "running", "environment"}
