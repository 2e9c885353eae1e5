"""Six real servers behind three tools, with every client: list, search, describe, call."""

from __future__ import annotations

from pathlib import Path

import pytest
from clients import Answers, Target, Way, connected, text
from gateways import Gateway, configured
from servers import World
from ways import HTTP_WAYS, PYTHON_WAYS, every_way

from conftest import Reach, run, until

BRIDGE = ["tool_search", "tool_describe", "tool_call"]
PINNED = ["everything__get-tiny-image", "time__convert_time"]
NOON = {"source_timezone": "Etc/UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}


@every_way
def test_a_client_lists_searches_describes_and_calls(
    way: Way, folded: Gateway, reach: Reach
) -> None:
    async def main() -> None:
        async with connected(way, reach(folded, way)) as client:
            tools = await client.tools()
            found = await client.search("read the contents of a text file")
            told = text(await client.call("tool_describe", {"name": "filesystem__read_text_file"}))
            echoed = await client.through("everything__echo", {"message": f"hello {way}"})
            direct = await client.call("time__convert_time", NOON)

        assert sorted(tool["name"] for tool in tools) == sorted([*BRIDGE, *PINNED])
        assert all(tool.get("title") for tool in tools if tool["name"] in BRIDGE)
        if client.version:
            assert client.version == {"old": "2025-11-25", "new": "2026-07-28"}[way.era]
        assert "filesystem__read_text_file(path: string" in found
        assert "of 53 tools" in found
        assert '"tail"' in told and '"path"' in told
        assert text(echoed) == f"Echo: hello {way}"
        assert direct["structuredContent"]["target"]["datetime"].endswith("T21:00:00+09:00")

    run(main)


@every_way
def test_below_the_gate_a_client_lists_and_calls_the_tools_themselves(
    way: Way, plain: Gateway, reach: Reach
) -> None:
    async def main() -> None:
        async with connected(way, reach(plain, way)) as client:
            names = [tool["name"] for tool in await client.tools()]
            echoed = await client.call("everything__echo", {"message": "plain"})

        assert len(names) == 55
        assert all(len(name) <= 64 for name in names)
        assert not set(BRIDGE) & set(names)
        assert {name.partition("__")[0] for name in names} == {
            "everything", "fetch", "filesystem", "git", "memory", "time",
        }  # fmt: skip
        assert text(echoed) == "Echo: plain"

    run(main)


@pytest.mark.parametrize("way", PYTHON_WAYS, ids=str)
def test_what_a_search_finds_joins_the_list_in_reveal_mode(
    way: Way, world: World, tmp_path: Path
) -> None:
    made = configured(tmp_path, {"time": world.entries["time"]}, mode="reveal")

    async def main(target: Target) -> None:
        answers = Answers()
        async with connected(way, target, answers) as client:
            before = [tool["name"] for tool in await client.tools()]
            found = await client.search("convert a time between zones")
            if way.era == "old":
                await until(lambda: "notifications/tools/list_changed" in answers.changes)
            after = [tool["name"] for tool in await client.tools()]
            result = await client.call("time__convert_time", NOON)

        assert before == ["tool_search", "tool_describe"]
        assert "time__convert_time" in found
        # What is only named does not join the list.
        assert set(after) == {*before, "time__convert_time"}
        assert result["structuredContent"]["time_difference"] == "+9.0h"

    if way.over == "stdio":
        run(lambda: main(Target(command=made.command)))
    else:
        with made.listening() as url:
            run(lambda: main(Target(url=url)))


@pytest.mark.parametrize("way", HTTP_WAYS, ids=str)
def test_a_mistake_is_answered_with_the_next_step(way: Way, folded: Gateway, reach: Reach) -> None:
    async def main() -> None:
        async with connected(way, reach(folded, way)) as client:
            misspelt = await client.through("everything__ecko", {"message": "x"})
            unfit = await client.through("everything__echo", {"massage": "x"})
            refused = await client.through("filesystem__read_text_file", {"path": "/nowhere"})

        assert misspelt["isError"] is True
        assert "everything__echo" in text(misspelt)
        assert unfit["isError"] is True
        assert "message" in text(unfit)
        assert refused["isError"] is True
        assert "outside allowed directories" in text(refused)

    run(main)
