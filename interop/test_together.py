"""All six servers with all clients at once; tokens; servers over every transport."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from clients import Answers, Driver, Refusal, Target, Way, connected, text
from gateways import Gateway, configured
from servers import World, everything_entry
from test_questions import reached, texts
from ways import HTTP_WAYS, PYTHON_WAYS

from conftest import Reach, run

TOKENS = {"TOOLFOLD_TIME_TOKEN": "t" * 32, "TOOLFOLD_ALL_TOKEN": "a" * 32}


async def rounds(client: Driver, world: World, who: str, count: int) -> None:
    """Call a tool of each of the six servers, and see that the answers are one's own."""
    notes = str(world.files / "notes.md")
    for number in range(count):
        mark = f"{who} {number}"
        echoed = await client.through("everything__echo", {"message": mark})
        assert text(echoed) == f"Echo: {mark}"
        read = await client.through("filesystem__read_text_file", {"path": notes})
        assert text(read).startswith("# Notes")
        at = {"source_timezone": "Etc/UTC", "time": f"{number:02}:00", "target_timezone": "Etc/UTC"}
        converted = await client.call("time__convert_time", at)  # pinned
        assert f"T{number:02}:00" in converted["structuredContent"]["target"]["datetime"]
        found = await client.through("memory__search_nodes", {"query": mark})
        assert found["structuredContent"] == {"entities": [], "relations": []}
        log = await client.through("git__git_log", {"repo_path": str(world.repository)})
        assert "Message: first" in text(log)
        page = {"url": f"{world.web}/page", "raw": True}
        fetched = await client.through("fetch__fetch", page)
        assert "Some text." in text(fetched)


def test_all_clients_at_once_use_all_six_servers(
    world: World, folded: Gateway, reach: Reach
) -> None:
    async def main() -> None:
        async def one(way: Way, count: int) -> None:
            async with connected(way, reach(folded, way)) as client:
                await rounds(client, world, str(way), count)

        async with asyncio.TaskGroup() as group:
            for way in HTTP_WAYS:
                # Each of the Inspector's requests is a process.
                group.create_task(one(way, 1 if way.client == "inspector" else 10))

    run(main)
    outcomes = [record["outcome"] for record in folded.audit]
    assert outcomes.count("ok") >= 4 * 60 + 2 * 6


# ---- servers over every transport


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextmanager
def running(port: int, kind: str) -> Generator[None]:
    """The server that has everything, as a process of its own."""
    entry = everything_entry(kind)
    process = subprocess.Popen(
        [entry["command"], *entry["args"]],
        env={**os.environ, "PORT": str(port)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.kill()
        process.wait()


async def _listens(port: int) -> None:
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.05)
        else:
            writer.close()
            return


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Generator[Gateway]:
    """The same server three times, each over a transport of its own."""
    with ExitStack() as stack:
        http, sse = free_port(), free_port()
        stack.enter_context(running(http, "streamableHttp"))
        stack.enter_context(running(sse, "sse"))
        for port in (http, sse):
            asyncio.run(_listens(port))
        entries: dict[str, Any] = {
            "pipes": everything_entry(),
            "http": {"url": f"http://127.0.0.1:{http}/mcp"},
            "sse": {"type": "sse", "url": f"http://127.0.0.1:{sse}/sse"},
        }
        yield configured(tmp_path_factory.mktemp("three"), entries)


@pytest.mark.parametrize("way", PYTHON_WAYS, ids=str)
def test_servers_over_pipes_http_and_sse_serve_alike(way: Way, three: Gateway) -> None:
    async def main(target: Target) -> None:
        yes = {"action": "accept", "content": {"name": str(way)}}
        async with connected(way, target, Answers(elicit=lambda params: yes)) as client:
            for server in ("pipes", "http", "sse"):
                image = await client.through(f"{server}__get-tiny-image")
                seen: list[Any] = []
                await client.through(
                    f"{server}__trigger-long-running-operation",
                    {"duration": 0.2, "steps": 2},
                    progress=seen,
                )
                asked = await client.through(f"{server}__trigger-elicitation-request")

                assert [block["type"] for block in image["content"]] == ["text", "image", "text"]
                assert seen == [(1, 2), (2, 2)]
                assert f"- Name: {way}" in texts(asked)

    with reached(three, way) as target:
        run(lambda: main(target))


@pytest.mark.parametrize(("kind", "path"), [("streamableHttp", "mcp"), ("sse", "sse")])
def test_a_server_elsewhere_that_was_restarted_is_found_again(
    kind: str, path: str, tmp_path: Path
) -> None:
    port = free_port()
    entry = {"url": f"http://127.0.0.1:{port}/{path}", "type": "sse" if path == "sse" else "http"}
    made = configured(tmp_path, {"away": entry})

    async def answered(client: Driver, message: str) -> None:
        """Ask until it is there; until then, every answer is a clear one."""
        await _listens(port)
        while True:
            result = await client.through("away__echo", {"message": message})
            if text(result) == f"Echo: {message}":
                return
            assert result["isError"] is True
            await asyncio.sleep(0.1)

    async def main(url: str) -> None:
        async with connected(Way("official", "old", "http"), Target(url=url)) as client:
            with running(port, kind):
                await answered(client, "first")
            with running(port, kind):
                await answered(client, "second")

    with made.listening() as url:
        run(lambda: main(url))


# ---- tokens


@pytest.fixture(scope="module")
def guarded(world: World, tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """A gateway that wants tokens: one for everything, one for the clock alone."""
    entries = {name: world.entries[name] for name in ("everything", "time")}
    tokens = [
        {"name": "all", "env": "TOOLFOLD_ALL_TOKEN"},
        {"name": "clock", "env": "TOOLFOLD_TIME_TOKEN", "allow": ["@time"]},
    ]
    made = configured(tmp_path_factory.mktemp("guarded"), entries, tokens=tokens)
    with made.listening(TOKENS) as url:
        yield url


def bearing(url: str, variable: str) -> Target:
    return Target(url=url, headers={"Authorization": f"Bearer {TOKENS[variable]}"})


@pytest.mark.parametrize("way", HTTP_WAYS, ids=str)
def test_a_client_sees_what_its_token_is_for_and_nothing_else(way: Way, guarded: str) -> None:
    async def main() -> None:
        async with connected(way, bearing(guarded, "TOOLFOLD_TIME_TOKEN")) as client:
            found = await client.search("echo back a message")
            outside = await client.through("everything__echo", {"message": "x"})
            unknown = await client.through("nothing__echo", {"message": "x"})
            own = await client.search("convert a time between zones")
            prompts = (await client.ask("prompts/list"))["prompts"]
        async with connected(way, bearing(guarded, "TOOLFOLD_ALL_TOKEN")) as client:
            echoed = await client.through("everything__echo", {"message": "all"})

        assert "everything" not in found
        assert outside["isError"] is True
        assert text(outside).replace("everything", "nothing") == text(unknown)
        assert "time__convert_time" in own
        assert prompts == []
        assert text(echoed) == "Echo: all"

    run(main)


def test_without_its_token_nobody_gets_in(guarded: str) -> None:
    async def main() -> None:
        with pytest.raises(Refusal):
            async with connected(Way("inspector", "old", "http"), Target(url=guarded)) as client:
                await client.tools()

    run(main)
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic eDp5"}):
        answer = httpx2.post(guarded, json={"jsonrpc": "2.0"}, headers=headers)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")


# ---- what may destroy


@pytest.mark.parametrize("way", PYTHON_WAYS, ids=str)
def test_a_person_is_asked_before_a_real_file_is_written(
    way: Way, world: World, tmp_path: Path
) -> None:
    files = World(tmp_path, world.web)
    files.files.mkdir()
    entries = {"filesystem": files.entries["filesystem"]}
    made = configured(tmp_path / "gateway", entries, destructive="ask")
    replies = iter([{"action": "decline"}, {"action": "accept", "content": {}}])
    path = files.files / "new.txt"
    given = {"path": str(path), "content": "written"}

    async def main(target: Target) -> None:
        answers = Answers(elicit=lambda params: next(replies))
        async with connected(way, target, answers) as client:
            declined = await client.through("filesystem__write_file", given)
            assert not path.exists()
            await client.through("filesystem__write_file", given)

        assert declined["isError"] is True
        assert path.read_text() == "written"
        assert [str(path) in asked["message"] for asked in answers.asked] == [True, True]

    with reached(made, way) as target:
        run(lambda: main(target))
