"""Clients by the dozen, each with a token, a scope and a session of its own.

`python -m cluster.load SETTINGS` reads one JSON object a line from standard input, `{"phase":
NAME, "calls": N}`, makes so many calls, and writes one line back when all have ended. What became
of each is in the account. A call whose connection was lost is made again with the same id in the
same session, which asks what became of it: a gateway that keeps a journal answers with the
result, or says that nobody knows whether it ran.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any, TextIO

import httpx2

from cluster.judge import Call, Probe, written
from cluster.servers.ledger import WRITERS
from cluster.wire import OLDER, Fate, Reply, Speaker

__all__ = ["SERVERS", "Load", "Settings", "page_of"]

SERVERS = ("ledger", "stock")
"""The servers behind the gateway: over HTTP, and over pipes."""

_PROBE_EVERY = 12
"""Calls of a client between two looks at what is outside its scope."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How to load.

    Args:
        url: Where the gateway is reached.
        account: The file that takes what became of each call.
        tokens: The clients' tokens; a client's number says which page it may write on.
        revision: The revision of MCP that they speak.
        strategy: `reveal` where clients search first, and what is found stays listed.
        servers: The servers whose tools are called.
        tries_again: Whether a call is made again whose connection was lost.
        longest: The most seconds that a call takes at its server.
        patience: Seconds after which a call counts as lost.
        attempt: Seconds after which one attempt is given up.
        first: The number of the first client, where several processes load at once.
    """

    url: str
    account: str
    tokens: tuple[str, ...]
    revision: str = OLDER
    strategy: str = "bridge"
    servers: tuple[str, ...] = SERVERS
    tries_again: bool = True
    longest: float = 0.02
    patience: float = 90.0
    attempt: float = 20.0
    first: int = 0

    def written(self) -> str:
        """Return it as a line of the command."""
        return json.dumps(asdict(self))

    @classmethod
    def read(cls, text: str) -> Settings:
        """Return what `written` wrote."""
        given: dict[str, Any] = json.loads(text)
        given |= {key: tuple(given[key]) for key in ("tokens", "servers")}
        return cls(**given)


def page_of(number: int) -> int:
    """Return the page that a client may write on."""
    return number % WRITERS


class _Client:
    """One client, with its session."""

    def __init__(self, load: Load, number: int, speaker: Speaker) -> None:
        self._load = load
        self._settings = load.settings
        self._who = f"client{number}"
        self._page = page_of(number)
        self._speaker = speaker
        self._chance = random.Random(number)
        self._marks = (f"{self._who}-{n}" for n in count())
        self._ids = count(1)
        self._is_open = False

    async def work(self, phase: str) -> None:
        """Make calls until the phase has enough of them."""
        await self._ensure_open(phase)
        while self._load.take():
            await self._call(phase)
            if self._chance.randrange(_PROBE_EVERY) == 0:
                await self._probe(phase)

    # ---- calls

    async def _call(self, phase: str) -> None:
        mark, server = next(self._marks), self._chance.choice(self._settings.servers)
        tool = f"write_{self._page}"
        seconds = round(self._chance.uniform(0, self._settings.longest), 4)
        arguments = {"mark": mark, "who": self._who, "seconds": seconds}
        at, began = time.time(), time.perf_counter()
        outcome, text, tries = await self._until_answered(f"{server}__{tool}", arguments, phase)
        seconds = time.perf_counter() - began
        self._load.write(
            Call(mark, self._who, server, tool, phase, outcome, text, tries, seconds, at)
        )

    async def _until_answered(
        self, name: str, arguments: dict[str, Any], phase: str
    ) -> tuple[str, str, int]:
        """Return how a call ended, what was said, and how often it was made."""
        number, may_have_run, reply = next(self._ids), False, None
        is_direct = self._chance.random() < 0.5
        async for tries in self._tries():
            if is_direct:
                reply = await self._speaker.call(name, arguments, number)
            else:
                wrapped = {"name": name, "arguments": arguments}
                reply = await self._speaker.call("tool_call", wrapped, number)
            if reply.fate is Fate.ANSWERED:
                return ("error" if reply.is_error else "answered"), reply.text, tries
            if reply.fate is Fate.UNKNOWN:
                may_have_run = True
            elif reply.fate is Fate.NO_SESSION:
                self._forgotten(phase, reply)
                await self._ensure_open(phase)
                number = next(self._ids)
                if may_have_run:
                    return "lost", f"{reply.said}, after it was sent", tries
            if may_have_run and not self._settings.tries_again:
                return "lost", reply.said, tries
        return "lost", "" if reply is None else reply.said, 0

    async def _tries(self) -> AsyncIterator[int]:
        """Count attempts, with growing rests between them, until patience ends."""
        end = time.monotonic() + self._settings.patience
        for tries in count(1):
            yield tries
            if time.monotonic() > end:
                return
            rest = min(0.05 * 2 ** min(tries, 6), 1.0)
            await asyncio.sleep(rest * self._chance.uniform(0.5, 1))

    # ---- sessions

    async def _ensure_open(self, phase: str) -> None:
        async for _ in self._tries():
            if self._is_open:
                return
            reply = await self._speaker.open()
            self._is_open = reply.fate is Fate.ANSWERED and not reply.is_error
            if self._is_open and self._settings.strategy == "reveal":
                self._is_open = await self._reveal()
        raise SystemExit(f"{self._who}: no session could be opened")

    async def _reveal(self) -> bool:
        """Search for the tools of the own page, so that they are listed from now on."""
        for server in self._settings.servers:
            query = {"query": f"write a mark on page {self._page} of the book {server}"}
            reply = await self._speaker.call("tool_search", query, next(self._ids))
            if reply.fate is not Fate.ANSWERED or reply.is_error:
                return False
        return True

    def _forgotten(self, phase: str, reply: Reply) -> None:
        self._is_open = False
        self._load.write(Probe(next(self._marks), self._who, phase, "session", reply.said))

    # ---- probes

    async def _probe(self, phase: str) -> None:
        """Look for what is outside the scope, one way or another."""
        kind = self._chance.choice(("list", "search", "call", "direct"))
        mark = next(self._marks)
        reply = await self._probed(kind, mark)
        if reply.fate is Fate.NO_SESSION:
            self._forgotten(phase, reply)
            await self._ensure_open(phase)
        if reply.fate is not Fate.ANSWERED:
            return
        fault = ""
        if kind in ("list", "search"):
            seen = json.dumps(reply.message)
            pages = [page for page in range(WRITERS) if f"write_{page}" in seen]
            outside = [page for page in pages if page != self._page]
            fault = f"pages {outside} of others are there: {seen[:300]}" if outside else ""
            if kind == "list" and self._settings.strategy == "reveal" and not pages:
                self._load.write(
                    Probe(mark, self._who, phase, "session", f"not listed: {seen[:300]}")
                )
        elif not reply.is_error:
            fault = f"it was answered: {reply.text[:200]}"
        self._load.write(Probe(mark, self._who, phase, kind, fault))

    async def _probed(self, kind: str, mark: str) -> Reply:
        other = (self._page + self._chance.randrange(1, WRITERS)) % WRITERS
        server, number = self._chance.choice(self._settings.servers), next(self._ids)
        name = f"{server}__write_{other}"
        arguments = {"mark": mark, "who": self._who}
        if kind == "list":
            return await self._speaker.ask("tools/list", {}, number)
        if kind == "search":
            query = {"query": f"write a mark on page {other} of the book {server}"}
            return await self._speaker.call("tool_search", query, number)
        if kind == "call":
            wrapped = {"name": name, "arguments": arguments}
            return await self._speaker.call("tool_call", wrapped, number)
        return await self._speaker.call(name, arguments, number)


class Load:
    """All clients, and the account of their calls."""

    def __init__(self, settings: Settings, account: TextIO) -> None:
        self.settings = settings
        self._account = account
        self._left = 0

    def take(self) -> bool:
        """Take one of the calls that are left; false where none is."""
        self._left -= 1
        return self._left >= 0

    def write(self, record: Call | Probe) -> None:
        """Write down what became of one."""
        self._account.write(written(record))

    async def run(self, orders: asyncio.Queue[str]) -> None:
        """Make the calls of one phase after another, until there is none."""
        many = len(self.settings.tokens) * 2
        limits = httpx2.Limits(max_connections=many, max_keepalive_connections=many)
        timeout = httpx2.Timeout(self.settings.attempt, connect=3.0)
        async with httpx2.AsyncClient(timeout=timeout, limits=limits, trust_env=False) as http:
            clients = [
                _Client(self, number, self._speaker(http, number, token))
                for number, token in enumerate(self.settings.tokens, self.settings.first)
            ]
            while line := await orders.get():
                order = json.loads(line)
                self._left = order["calls"]
                async with asyncio.TaskGroup() as group:
                    for client in clients:
                        group.create_task(client.work(order["phase"]))
                self._account.flush()
                sys.stdout.write(json.dumps({"done": order["phase"]}) + "\n")
                sys.stdout.flush()

    def _speaker(self, http: httpx2.AsyncClient, number: int, token: str) -> Speaker:
        name = f"conversation-of-client-{number:04}"
        return Speaker(http, self.settings.url, token, self.settings.revision, name)


async def _main(settings: Settings, account: TextIO) -> None:
    orders: asyncio.Queue[str] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def read() -> None:
        orders.put_nowait(sys.stdin.readline())

    loop.add_reader(sys.stdin.fileno(), read)
    await Load(settings, account).run(orders)


if __name__ == "__main__":
    given = Settings.read(sys.argv[1])
    with Path(given.account).open("w", encoding="utf-8") as file:
        asyncio.run(_main(given, file))
