"""`toolfold run` and `toolfold proxy` as programs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from support.model_server import ModelServer, Says
from support.proxies import ask
from toolfold.cli import main
from toolfold.proxy.clients import RUN_CLIENTS, ProgramLaunch, client_of, place_of

TOOLFOLD = [sys.executable, "-m", "toolfold"]
ASK = """
import os, sys, urllib.request, json
body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": [
    {"type": "function", "function": {"name": f"mcp__s__t{i}", "description": "Does it. " * 99}}
    for i in range(200)]}
url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
request = urllib.request.Request(url, json.dumps(body).encode(), {"authorization": "Bearer k"})
print(json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"])
sys.exit(int(sys.argv[1]))
"""


def run(*arguments: str, state: Path, **more: Any) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "XDG_STATE_HOME": str(state), "HOME": str(state)}
    return subprocess.run(
        [*TOOLFOLD, "run", *arguments],
        capture_output=True,
        text=True,
        env=environment,
        timeout=50,
        cwd=state,
        **more,
    )


def test_a_program_runs_behind_the_proxy_and_ends_with_its_own_code(tmp_path: Path) -> None:
    with ModelServer(Says("Hello.")) as model:
        upstream = ["--upstream", model.url]
        ended = run(*upstream, "--", sys.executable, "-c", ASK, "7", state=tmp_path)
    assert ended.stdout == "Hello.\n"
    assert ended.returncode == 7
    assert ended.stderr.startswith("toolfold: 1 request, 1 folded, 0 searches; ")
    assert "tokens of tool definitions saved" in ended.stderr
    assert model.requests[0].headers["authorization"] == "Bearer k"
    assert len(model.requests[0].body["tools"]) == 3


def test_a_program_that_a_signal_ends_is_told_as_a_shell_tells_it(tmp_path: Path) -> None:
    kill = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    ended = run("-q", "--", sys.executable, "-c", kill, state=tmp_path)
    assert (ended.returncode, ended.stderr) == (128 + signal.SIGKILL, "")


def test_signals_go_on_to_the_program(tmp_path: Path) -> None:
    waits = (
        "import signal, sys\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))\n"
        "print('ready', flush=True)\n"
        "signal.pause()"
    )
    with subprocess.Popen(
        [*TOOLFOLD, "run", "--", sys.executable, "-c", waits],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
    ) as started:
        assert started.stdout is not None
        assert started.stdout.readline() == "ready\n"
        started.send_signal(signal.SIGTERM)
        _, errors = started.communicate(timeout=30)
    assert started.returncode == 3
    assert errors == "toolfold: 0 requests, nothing to fold\n"


def test_a_program_that_is_not_there_is_127(tmp_path: Path) -> None:
    ended = run("--", "no-such-program-anywhere", state=tmp_path)
    assert ended.returncode == 127
    assert "no-such-program-anywhere" in ended.stderr


def launched(program: str, environ: dict[str, str], *, named: bool = False) -> ProgramLaunch:
    client = client_of(program)
    place = place_of("http://127.0.0.1:9", client.upstreams(environ), named=named)
    return client.launch(["do", "it"], environ, place)


def test_claude_code_sends_all_its_tools_to_the_proxy() -> None:
    launch = launched("/usr/bin/claude", {})
    assert launch.arguments == ("do", "it")
    assert launch.environment == {
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
        "ENABLE_TOOL_SEARCH": "false",
    }


@pytest.mark.parametrize(
    ("environ", "named", "auth"),
    [
        ({"OPENAI_API_KEY": "k"}, False, 'env_key="OPENAI_API_KEY"'),
        ({}, False, "requires_openai_auth=true"),
        ({}, True, None),
    ],
)
def test_codex_gets_a_provider_by_its_arguments(
    environ: dict[str, str], named: bool, auth: str | None
) -> None:
    launch = launched("codex", environ, named=named)
    assert launch.arguments[-2:] == ("do", "it")
    options = launch.arguments[1:-2:2]
    assert options[0] == 'model_provider="toolfold"'
    assert 'model_providers.toolfold.base_url="http://127.0.0.1:9/v1"' in options
    assert 'model_providers.toolfold.wire_api="responses"' in options
    assert len(options) == (4 if auth is None else 5)
    assert auth is None or options[-1] == f"model_providers.toolfold.{auth}"
    assert launch.environment == {}


def test_opencode_keeps_what_its_variable_says_beside_the_addresses() -> None:
    given = {"OPENCODE_CONFIG_CONTENT": '{"theme": "x", "provider": {"local": {}}}'}
    launch = launched("opencode", given)
    content = json.loads(launch.environment["OPENCODE_CONFIG_CONTENT"])
    assert content["theme"] == "x"
    assert content["provider"] == {
        "local": {},
        "anthropic": {"options": {"baseURL": "http://127.0.0.1:9/anthropic/v1"}},
        "openai": {"options": {"baseURL": "http://127.0.0.1:9/openai/v1"}},
    }


def test_goose_gets_one_bare_host() -> None:
    assert launched("goose", {"GOOSE_PROVIDER": "anthropic"}).environment == {
        "ANTHROPIC_HOST": "http://127.0.0.1:9",
        "OPENAI_HOST": "http://127.0.0.1:9",
        "OPENAI_BASE_PATH": "v1/chat/completions",
    }


@pytest.mark.parametrize("program", ["llm", "python", "./agent.sh"])
def test_any_program_gets_the_variables_of_the_sdks_and_its_own_upstreams(program: str) -> None:
    environ = {"OPENAI_BASE_URL": "http://10.0.0.1/v1"}
    assert launched(program, environ).environment == {
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:9/anthropic",
        "OPENAI_BASE_URL": "http://127.0.0.1:9/openai/v1",
        "OPENAI_API_BASE": "http://127.0.0.1:9/openai/v1",
    }
    urls = [upstream.url for upstream in client_of(program).upstreams(environ)]
    assert urls == ["https://api.anthropic.com", "http://10.0.0.1/v1"]


def test_every_known_program_has_a_page() -> None:
    folder = Path(__file__).parents[2] / "docs" / "proxy"
    for client in RUN_CLIENTS.values():
        page = folder / f"{client.title.lower().replace(' ', '-')}.md"
        assert page.read_text("utf-8").startswith(f"# {client.title} through the proxy\n")
        assert f"toolfold run -- {client.name}" in page.read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no upstream is named"),
        (["--upstream", "localhost:11434"], "is no address of a model server"),
        (["--upstream", "http://u:p@host"], "holds a password"),
        (["--upstream", "http://h", "--listen", "x"], "the proxy is to listen at 'x'"),
        (["--upstream", "http://h", "--listen", "0.0.0.0:1"], "would serve everybody"),
    ],
)
def test_what_cannot_be_used_is_said_with_the_fix(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    result = CliRunner().invoke(main, ["proxy", *arguments])
    assert result.exit_code == 2
    assert message in result.stderr
    assert "hint" in result.stderr


def test_the_proxy_listens_until_it_is_told_to_stop(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with ModelServer(Says("Hi.")) as model, log.open("w") as errors:
        config = tmp_path / "toolfold.yaml"
        config.write_text(
            "proxy:\n  listen: 127.0.0.1:0\n  store: file\n  upstreams:\n"
            f"    - name: local\n      url: {model.url}/v1\n      key: ${{LOCAL_KEY}}\n"
            f"serve:\n  state_dir: {tmp_path / 'state'}\n"
        )
        with subprocess.Popen(
            [*TOOLFOLD, "proxy", "--config", str(config)],
            stderr=errors,
            env={**os.environ, "LOCAL_KEY": "the-key-of-the-local-one"},
        ) as started:
            end = time.monotonic() + 20
            while "listening on " not in log.read_text("utf-8"):
                assert time.monotonic() < end, log.read_text("utf-8")
                time.sleep(0.05)
            address = log.read_text("utf-8").split("listening on ")[1].split()[0]
            hello = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
            assert ask(address, "/v1/chat/completions", hello).status == 200
            started.send_signal(signal.SIGTERM)
            assert started.wait(20) == 0
    assert model.requests[0].headers["authorization"] == "Bearer the-key-of-the-local-one"
    assert "the-key-of-the-local-one" not in log.read_text("utf-8")
    assert "1 request, nothing to fold" in log.read_text("utf-8")
    assert (tmp_path / "state" / "proxy.sqlite").exists()
