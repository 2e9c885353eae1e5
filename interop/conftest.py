"""What all the interoperability tests stand on: the servers' world, and gateways over it."""

from __future__ import annotations

import asyncio
import shutil
import sys
import time
from collections.abc import Callable, Coroutine, Generator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from clients import Target, Way
from gateways import Gateway, configured
from servers import PARTS, World
from web import Web, open_web

SECONDS = 100
"""A test's own deadline, below the runner's, so that what it started is ended in order."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip everything, saying why, where the servers and clients are not there."""
    missing = _missing()
    for item in items if missing else ():
        item.add_marker(pytest.mark.skip(reason=missing))


def _missing() -> str:
    absent = [name for name in ("node", "git") if shutil.which(name) is None]
    if absent:
        return f"{' and '.join(absent)} cannot be found: the real servers need it"
    if not (PARTS / "node_modules").is_dir():
        return "the npm servers are not installed: run `make interop`, which needs npm"
    return ""


@pytest.fixture(scope="session")
def web() -> Generator[Web]:
    """A web site on this machine."""
    with open_web() as made:
        yield made


@pytest.fixture(scope="session")
def world(web: Web, tmp_path_factory: pytest.TempPathFactory) -> World:
    """What the servers look at. Tests that change it have one of their own."""
    made = World(tmp_path_factory.mktemp("world"), web.url)
    made.build()
    return made


@pytest.fixture(scope="session")
def folded(world: World, tmp_path_factory: pytest.TempPathFactory) -> Gateway:
    """All six servers behind the bridge, with two tools pinned."""
    core = ("everything__get-tiny-image", "time__convert_time")
    return configured(tmp_path_factory.mktemp("folded"), world.entries, core=core)


@pytest.fixture(scope="session")
def plain(world: World, tmp_path_factory: pytest.TempPathFactory) -> Gateway:
    """All six servers, with nothing folded."""
    return configured(tmp_path_factory.mktemp("plain"), world.entries, fold="off")


Reach = Callable[[Gateway, Way], Target]


@pytest.fixture(scope="session")
def reach() -> Generator[Reach]:
    """How a client gets to a gateway; over HTTP, all tests share one process of each."""
    listening: dict[Path, str] = {}
    with ExitStack() as stack:

        def target(gateway: Gateway, way: Way) -> Target:
            if way.over == "stdio":
                return Target(command=gateway.command)
            if gateway.config not in listening:
                listening[gateway.config] = stack.enter_context(gateway.listening())
            return Target(url=listening[gateway.config])

        yield target


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a test to its end."""

    async def bounded() -> None:
        async with asyncio.timeout(SECONDS):
            await main()

    asyncio.run(bounded())


def tokens(text: str) -> int:
    """Return how many tokens a text has, by o200k_base; a test is skipped where nobody knows."""
    count = _counter()
    if count is None:
        pytest.skip("the ranks of o200k_base are not there: run `make interop`")
    return count(text)


@cache
def _counter() -> Callable[[str], int] | None:
    sys.path.append(str(Path(__file__).resolve().parent.parent))
    from bench.tokens import exact_counter

    return exact_counter()


async def until(holds: Callable[[], Any], seconds: float = 10) -> None:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come to hold in time"
        await asyncio.sleep(0.02)
