"""What becomes of calls when `toolfold serve` is told to stop: they end, or say why not."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as t
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from support.gateways import ERAS, Seen, client, gateway, odd, run, said, until
from support.served import Served, gone
from support.servers.place import SECONDS, Place, command, prepared
from toolfold import prompts
from toolfold.config.serve_settings import ServeSettings

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning"),
]

STOPPED = "the gateway was stopped before it ended"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with prepared(tmp_path) as made:
        yield made.add("good", "waits").serve(audit=str(made.audit), drain=20)


@pytest.fixture
def sign(tmp_path: Path) -> Path:
    """What the tool `wait` waits for."""
    return tmp_path / "sign"


@asynccontextmanager
async def connected(url: str, mode: str) -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(timeout=httpx2.Timeout(30, read=None)) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as c,
    ):
        yield c


def begun(served: Served, sign: Path) -> None:
    """Wait until the tool `wait` runs."""
    end = time.monotonic() + SECONDS
    while not served.place.ran()[f"wait {sign}"]:
        assert time.monotonic() < end
        time.sleep(0.02)


def ended_in_order(served: Served) -> str:
    """Wait for the end of the process, and return its log."""
    served.process.wait(SECONDS)
    log = served.place.errors.read_text("utf-8")
    assert served.process.returncode == 0, log
    assert "Traceback" not in log
    assert " error " not in log
    gone(served.place)
    return log


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_call_under_way_ends_and_a_new_one_is_refused(
    place: Place, sign: Path, how: signal.Signals
) -> None:
    with Served(place) as served:
        served.greet()
        waiting = served.begin("good__wait", str(sign))
        begun(served, sign)
        served.process.send_signal(how)
        served.wait_for("1 call under way")

        assert served.call("good__echo", "late") == prompts.STOPPING

        sign.touch()
        assert served.answer(waiting)["content"][0]["text"] == f"good:{sign}"
        ended_in_order(served)
    told = [(line["tool"], line["outcome"], line["error"]) for line in place.audited()]
    assert told[0][:2] == ("good__echo", "refused")
    assert told[0][2].startswith("Not run: the gateway is stopping")
    assert told[1] == ("good__wait", "ok", None)
    assert place.ran()["echo late"] == 0


def test_a_call_that_does_not_end_in_time_is_told_so(place: Place, sign: Path) -> None:
    place.serve(drain=0.3)
    with Served(place) as served:
        served.greet()
        waiting = served.begin("good__wait", str(sign))
        begun(served, sign)
        served.process.send_signal(signal.SIGTERM)
        answer = served.answer(waiting)
        assert (answer["isError"], answer["content"][0]["text"]) == (True, prompts.STOPPED)
        log = ended_in_order(served)
    assert "1 call had not ended within 0.3 s: stopped" in log
    assert [(x["outcome"], x["error"]) for x in place.audited()] == [("cancelled", STOPPED)]


def test_nothing_is_waited_for_where_nothing_is_under_way(place: Place) -> None:
    place.serve(drain=600)
    with Served(place) as served:
        served.greet()
        served.call("good__echo", "a")
        assert served.end("SIGTERM") < 5
        ended_in_order(served)


def test_whoever_asks_twice_does_not_wait(place: Place, sign: Path) -> None:
    place.serve(drain=600)
    with Served(place) as served:
        served.greet()
        served.begin("good__wait", str(sign))
        begun(served, sign)
        served.process.send_signal(signal.SIGTERM)
        served.wait_for("1 call under way")
        assert served.end("SIGINT") < 5
        assert served.process.returncode == 128 + signal.SIGINT
        gone(place)


def test_a_client_that_leaves_is_not_waited_for(place: Place, sign: Path) -> None:
    place.serve(drain=600)
    with Served(place) as served:
        served.greet()
        served.begin("good__wait", str(sign))
        begun(served, sign)
        served.process.send_signal(signal.SIGTERM)
        served.wait_for("1 call under way")
        assert served.end("closed") < 5
        ended_in_order(served)


@pytest.mark.parametrize("options", [(), ("--http", "127.0.0.1:0")], ids=["stdio", "http"])
def test_a_hang_up_reads_the_configuration_again_and_stops_nothing(
    place: Place, options: tuple[str, ...]
) -> None:
    with Served(place, *options) as served:
        served.wait_for("server good: ready")
        served.process.send_signal(signal.SIGHUP)
        served.wait_for("reload .* by local: SIGHUP; nothing is different")
        if not options:
            served.greet()
            assert served.call("good__echo", "a") == "good:a"
        assert served.process.poll() is None
        served.process.send_signal(signal.SIGHUP)  # however often
        served.end("SIGTERM")
        ended_in_order(served)


def test_a_hang_up_during_the_start_is_obeyed_after_it(place: Place) -> None:
    # A module is imported when the file was read, and signals are taken from then on.
    signals = place.config.parent / "signals.py"
    signals.write_text(
        "import os, signal, threading, time\n"
        "def late() -> None:\n"
        "    while signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:\n"
        "        time.sleep(0.001)\n"
        "    os.kill(os.getpid(), signal.SIGHUP)\n"
        "threading.Thread(target=late, daemon=True).start()\n",
        "utf-8",
    )
    whole = json.loads(place.config.read_text("utf-8"))
    place.config.write_text(
        json.dumps({**whole, "functions": {"own": {"module": "./signals.py"}}}), "utf-8"
    )
    with Served(place, "--http", "127.0.0.1:0") as served:
        served.wait_for("reload .* by local: SIGHUP; nothing is different")
        assert "SIGHUP is ignored" not in place.errors.read_text("utf-8")
        served.end("SIGTERM")
        ended_in_order(served)


def test_a_terminal_that_is_closed_does_not_stop_it(place: Place) -> None:
    child, terminal = pty.fork()
    if not child:
        program, *arguments = command(place, "--http", "127.0.0.1:0")
        environment = {**os.environ, **place.environment, "TERM": "xterm"}
        os.execve(program, [program, *arguments], environment)
    shown = b""
    while b"ready, 12 tools" not in shown or b"/mcp" not in shown:
        shown += os.read(terminal, 65536)
    found = re.search(rb"http://127.0.0.1:\d+/", shown)
    assert found is not None

    os.close(terminal)

    for _ in range(3):
        health = httpx2.get(f"{found[0].decode()}healthz")
        assert health.status_code == 200
    os.kill(child, signal.SIGTERM)
    assert os.waitpid(child, 0)[1] == 0
    gone(place)


@pytest.mark.parametrize("mode", ERAS)
def test_over_http_calls_end_and_nobody_new_is_let_in(place: Place, sign: Path, mode: str) -> None:
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}
    discover = {"jsonrpc": "2.0", "id": 1, "method": "server/discover"}
    modern = {"mcp-method": "server/discover", "mcp-protocol-version": "2026-07-28"}

    async def main(served: Served, url: str) -> None:
        async with connected(url, mode) as c, httpx2.AsyncClient() as http:
            waiting = asyncio.create_task(c.call_tool("good__wait", {"x": str(sign)}))
            await asyncio.to_thread(begun, served, sign)
            served.process.send_signal(signal.SIGTERM)
            await asyncio.to_thread(served.wait_for, "1 call under way")

            late = await c.call_tool("good__echo", {"x": "late"})
            assert (late.is_error, said(late)) == (True, prompts.STOPPING)
            for body, headers in ((hello, {}), (discover, modern)):
                refused = await http.post(url, json=body, headers=headers)
                assert (refused.status_code, refused.text) == (503, "the gateway is stopping\n")
                assert refused.headers["retry-after"]
            health = await http.get(url.removesuffix("mcp") + "healthz")
            assert (health.status_code, health.json()) == (503, {"status": "stopping"})
            assert not waiting.done()

            await asyncio.to_thread(sign.touch)
            assert said(await waiting) == f"good:{sign}"

    with Served(place, "--http", "127.0.0.1:0") as served:
        url = served.wait_for(r"listening on \S+").split()[-1]
        run(lambda: main(served, url))
        ended_in_order(served)
    assert [(x["tool"], x["outcome"]) for x in place.audited()] == [
        ("good__echo", "refused"),
        ("good__wait", "ok"),
    ]


@pytest.mark.parametrize("mode", ERAS)
def test_over_http_open_streams_and_late_calls_end_without_a_traceback(
    place: Place, sign: Path, mode: str
) -> None:
    place.serve(drain=0.3)

    async def main(served: Served, url: str) -> None:
        async with connected(url, mode) as c, connected(url, mode) as listens:
            await listens.list_tools()
            waiting = asyncio.create_task(c.call_tool("good__wait", {"x": str(sign)}))
            await asyncio.to_thread(begun, served, sign)
            served.process.send_signal(signal.SIGTERM)
            stopped = await waiting
            assert (stopped.is_error, said(stopped)) == (True, prompts.STOPPED)
            await asyncio.to_thread(ended_in_order, served)

    with Served(place, "--http", "127.0.0.1:0") as served:
        url = served.wait_for(r"listening on \S+").split()[-1]
        run(lambda: main(served, url))
    assert [(x["outcome"], x["error"]) for x in place.audited()] == [("cancelled", STOPPED)]


# ---- in memory


@pytest.mark.parametrize("mode", ERAS)
def test_resources_prompts_and_completions_are_refused_too(mode: str) -> None:
    async def main() -> None:
        seen = Seen()
        async with gateway(odd("one"), observers=(seen,)) as made, client(made, mode) as c:
            resource = (await c.list_resources()).resources[0]
            prompt = (await c.list_prompts()).prompts[0]
            made.calls.is_closing = True
            ref = t.PromptReference(name=prompt.name)
            for ask in (
                lambda: c.read_resource(resource.uri),
                lambda: c.get_prompt(prompt.name, {}),
                lambda: c.complete(ref, {"name": "x", "value": "y"}),
            ):
                with pytest.raises(MCPError, match="the gateway is stopping"):
                    await ask()
            # What tells of tools and runs none is answered to the end.
            assert (await c.list_tools()).tools

    run(main)


def test_a_question_may_be_answered_while_the_gateway_waits() -> None:
    async def main() -> None:
        async with gateway(odd("one", "old"), serve={"drain": 20}) as made:
            draining: list[asyncio.Task[Any]] = []

            async def answer(context: object, params: Any) -> t.ElicitResult:
                draining.append(asyncio.create_task(made.drain()))
                await until(lambda: made.calls.is_closing)
                return t.ElicitResult(action="accept", content={"v": "yes"})

            async with client(made, "auto", elicitation_callback=answer) as c:
                assert "accept" in said(await c.call_tool("one__elicit", {"x": "q"}))
                await draining[0]
                assert not len(made.calls)

    run(main)


def test_a_question_that_nobody_answers_ends_with_the_rest() -> None:
    async def main() -> None:
        seen = Seen()
        async with gateway(odd("one", "old"), serve={"drain": 0.1}, observers=(seen,)) as made:

            async def answer(context: object, params: Any) -> t.ElicitResult:
                await made.drain()
                return t.ElicitResult(action="accept", content={"v": "late"})

            async with client(made, "auto", elicitation_callback=answer) as c:
                assert said(await c.call_tool("one__elicit", {"x": "q"})) == prompts.STOPPED
            assert [(call.outcome, call.error) for call in seen.calls] == [("cancelled", STOPPED)]

    run(main)


def test_the_time_to_wait_is_a_few_seconds_unless_set() -> None:
    assert ServeSettings().drain == 5.0
