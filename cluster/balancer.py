"""What stands before the replicas: each request to the next one that is ready, whoever asks.

HAProxy where it is installed; else a small one of our own, `python -m cluster.balancer`. Neither
keeps a client with its replica, and neither tries a request again that a replica may have got.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path

__all__ = ["command"]

_HAPROXY = """\
global
    maxconn 4000
defaults
    mode http
    timeout connect 1s
    timeout client 1h
    timeout server 1h
    retries 3
    retry-on conn-failure
    option redispatch 1
frontend clients
    bind {listen}
    default_backend replicas
backend replicas
    balance roundrobin
    option httpchk GET /readyz
    http-check expect status 200
    timeout check 2s
    default-server check inter 500ms fall 3 rise 1 on-marked-down shutdown-sessions
{servers}
"""


def command(listen: str, replicas: Sequence[str], folder: Path) -> list[str]:
    """Return the command of a balancer; addresses are `HOST:PORT`."""
    program = shutil.which("haproxy")
    if program is None:
        return [sys.executable, "-m", "cluster.balancer", listen, *replicas]
    servers = [f"    server r{number} {replica}" for number, replica in enumerate(replicas, 1)]
    path = folder / "haproxy.cfg"
    path.write_text(_HAPROXY.format(listen=listen, servers="\n".join(servers)))
    return [program, "-db", "-f", str(path)]


class _Replica:
    """One replica: whether it is ready, and what goes through it now."""

    def __init__(self, address: str) -> None:
        self.host, _, port = address.rpartition(":")
        self.port = int(port)
        self.is_ready = False
        self.open: set[asyncio.StreamWriter] = set()

    async def watch(self) -> None:
        """Ask it again and again whether it is ready; when it is no more, end what is open."""
        failed = 0
        while True:
            failed = 0 if await self._answers() else failed + 1
            self.is_ready = failed == 0 or (self.is_ready and failed < 3)
            if not self.is_ready:
                for writer in list(self.open):
                    writer.transport.abort()
            await asyncio.sleep(0.5)

    async def connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Return a new connection to it."""
        async with asyncio.timeout(1):
            return await asyncio.open_connection(self.host, self.port, limit=1 << 20)

    async def _answers(self) -> bool:
        with suppress(OSError, TimeoutError):
            reader, writer = await self.connected()
            try:
                async with asyncio.timeout(2):
                    writer.write(b"GET /readyz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
                    return b" 200 " in await reader.readline()
            finally:
                writer.transport.abort()
        return False


class _Balancer:
    def __init__(self, replicas: Sequence[_Replica]) -> None:
        self._replicas = replicas
        self._turns = count()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass one request on; the connection ends with its answer."""
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            request = await _request(reader)
            await self._pass_on(request, reader, writer)
        writer.close()

    async def _pass_on(
        self, request: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        turn = next(self._turns)
        ready = [replica for replica in self._replicas if replica.is_ready]
        for place in range(len(ready)):
            replica = ready[(turn + place) % len(ready)]
            try:
                own_reader, own_writer = await replica.connected()
            except (OSError, TimeoutError):
                continue  # it never got the request
            replica.open.add(own_writer)
            try:
                own_writer.write(request)
                has_answered = await _until_one_ends(own_reader, writer, reader)
            finally:
                replica.open.discard(own_writer)
                own_writer.transport.abort()
            if not has_answered:
                writer.write(_refusal("502 Bad Gateway"))
            return
        writer.write(_refusal("503 Service Unavailable"))


async def _request(reader: asyncio.StreamReader) -> bytes:
    """Read one request whole, and ask for one answer only."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"(?im)^content-length:\s*(\d+)", head)
    if re.search(rb"(?im)^transfer-encoding:", head):
        body = b""
        while not body.endswith(b"\r\n0\r\n\r\n") and body != b"0\r\n\r\n":
            body += await reader.readuntil(b"\r\n")
    else:
        body = await reader.readexactly(int(length[1])) if length else b""
    head = re.sub(rb"(?im)^connection:[^\r]*\r\n", b"", head)
    return head[:-2] + b"connection: close\r\n\r\n" + body


async def _until_one_ends(
    replica: asyncio.StreamReader, client: asyncio.StreamWriter, gone: asyncio.StreamReader
) -> bool:
    """Pass an answer on as it comes, until it ends or the client goes; say whether one came."""

    async def pumped() -> bool:
        some = False
        with suppress(OSError):
            while part := await replica.read(65_536):
                client.write(part)
                await client.drain()
                some = True
        return some

    pump, leaving = asyncio.ensure_future(pumped()), asyncio.ensure_future(gone.read(1))
    await asyncio.wait({pump, leaving}, return_when=asyncio.FIRST_COMPLETED)
    leaving.cancel()
    if not pump.done():
        pump.cancel()
        return True  # nobody is there to be told
    return pump.result()


def _refusal(status: str) -> bytes:
    return f"HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode()


async def _main(listen: str, addresses: Sequence[str]) -> None:
    replicas = [_Replica(address) for address in addresses]
    host, _, port = listen.rpartition(":")
    server = await asyncio.start_server(
        _Balancer(replicas).serve, host, int(port), limit=1 << 20, backlog=512
    )
    async with server, asyncio.TaskGroup() as group:
        for replica in replicas:
            group.create_task(replica.watch())
        await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("listen")
    parser.add_argument("replicas", nargs="+")
    given = parser.parse_args()
    asyncio.run(_main(given.listen, given.replicas))
