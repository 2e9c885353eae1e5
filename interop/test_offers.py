"""Resources, prompts and completions of real servers, with every client."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from clients import Answers, Target, Way, connected
from gateways import Gateway, configured
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ResourceUpdated
from servers import World, everything_entry
from test_questions import reached
from ways import every_way, python_way

from conftest import Reach, run, until

DOCUMENT = "demo://resource/static/document/features.md"


@pytest.fixture(scope="session")
def offering(world: World, tmp_path_factory: pytest.TempPathFactory) -> Gateway:
    """The servers that have more than tools; the first of them twice."""
    entries = {name: world.entries[name] for name in ("everything", "memory")}
    twice = {**entries, "again": world.entries["everything"]}
    return configured(tmp_path_factory.mktemp("offering"), twice)


@every_way
def test_resources_are_listed_and_read(way: Way, offering: Gateway, reach: Reach) -> None:
    async def main() -> None:
        async with connected(way, reach(offering, way)) as client:
            listed = (await client.ask("resources/list"))["resources"]
            templates = (await client.ask("resources/templates/list"))["resourceTemplates"]
            read = await client.ask("resources/read", uri=DOCUMENT)
            other = await client.ask("resources/read", uri=f"toolfold:everything:{DOCUMENT}")

        addresses = [resource["uri"] for resource in listed]
        assert len(set(addresses)) == len(addresses) == 15
        assert {DOCUMENT, f"toolfold:everything:{DOCUMENT}", "memory://knowledge-graph"} <= {
            *addresses
        }
        assert "demo://resource/dynamic/text/{resourceId}" in [t["uriTemplate"] for t in templates]
        assert read["contents"][0]["text"].startswith("#")
        assert other["contents"][0]["text"] == read["contents"][0]["text"]

    run(main)


@every_way
def test_prompts_are_listed_and_filled_in(way: Way, offering: Gateway, reach: Reach) -> None:
    async def main() -> None:
        async with connected(way, reach(offering, way)) as client:
            listed = (await client.ask("prompts/list"))["prompts"]
            given = {"city": "Oslo", "state": "Norway"}
            got = await client.ask("prompts/get", name="everything__args-prompt", arguments=given)

        assert "again__args-prompt" in [prompt["name"] for prompt in listed]
        assert len(listed) == 8
        said = got["messages"][0]["content"]["text"]
        assert "Oslo, Norway" in said

    run(main)


@python_way
def test_arguments_are_completed(way: Way, offering: Gateway, reach: Reach) -> None:
    async def main() -> None:
        prompt = {"type": "ref/prompt", "name": "everything__completable-prompt"}
        template = {"type": "ref/resource", "uri": "demo://resource/dynamic/text/{resourceId}"}
        async with connected(way, reach(offering, way)) as client:
            departments = await client.ask(
                "completion/complete", ref=prompt, argument={"name": "department", "value": "S"}
            )
            numbers = await client.ask(
                "completion/complete", ref=template, argument={"name": "resourceId", "value": "7"}
            )

        assert departments["completion"]["values"] == ["Sales", "Support"]
        assert numbers["completion"]["values"] == ["7"]

    run(main)


@pytest.mark.parametrize("over", ["stdio", "http"])
def test_a_subscriber_hears_that_a_resource_changed(over: str, tmp_path: Path) -> None:
    made = configured(tmp_path, {"everything": everything_entry()})
    way = Way("official", "old", over)  # type: ignore[arg-type]

    async def main(target: Target) -> None:
        answers = Answers()
        async with connected(way, target, answers) as driver:
            client: Client = driver.client  # type: ignore[attr-defined]
            await client.subscribe_resource(DOCUMENT)
            await driver.through("everything__toggle-subscriber-updates")
            await until(lambda: "notifications/resources/updated" in answers.changes)
            await driver.through("everything__toggle-subscriber-updates")

    with reached(made, way) as target:
        run(lambda: main(target))


def test_a_listener_of_the_newer_revision_hears_it_on_its_stream(tmp_path: Path) -> None:
    made = configured(tmp_path, {"everything": everything_entry()})

    async def main(url: str) -> None:
        heard: list[Any] = []
        async with (
            Client(streamable_http_client(url)) as client,
            client.listen(resource_subscriptions=[DOCUMENT]) as events,
        ):
            toggle = {"name": "everything__toggle-subscriber-updates", "arguments": {}}
            await client.call_tool("tool_call", toggle)
            async for event in events:
                heard.append(event)
                break
            await client.call_tool("tool_call", toggle)
        assert heard == [ResourceUpdated(uri=DOCUMENT)]

    with made.listening() as url:
        run(lambda: main(url))
