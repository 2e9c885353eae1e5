"""HTTP APIs that come, go and change while the gateway runs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from support.gateways import client, run, said, until
from support.reloaded import Reloaded, reloaded
from toolfold.serve.control.messages import ControlError


class Api:
    """An API on loopback that can be slow."""

    def __init__(self) -> None:
        self.url = ""
        self.under_way = 0
        self.go_on = asyncio.Event()
        self.go_on.set()
        self.asked: list[str] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.asked.append(scope["path"])
        self.under_way += 1
        await self.go_on.wait()
        self.under_way -= 1
        body = json.dumps({"at": scope["path"]}).encode()
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def listening() -> AsyncIterator[Api]:
    api = Api()
    config = uvicorn.Config(
        api, port=0, log_config=None, lifespan="off", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    await until(lambda: server.started, 20)
    api.url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    try:
        yield api
    finally:
        server.should_exit = True
        await serving


def document(*names: str) -> str:
    answer = {"200": {"description": "Good."}}
    paths = {
        f"/{n}": {"get": {"operationId": n, "summary": f"Get {n}.", "responses": answer}}
        for n in names
    }
    info = {"title": "T", "version": "1"}
    return json.dumps({"openapi": "3.1.0", "info": info, "paths": paths})


@asynccontextmanager
async def served(folder: Path, api: Api, **serve: Any) -> AsyncIterator[Reloaded]:
    """A gateway with one API, `pets`, and a file beside it for another."""
    (folder / "pets.json").write_text(document("cats", "dogs"), "utf-8")
    (folder / "cars.json").write_text(document("vans"), "utf-8")
    (folder / "own.py").write_text(
        'def hi() -> str:\n    """Say hi."""\n    return "hi"\n', "utf-8"
    )
    async with reloaded(folder, {}, blocks=apis(api, pets={}), **serve) as place:
        yield place


def apis(api: Api, **entries: dict[str, Any]) -> dict[str, Any]:
    made = {
        name: {"file": f"{name}.json", "base_url": api.url, **more}
        for name, more in entries.items()
    }
    return {"openapi": made, "functions": {"own": "./own.py"}}


async def names(c: Any) -> set[str]:
    return {tool.name for tool in (await c.list_tools()).tools}


def test_apis_come_go_and_change_and_what_is_the_same_is_not_touched(tmp_path: Path) -> None:
    heard: list[str] = []

    async def listen(message: Any) -> None:
        heard.append(type(message).__name__)

    async def main() -> None:
        async with (
            listening() as api,
            served(tmp_path, api) as place,
            client(place.gateway, message_handler=listen) as c,
        ):
            await place.ask("reload")  # what was given at the start is taken over, or is the same
            assert await names(c) == {"own__hi", "pets__cats", "pets__dogs"}
            (before,) = [s for s in place.gateway.others.all if s.name == "pets"]

            place.write({}, apis(api, pets={}, cars={}))
            told = await place.ask("reload")
            assert (told["openapi"], told["needs_restart"]) == (["cars"], [])
            assert told["widened"] == ["API 'cars' is new"]
            await until(lambda: "ToolListChangedNotification" in heard)
            assert await names(c) == {"own__hi", "pets__cats", "pets__dogs", "cars__vans"}
            assert "/vans" in said(await c.call_tool("cars__vans", {}))
            assert before in place.gateway.others.all

            place.write({}, apis(api, pets={"deny": ["dogs"]}, cars={}))
            told = await place.ask("reload")
            assert (told["openapi"], told["widened"]) == (["pets"], [])
            assert await names(c) == {"own__hi", "pets__cats", "cars__vans"}
            assert (await c.call_tool("pets__dogs", {})).is_error
            assert "/cats" in said(await c.call_tool("pets__cats", {}))

            place.write({}, apis(api, cars={}))
            assert (await place.ask("reload"))["openapi"] == ["pets"]
            assert await names(c) == {"own__hi", "cars__vans"}
            assert "pets" not in place.gateway.pool.others
            assert said(await c.call_tool("own__hi", {})) == "hi"

    run(main)


def test_a_document_that_was_written_anew_is_read_anew(tmp_path: Path) -> None:
    async def main() -> None:
        async with (
            listening() as api,
            served(tmp_path, api) as place,
            client(place.gateway) as c,
        ):
            (tmp_path / "pets.json").write_text(document("cats", "birds"), "utf-8")
            told = await place.ask("reload")
            assert told["openapi"] == ["pets"]
            assert told["widened"] == ["API 'pets' has another document"]
            assert await names(c) == {"own__hi", "pets__cats", "pets__birds"}

            # One that cannot be used is told of, as at a start, and can be mended.
            (tmp_path / "pets.json").write_text("{", "utf-8")
            await place.ask("reload")
            assert await names(c) == {"own__hi"}
            status = await place.ask("status")
            (broken,) = [each for each in status["functions"] if each["name"] == "pets"]
            assert broken["cause"]
            (tmp_path / "pets.json").write_text(document("cats"), "utf-8")
            await place.ask("reload")
            assert await names(c) == {"own__hi", "pets__cats"}
            assert (await place.ask("reload"))["openapi"] == []

    run(main)


@pytest.mark.parametrize("drain", [20.0, 0.0])
def test_a_call_under_way_on_an_api_that_leaves_has_a_while_to_end(
    tmp_path: Path, drain: float
) -> None:
    async def main() -> None:
        async with (
            listening() as api,
            served(tmp_path, api, drain=drain) as place,
            client(place.gateway) as c,
        ):
            await names(c)
            api.go_on.clear()
            call = asyncio.create_task(c.call_tool("pets__cats", {}))
            await until(lambda: api.under_way)
            place.write({}, apis(api, cars={}), drain=drain)
            await place.ask("reload")
            assert (await c.call_tool("pets__dogs", {})).is_error
            if drain:
                api.go_on.set()
                assert "/cats" in said(await call)
            else:
                answer = await call
                assert answer.is_error
                api.go_on.set()
            leaving = [t for t in asyncio.all_tasks() if t.get_name() == "leaving pets"]
            await until(lambda: all(task.done() for task in leaving))

    run(main)


def test_an_api_may_not_take_the_name_of_functions_that_are_loaded(tmp_path: Path) -> None:
    async def main() -> None:
        async with listening() as api, served(tmp_path, api) as place:
            blocks = apis(api, pets={})
            blocks["openapi"]["own"] = blocks["openapi"].pop("pets")
            del blocks["functions"]
            place.write({}, blocks)
            with pytest.raises(ControlError, match="functions that are loaded"):
                await place.ask("reload")
            async with client(place.gateway) as c:
                assert await names(c) == {"own__hi", "pets__cats", "pets__dogs"}

    run(main)


def test_an_api_and_a_server_may_change_places(tmp_path: Path) -> None:
    async def main() -> None:
        async with (
            listening() as api,
            served(tmp_path, api) as place,
            client(place.gateway) as c,
        ):
            server = {"command": "toolfold-no-such-program"}
            place.write({"pets": server}, apis(api, cars={}))
            told = await place.ask("reload")
            assert (told["servers"]["added"], told["openapi"]) == (["pets"], ["pets", "cars"])
            assert await names(c) == {"own__hi", "cars__vans"}
            place.write({}, apis(api, pets={}))
            await place.ask("reload")
            assert "pets__cats" in await names(c)

    run(main)
