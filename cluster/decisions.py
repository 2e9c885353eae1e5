"""How long it takes until what was decided on one replica holds on all: milliseconds.

`python -m cluster.decisions --replicas 4` has every tool wait for approval, approves one after
another on a replica by chance, and asks all of them for it until each has answered.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

import httpx2

from cluster import ground
from cluster.ground import Ground, Plan, Replica
from cluster.load import SERVERS
from cluster.servers.ledger import WRITERS
from cluster.wire import MODERN, Fate, Speaker

__all__ = ["main", "measured"]

_T = TypeVar("_T")


def measured(made: Ground) -> list[float]:
    """Return the seconds that each decision took to hold on all replicas."""
    chance = random.Random(1)
    taken: list[float] = []
    for server in made.plan.servers:
        for page in range(WRITERS):
            decider = chance.choice(made.replicas)
            pending = decider.tell(
                "trust.pending", {"server": server, "tool": f"{server}__write_{page}"}
            )
            (waiting,) = pending["servers"][0]["tools"]
            assert not any(_answers(made, server, page)), "it was open before it was approved"
            began = time.monotonic()
            own = {"server": server, "tool": waiting["tool"], "fingerprint": waiting["fingerprint"]}
            decider.tell("trust.approve", own)
            taken.append(_until_all_answer(made, server, page) - began)
    return taken


def _answers(made: Ground, server: str, page: int) -> list[bool]:
    """Say of each replica whether it lets a tool be used."""

    async def one(http: httpx2.AsyncClient, replica: Replica) -> bool:
        return await _answer(http, made, replica, server, page)

    return _on_all(made, one)


def _until_all_answer(made: Ground, server: str, page: int) -> float:
    """Return the moment at which the last replica let a tool be used."""

    async def one(http: httpx2.AsyncClient, replica: Replica) -> float:
        async with asyncio.timeout(20):
            while True:
                if await _answer(http, made, replica, server, page):
                    return time.monotonic()
                await asyncio.sleep(0.01)

    return max(_on_all(made, one))


async def _answer(
    http: httpx2.AsyncClient, made: Ground, replica: Replica, server: str, page: int
) -> bool:
    speaker = Speaker(http, replica.url, made.tokens[page], MODERN, "who-waits-for-all")
    arguments = {"mark": f"{server}-{page}-{replica.host.name}-{time.monotonic()}", "who": "all"}
    reply = await speaker.call(f"{server}__write_{page}", arguments, 1)
    return reply.fate is Fate.ANSWERED and not reply.is_error


def _on_all(
    made: Ground, one: Callable[[httpx2.AsyncClient, Replica], Coroutine[Any, Any, _T]]
) -> list[_T]:
    """Ask all replicas at once, from the clients' host."""

    async def asked() -> list[_T]:
        async with httpx2.AsyncClient(trust_env=False, timeout=10) as http:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(one(http, replica)) for replica in made.replicas]
            return [task.result() for task in tasks]

    return made.network["clients"].run(lambda: asyncio.run(asked()))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return 1 where a decision took more than a second."""
    parser = argparse.ArgumentParser(prog="python -m cluster.decisions", description=__doc__)
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="print one object")
    given = parser.parse_args(arguments)
    if reason := ground.why_not():
        print(f"skipped: {reason}", file=sys.stderr)
        return 0
    plan = Plan(given.replicas, clients=WRITERS, servers=SERVERS, serve={"trust": "all"})
    with (
        tempfile.TemporaryDirectory(prefix="toolfold-decisions-") as folder,
        Ground(Path(folder), plan) as made,
    ):
        taken = sorted(measured(made))
    row = {
        "replicas": given.replicas,
        "decisions": len(taken),
        "p50 ms": round(taken[len(taken) // 2] * 1_000),
        "longest ms": round(taken[-1] * 1_000),
    }
    print(json.dumps(row) if given.json else ", ".join(f"{k} {v}" for k, v in row.items()))
    return int(taken[-1] > 1)


if __name__ == "__main__":
    sys.exit(main())
