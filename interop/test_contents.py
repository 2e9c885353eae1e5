"""Whatever a result can hold reaches each client, just as it does without the gateway."""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from clients import INSPECTOR, Target, Way, connected
from gateways import Gateway, configured
from servers import World
from ways import every_way

from conftest import Reach, run

PNG, WAV = b"\x89PNG", b"RIFF"


@pytest.fixture(scope="session")
def media(world: World, tmp_path_factory: pytest.TempPathFactory) -> Gateway:
    """The two servers that answer with more than text, half of it behind the bridge."""
    entries = {name: world.entries[name] for name in ("everything", "filesystem")}
    return configured(tmp_path_factory.mktemp("media"), entries, core=("everything__*",))


def calls(world: World) -> list[tuple[str, str, dict[str, Any]]]:
    data = "data:text/plain,hello"
    return [
        ("everything", "get-tiny-image", {}),
        ("everything", "get-structured-content", {"location": "New York"}),
        ("everything", "get-resource-links", {"count": 2}),
        ("everything", "gzip-file-as-resource", {"data": data, "outputType": "resource"}),
        ("everything", "get-annotated-message", {"messageType": "error", "includeImage": True}),
        ("filesystem", "read_media_file", {"path": str(world.files / "pixel.png")}),
        ("filesystem", "read_media_file", {"path": str(world.files / "silence.wav")}),
    ]


@pytest.fixture(scope="session")
def wanted(world: World) -> dict[str, list[dict[str, Any]]]:
    """What each client makes of the results at the servers themselves."""
    found: dict[str, list[dict[str, Any]]] = {}

    async def main() -> None:
        for client in ("official", "fastmcp", "inspector"):
            way = Way(client, "old", "stdio")
            results = found.setdefault(client, [])
            for server in ("everything", "filesystem"):
                entry = world.entries[server]
                target = Target(command=[entry["command"], *entry["args"]])
                async with connected(way, target) as driver:
                    for at, name, arguments in calls(world):
                        if at == server:
                            results.append(await driver.call(name, arguments))

    asyncio.run(main())
    return found


@every_way
def test_images_audio_links_resources_and_structured_results_reach_the_client(
    way: Way, media: Gateway, reach: Reach, world: World, wanted: dict[str, list[dict[str, Any]]]
) -> None:
    async def main() -> None:
        got: list[dict[str, Any]] = []
        async with connected(way, reach(media, way)) as client:
            for server, name, arguments in calls(world):
                call = client.call if server == "everything" else client.through
                got.append(await call(f"{server}__{name}", arguments))

        for one in got:
            one.pop("resultType", None)
        assert got == wanted[way.client]
        image, structured, links, resource, annotated, pixel, silence = got
        assert decoded(image, "image").startswith(PNG)
        assert structured["structuredContent"].keys() == {"temperature", "conditions", "humidity"}
        kinds = [block["type"] for block in links["content"]]
        assert kinds == ["text", "resource_link", "resource_link"]
        assert resource["content"][0]["resource"]["mimeType"] == "application/gzip"
        assert annotated["content"][0]["annotations"]["audience"] == ["user", "assistant"]
        assert decoded(pixel, "image").startswith(PNG)
        assert decoded(silence, "audio").startswith(WAV)

    run(main)


def decoded(result: dict[str, Any], kind: str) -> bytes:
    block = next(block for block in result["content"] if block["type"] == kind)
    return base64.b64decode(block["data"])


@every_way
def test_a_link_in_a_result_can_be_read(way: Way, media: Gateway, reach: Reach) -> None:
    async def main() -> None:
        async with connected(way, reach(media, way)) as client:
            linked = await client.call("everything__get-resource-links", {"count": 1})
            uri = linked["content"][1]["uri"]
            read = await client.ask("resources/read", uri=uri)

        assert read["contents"][0]["uri"] == uri

    run(main)


def test_the_inspector_writes_the_very_bytes_of_an_image_to_a_file(
    media: Gateway, world: World, tmp_path: Path
) -> None:
    target = tmp_path / "pixel.png"
    arguments = {"path": str(world.files / "pixel.png")}
    wrapped = json.dumps({"name": "filesystem__read_media_file", "arguments": arguments})
    subprocess.run(
        [
            INSPECTOR, "--cli", "--method", "tools/call", "--tool-name", "tool_call",
            "--tool-args-json", wrapped, "--output", str(target), "--output-format", "raw",
            "--quiet", "--", *media.command,
        ],
        check=True,
        capture_output=True,
    )  # fmt: skip

    assert target.read_bytes() == (world.files / "pixel.png").read_bytes()
