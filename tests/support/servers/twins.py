"""Pairs of gateways over HTTP: one with what a token may not see, and one without it at all.

A narrow token must get the same bytes from both, whatever it asks and whatever happens to
what it may not see. `kept` names by hand what each narrow token sees, so the twins do not
depend on how the gateway reads patterns.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import os
import re
import signal
import sys
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import uvicorn
from mcp.shared.inbound import encode_header_value

from support.gateways import gateway, until
from toolfold.config.serve_settings import Token
from toolfold.serve.gateway import Gateway
from toolfold.serve.http.app import make_app
from toolfold.sources.mcp._exposed_names import exposed_name
from toolfold.sources.mcp.server import Server

SCOPED = str(Path(__file__).parent / "scoped.py")
WIDE = "the-token-that-sees-everything"
MODERN = "2026-07-28"
ACCEPT = {"accept": "application/json, text/event-stream"}
TEXT = {"type": "object", "properties": {"x": {"type": "string"}, "amount": {"type": "number"}}}
VAULT = "aaa vault"
"""It sorts first and its name needs a digest, so it would win every clash."""
PINNED = exposed_name(VAULT, "payroll")

_RANDOM = re.compile(r"toolfold-[\w-]{32}")
_KEY = re.compile(r"[0-9a-f]{12}\Z")


def tool(name: str, about: str, read_only: bool = False) -> dict[str, Any]:
    hints = {"annotations": {"readOnlyHint": True, "destructiveHint": False}} if read_only else {}
    return {"name": name, "description": about, "inputSchema": TEXT, **hints}


def prompt(name: str) -> dict[str, Any]:
    return {"name": name, "arguments": [{"name": "who"}]}


def resource(uri: str) -> dict[str, Any]:
    return {"uri": uri, "name": uri}


def template(uri: str) -> dict[str, Any]:
    return {"uriTemplate": uri, "name": uri}


NEWS = [
    *({"method": f"notifications/{k}/list_changed"} for k in ("tools", "prompts", "resources")),
    {"method": "notifications/resources/updated", "params": {"uri": "doc:///shared"}},
]
LOUD = [
    *NEWS,
    {"method": "notifications/message", "params": {"level": "emergency", "data": "payroll"}},
    {"method": "roots/list"},
    {"method": "elicitation/create", "params": {"message": "the vault asks"}},
]
CONTENT: dict[str, dict[str, Any]] = {
    VAULT: {
        "tools": [
            tool("payroll", "Pay the salaries of the staff.", True),
            tool("zeppelin_link", "Fly the zeppelin over the weather station."),
            tool("wait", "Wait for the vault."),
            tool("ask", "Ask about the vault."),
        ],
        "prompts": [prompt("greet"), prompt("heist")],
        "resources": [resource("doc:///readme"), resource("doc:///shared"), resource("vault:///x")],
        "resourceTemplates": [template("doc:///{name}"), template("vault:///{name}")],
        "later": {
            "tools": [tool("payroll_two", "Pay everybody twice.", True)],
            "prompts": [prompt("getaway")],
            "resources": [resource("vault:///y")],
        },
        "news": LOUD,
    },
    "mixed": {
        "tools": [
            tool("open_read", "Read the weather of a town.", True),
            tool("secret_audit", "Audit the quarterly ledgers.", True),
            tool("open_write", "Write a letter to a town."),
            tool("open_wait", "Wait for a train."),
            tool("open_ask", "Ask for a ticket."),
            tool("secret_transfer_link", "Transfer money to Zurich."),
            tool("secret_wait", "Wait for the money."),
        ],
        "prompts": [prompt("open_hello"), prompt("secret_plan")],
        "resources": [resource("doc:///shared"), resource("mixed:///ledger")],
        "resourceTemplates": [template("mixed:///{name}")],
        "later": {
            "tools": [
                tool("open_read", "Read the weather of a town.", True),
                tool("open_write", "Write a letter to a town."),
                tool("open_wait", "Wait for a train."),
                tool("open_ask", "Ask for a ticket."),
                tool("secret_laundry", "Launder money in Zurich."),
                tool("secret_wait", "Wait for the money."),
            ],
            "prompts": [prompt("open_hello"), prompt("secret_escape")],
        },
        "news": [m for m in NEWS if "resources" not in m["method"]],
    },
    "open": {
        "tools": [
            tool("find_weather", "Find the weather of a place.", True),
            tool("list_files", "List the files of a folder.", True),
            tool("mail_send", "Send a mail to somebody."),
            tool("note_link", "Keep a note."),
        ],
        "prompts": [prompt("greet")],
        "resources": [resource("doc:///readme"), resource("doc:///shared")],
        "resourceTemplates": [template("doc:///{name}")],
        "news": [],
    },
}
_EVERYTHING = {"prompts": ("*",), "resources": ("*",), "resourceTemplates": ("*",)}


class Narrow(NamedTuple):
    """A narrow token, and by hand what it sees of each server."""

    token: Token
    kept: Mapping[str, Mapping[str, tuple[str, ...]]]

    @property
    def secret(self) -> str:
        return f"the-token-of-{self.token.name}"

    @property
    def content(self) -> dict[str, dict[str, Any]]:
        """What there is for it, and nothing else."""
        out: dict[str, dict[str, Any]] = {}
        for server, given in CONTENT.items():
            kept = self.kept.get(server)
            if kept is None:
                continue
            out[server] = {
                key: [r for r in given[key] if "*" in names or r.get("name") in names]
                for key, names in kept.items()
            }
        return out


def _token(name: str, **more: Any) -> Token:
    return Token(name, sha256=hashlib.sha256(f"the-token-of-{name}".encode()).hexdigest(), **more)


NARROW = {
    "patterns": Narrow(
        _token("patterns", allow=("@open", "mixed__open_*"), deny=("*mail*",)),
        {
            "open": {"tools": ("find_weather", "list_files", "note_link"), **_EVERYTHING},
            "mixed": {
                "tools": ("open_read", "open_write", "open_wait", "open_ask"),
                "prompts": ("open_hello",),
            },
        },
    ),
    "read_only": Narrow(
        _token("read_only", deny=("@aaa vault", "*secret*"), read_only=True),
        {
            "open": {"tools": ("find_weather", "list_files"), **_EVERYTHING},
            "mixed": {
                "tools": ("open_read",),
                **_EVERYTHING,
                "prompts": ("open_hello",),
            },
        },
    ),
    "nothing": Narrow(_token("nothing", allow=()), {}),
}


class Side:
    """One running gateway, asked over HTTP."""

    def __init__(self, made: Gateway, url: str, folder: Path, http: httpx2.AsyncClient) -> None:
        self.made = made
        self.url = url
        self.folder = folder
        self.http = http
        self.cookies: dict[str, dict[str, str]] = {}
        self._numbers = itertools.count(1)

    def speak(self, server: str) -> None:
        """Have a server change, and say so."""
        with suppress(OSError, ValueError):
            os.kill(int((self.folder / server).read_text("utf-8")), signal.SIGUSR1)

    def kill(self, server: str) -> None:
        with suppress(OSError, ValueError):
            os.kill(int((self.folder / server).read_text("utf-8")), signal.SIGKILL)

    async def post(
        self, token: str, method: str, params: Any = None, session: str = "", **headers: str
    ) -> Reply:
        """Ask as a client of an older revision."""
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": next(self._numbers), "method": method}
        if params is not None:
            message["params"] = params
        if method.startswith("notifications/"):
            del message["id"]
        return await self.raw(token, message, {"mcp-session-id": session, **headers})

    async def modern(self, token: str, method: str, params: Any = None, **more: Any) -> Reply:
        """Ask as a client of 2026-07-28."""
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": next(self._numbers), "method": method}
        headers = {"mcp-protocol-version": MODERN, "mcp-method": method}
        if isinstance(params, dict) or params is None:
            given = {**(params or {}), **more}
            meta = {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
            }
            message["params"] = {**given, "_meta": {**meta, **given.get("_meta", {})}}
            name = given.get("uri" if method.startswith("resources/") else "name")
            if isinstance(name, str):
                headers["mcp-name"] = encode_header_value(name)
        else:
            message["params"] = params
        return await self.raw(token, message, headers)

    async def raw(self, token: str, message: Any, headers: Mapping[str, str]) -> Reply:
        given = {key: value for key, value in headers.items() if value}
        body = json.dumps(message).encode("utf-8", "surrogatepass")
        # Each token is a client of its own, with cookies of its own.
        own = self.cookies.setdefault(token, {})
        if own:
            given["cookie"] = "; ".join(f"{key}={value}" for key, value in own.items())
        answer = await self.http.post(
            f"{self.url}/mcp",
            content=body,
            headers={
                **ACCEPT,
                "content-type": "application/json",
                "authorization": f"Bearer {token}",
                **given,
            },
        )
        own.update(answer.cookies)
        self.http.cookies.clear()
        return Reply.of(answer)

    async def greet(self, token: str, **capabilities: Any) -> str:
        """Open a session and return its id."""
        params = {
            "protocolVersion": "2025-11-25",
            "capabilities": capabilities,
            "clientInfo": {"name": "fuzzer", "version": "1"},
        }
        reply = await self.post(token, "initialize", params)
        session = reply.session
        await self.post(token, "notifications/initialized", None, session)
        return session

    @asynccontextmanager
    async def hearing(self, token: str, session: str | None) -> AsyncIterator[list[Any]]:
        """Listen as a session does, or as a client of 2026-07-28; gives what is told."""
        messages: list[Any] = []
        headers = {**ACCEPT, "authorization": f"Bearer {token}"}
        if session is not None:
            asked: dict[str, Any] = {"method": "GET"}
            headers["mcp-session-id"] = session
        else:
            kinds = ("toolsListChanged", "promptsListChanged", "resourcesListChanged")
            wanted = {**dict.fromkeys(kinds, True), "resourceSubscriptions": ["doc:///shared"]}
            meta = {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientCapabilities": {},
            }
            method = "subscriptions/listen"
            message = {"params": {"notifications": wanted, "_meta": meta}, "method": method}
            asked = {"method": "POST", "json": {"jsonrpc": "2.0", "id": "listen", **message}}
            headers |= {"mcp-protocol-version": MODERN, "mcp-method": method}
        async with self.http.stream(**asked, url=f"{self.url}/mcp", headers=headers) as stream:

            async def listen() -> None:
                async for line in stream.aiter_lines():
                    if line.startswith("data:") and line[5:].strip():
                        messages.extend(bodies(line))

            listening = asyncio.create_task(listen())
            try:
                yield messages
            finally:
                listening.cancel()

    async def leave(self, token: str, session: str) -> None:
        headers = {"authorization": f"Bearer {token}", "mcp-session-id": session}
        await self.http.delete(f"{self.url}/mcp", headers={**ACCEPT, **headers})


class Reply(NamedTuple):
    """What came back, without what is different each time."""

    status: int
    headers: tuple[tuple[str, str], ...]
    messages: tuple[Any, ...]
    """The messages of the body, or its text."""
    session: str

    @classmethod
    def of(cls, answer: httpx2.Response) -> Reply:
        shown = {k: v for k, v in answer.headers.items() if k not in ("date", "content-length")}
        # Whether there is one depends on what this client was given before; its text is drawn.
        shown.pop("set-cookie", None)
        session = shown.pop("mcp-session-id", "")
        return cls(answer.status_code, tuple(sorted(shown.items())), bodies(answer.text), session)

    @property
    def seen(self) -> tuple[Any, ...]:
        """What must be the same on both sides."""
        return self.status, self.headers, tuple(map(plain, self.messages)), bool(self.session)

    @property
    def result(self) -> Any:
        return self.messages[-1]["result"]


def bodies(text: str) -> tuple[Any, ...]:
    if text.lstrip().startswith("{"):
        return (json.loads(text),)
    events = [line[5:].strip() for line in text.splitlines() if line.startswith("data:")]
    return tuple(json.loads(event) for event in events if event) if events else (text,)


def plain(value: Any) -> Any:
    """Return a value without tokens, question keys and ids of requests."""
    if isinstance(value, str):
        return _RANDOM.sub("(token)", value)
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    return {
        "(key)" if _KEY.match(key) else key: plain(inner)
        for key, inner in value.items()
        if not (key == "id" and "jsonrpc" in value)
    }


class Twins:
    """A gateway and its twin, in a loop of their own, in a thread of its own."""

    def __init__(
        self,
        folder: Path,
        narrow: Narrow,
        mode: str,
        folding: str,
        full: Mapping[str, Any] = CONTENT,
        kept: Mapping[str, Any] | None = None,
    ) -> None:
        self.narrow = narrow
        self._contents = {"full": full, "twin": narrow.content if kept is None else kept}
        self._folder = folder
        self._mode = mode
        self._folding = folding
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))

    def __enter__(self) -> Twins:
        self._thread.start()
        assert self._ready.wait(40)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(20)
        assert not self._thread.is_alive()

    def run(self, work: Coroutine[Any, Any, Any], seconds: float = 30) -> Any:
        """Run something in the loop of the gateways."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(seconds)

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._over = asyncio.Event()
        async with AsyncExitStack() as stack:
            http = await stack.enter_async_context(httpx2.AsyncClient(timeout=30))
            self.full = await self._side(stack, http, "full")
            self.twin = await self._side(stack, http, "twin")
            self._ready.set()
            await self._over.wait()

    async def _side(self, stack: AsyncExitStack, http: httpx2.AsyncClient, name: str) -> Side:
        folder = self._folder / name
        folder.mkdir()
        wide = Token("wide", sha256=hashlib.sha256(WIDE.encode()).hexdigest())
        made = await stack.enter_async_context(
            gateway(
                *(scoped(server, folder, given) for server, given in self._contents[name].items()),
                serve={"tokens": (wide, self.narrow.token), "mode": self._mode},
                settings={"enabled": self._folding, "core": [PINNED, "open__list_files"]},
            )
        )
        url = await stack.enter_async_context(_listening(made))
        return Side(made, url, folder, http)


def scoped(name: str, folder: Path, content: Mapping[str, Any], **more: Any) -> Server:
    """A server that has just what it is given."""
    env = {"WHO": name, "PIDS": str(folder), "CONTENT": json.dumps(content)}
    args = ("-S", "-E", SCOPED)
    return Server(name, "stdio", command=sys.executable, args=args, env=env, **more)


@asynccontextmanager
async def _listening(made: Gateway) -> AsyncIterator[str]:
    app = make_app(made, "127.0.0.1", metrics=lambda: json.dumps(sorted(made.pool.upstreams)))
    config = uvicorn.Config(app, port=0, log_config=None, timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server._serve())  # pyright: ignore[reportPrivateUsage]
    await until(lambda: server.started)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        await serving


@contextmanager
def twins(folder: Path, narrow: str, mode: str, folding: str) -> Iterator[Twins]:
    """A gateway and its twin, running."""
    with Twins(folder, NARROW[narrow], mode, folding) as pair:
        yield pair
