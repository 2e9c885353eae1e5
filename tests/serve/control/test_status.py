"""`toolfold status`: every running gateway says how it stands, to its own user alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from support.servers.place import HELLO, SECONDS, Place, command, prepared
from toolfold.cli import main

pytestmark = pytest.mark.slow

SECRET = "q7Rt2LmX9vB4nK8sW1zH5cJ3"
DIES = f"import sys; print('My key is {SECRET}', file=sys.stderr); sys.exit(3)"
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with prepared(tmp_path) as made:
        yield made


@contextmanager
def served(place: Place, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """A running `toolfold serve`."""
    with place.errors.open("ab") as errors:
        process = subprocess.Popen(
            command(place, *options),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env={**os.environ, **place.environment},
        )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def status(*options: str) -> tuple[int, list[dict[str, Any]]]:
    result = CliRunner().invoke(main, ["status", "--json", *options])
    return result.exit_code, json.loads(result.stdout)["gateways"]


def shown(place: Place, when: Callable[[list[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
    """What is running, once it is as a test waits for."""
    end = time.monotonic() + 2 * SECONDS
    while True:
        _, found = status("--config", str(place.config))
        if when(found):
            return found
        assert time.monotonic() < end, (found, place.errors.read_text("utf-8"))
        time.sleep(0.05)


def states(found: list[dict[str, Any]]) -> list[dict[str, str]]:
    return [{s["name"]: s["state"] for s in one.get("servers", ())} for one in found]


def say(process: subprocess.Popen[bytes], message: Any) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps(message).encode() + b"\n")
    process.stdin.flush()


def heard(process: subprocess.Popen[bytes], number: int) -> Any:
    assert process.stdout is not None
    while (line := json.loads(process.stdout.readline())).get("id") != number:
        pass
    return line["result"]


def test_a_gateway_over_stdio_says_how_it_and_its_servers_stand(place: Place) -> None:
    place.add("good")
    dead = {"command": sys.executable, "args": ["-c", DIES], "env": {"TOKEN": SECRET}}
    hanging = {"command": sys.executable, "args": ["-c", "import time; time.sleep(600)"]}
    whole = json.loads(place.config.read_text("utf-8"))
    whole["mcpServers"].update(jira=dead, slow=hanging)
    place.config.write_text(json.dumps(whole), "utf-8")
    wanted = {"good": "ready", "slow": "starting"}
    with served(place) as process:
        say(process, HELLO)
        heard(process, 0)
        say(process, READY)
        params = {"name": "good__echo", "arguments": {"x": "hi", "n": 0}}
        say(process, {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        heard(process, 1)

        [one] = shown(
            place,
            lambda found: (
                bool(found)
                and found[0]["servers"][1]["cause"] is not None
                and wanted.items() <= states(found)[0].items()
            ),
        )
        text = CliRunner().invoke(main, ["status", "--config", str(place.config)])

    assert one["pid"] == process.pid
    assert one["transport"] == "stdio"
    assert one["address"] is None
    assert one["config"] == str(place.config)
    assert one["answers"] is True
    assert one["since"].endswith("Z")
    assert (one["calls"], one["failed"], one["clients"]) == (1, 0, 1)
    good, jira, slow = one["servers"]
    assert good["calls"] == 1
    assert good["tools"] > 0
    assert jira["cause"] == "ended with 3 before it was ready"
    assert jira["state"] in ("failed", "starting")
    assert slow["cause"] is None
    assert SECRET not in json.dumps(one)
    assert "My key" not in json.dumps(one)
    assert text.exit_code == 0
    assert f"gateway {process.pid}  stdio, since 20" in text.stdout
    assert str(place.config) in text.stdout
    assert "good  ready, " in text.stdout
    assert "ended with 3 before it was ready" in text.stdout
    assert SECRET not in text.stdout


def test_two_gateways_are_both_listed_and_one_that_ends_is_not(place: Place) -> None:
    place.add("good")
    with served(place) as first, served(place, "--http", "127.0.0.1:0") as second:
        found = shown(place, lambda now: len(now) == 2 and any(one.get("address") for one in now))
        assert {one["pid"]: one["transport"] for one in found} == {
            first.pid: "stdio",
            second.pid: "http",
        }
        [address] = [one["address"] for one in found if one["address"]]
        assert address.startswith("http://127.0.0.1:")

        second.send_signal(signal.SIGTERM)
        second.wait(SECONDS)
        [left] = shown(place, lambda now: len(now) == 1)
        assert left["pid"] == first.pid


def test_what_a_killed_gateway_leaves_is_removed_and_it_is_not_listed(place: Place) -> None:
    place.add("good")
    run = place.config.parent / "state" / "run"
    with served(place) as process:
        shown(place, lambda now: len(now) == 1)
        assert [path.stat().st_mode & 0o777 for path in (run, *run.iterdir())] == [0o700, 0o600]
        process.kill()
        process.wait()
        assert len(list(run.iterdir())) == 1

        code, found = status("--config", str(place.config))

    assert (code, found) == (1, [])
    assert list(run.iterdir()) == []


def test_a_gateway_that_starts_removes_what_a_killed_one_left(place: Place) -> None:
    run = place.config.parent / "state" / "run"
    place.add("good")
    with served(place) as first:
        shown(place, lambda now: len(now) == 1)
        first.kill()
        first.wait()
        [stale] = run.iterdir()
        with served(place) as second:
            end = time.monotonic() + SECONDS
            while not any(path.name.startswith(f"{second.pid}-") for path in run.iterdir()):
                assert time.monotonic() < end
                time.sleep(0.02)
            assert not stale.exists()


def test_a_gateway_that_hangs_is_listed_as_one_that_does_not_answer(place: Place) -> None:
    place.add("good")
    with served(place) as process:
        shown(place, lambda now: len(now) == 1)
        process.send_signal(signal.SIGSTOP)
        code, [one] = status("--config", str(place.config))
        process.send_signal(signal.SIGCONT)

    assert code == 1
    assert one == {
        "pid": process.pid,
        "answers": False,
        "error": "does not answer within 3 s",
    }


def test_a_state_folder_whose_path_is_too_long_for_a_socket_is_no_matter(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*(["a-rather-long-name-of-a-folder"] * 5))
    deep.mkdir(parents=True)
    with prepared(deep) as place:
        place.add("good")
        with served(place) as process:
            [one] = shown(place, lambda now: len(now) == 1)
            [link] = (deep / "state" / "run").iterdir()
            target = link.readlink()
            assert one["pid"] == process.pid
            assert target.parent.stat().st_mode & 0o777 == 0o700
            process.kill()
            process.wait()
            assert status("--config", str(place.config)) == (1, [])
            assert not target.parent.exists()


def test_where_none_runs_a_sentence_says_where_was_looked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("TOOLFOLD_CONFIG", raising=False)

    result = CliRunner().invoke(main, ["status"])

    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith(
        f"no gateway runs with its state in `{tmp_path / 'state' / 'toolfold'}`"
    )
    assert not (tmp_path / "state").exists()


def test_a_strangers_file_in_the_folder_does_not_keep_one_from_asking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("TOOLFOLD_CONFIG", raising=False)
    Path("toolfold.yaml").write_text("serve: {state_dir: /elsewhere}\n", "utf-8")

    result = CliRunner().invoke(main, ["status"])

    assert result.exit_code == 1
    assert "this folder's file says how to serve" in result.stderr
    assert "elsewhere" not in result.stderr


@pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="only root can be somebody else"
)
def test_another_user_gets_no_answer_though_the_files_let_them_in() -> None:
    ask = (
        "import socket, sys\n"
        "s = socket.socket(socket.AF_UNIX)\n"
        "s.settimeout(20)\n"
        "s.connect(sys.argv[1])\n"
        's.sendall(b\'{"toolfold": 1, "verb": "status"}\\n\')\n'
        "print(len(s.recv(10)))\n"
    )

    def asked(path: Path, **who: Any) -> str:
        done = subprocess.run(
            ["python3", "-c", ask, str(path)],
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
            env={"PATH": os.environ["PATH"]},
            executable=sys.executable if not who else "/usr/bin/python3",
            **who,
        )
        return done.stdout.strip() or done.stderr.strip().splitlines()[-1]

    if not Path("/usr/bin/python3").exists():
        pytest.skip("there is no python that another user may run")
    with tempfile.TemporaryDirectory(dir="/tmp") as name, prepared(Path(name)) as place:
        Path(name).chmod(0o755)
        place.add("good")
        with served(place):
            shown(place, lambda now: len(now) == 1)
            run = Path(name) / "state" / "run"
            [socket] = run.iterdir()
            nobody = {"user": 65534, "group": 65534, "extra_groups": []}
            assert "PermissionError" in asked(socket, **nobody)
            for path, mode in ((run.parent, 0o755), (run, 0o755), (socket, 0o666)):
                path.chmod(mode)
            assert asked(socket, **nobody) in (
                "0",
                "ConnectionResetError: [Errno 104] Connection reset by peer",
                "BrokenPipeError: [Errno 32] Broken pipe",
            )
            assert asked(socket) == "10"


def test_a_gateway_that_waits_for_its_last_calls_says_that_it_is_stopping(place: Place) -> None:
    sign = place.config.parent / "sign"
    place.add("good", "waits").serve(drain=SECONDS)
    with served(place) as process:
        say(process, HELLO)
        heard(process, 0)
        say(process, READY)
        params = {"name": "good__wait", "arguments": {"x": str(sign), "n": 0}}
        say(process, {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        [one] = shown(place, lambda found: bool(found) and found[0].get("in_flight") == 1)
        assert one["stopping"] is False

        process.send_signal(signal.SIGTERM)
        shown(place, lambda found: bool(found) and found[0].get("stopping") is True)
        text = CliRunner().invoke(main, ["status", "--config", str(place.config)]).stdout
        sign.touch()

        assert "1 under way, stopping" in text.splitlines()[0]
        assert process.wait(SECONDS) == 0
