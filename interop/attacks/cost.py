"""Cost: what one stranger can take from everybody else (6, 7, 8)."""

from __future__ import annotations

import gzip
import http.server
import json
import resource
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from attacks.attack import attack, must
from attacks.product import Product, Session, wait_for
from attacks.world import Stranger, configured, found, peak_mb, resident_mb, tool


def _bomb(levels: int) -> dict[str, Any]:
    definitions: dict[str, Any] = {
        f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(levels)
    }
    definitions[f"d{levels}"] = {"type": "string", "minLength": 1}
    own = {"x": {"$ref": "#/$defs/d0"}}
    return {"type": "object", "properties": own, "$defs": definitions}


def _recursions() -> list[dict[str, Any]]:
    """Schemas of some 700 bytes that hold themselves in many places."""
    itself = {"$ref": "#/$defs/n"}
    fields = {f"p{n}": itself for n in range(8)}
    nodes: list[dict[str, Any]] = [
        {"type": "object", "properties": fields, "required": list(fields)},
        {"type": ["object"] * 8, "properties": fields},
        {"anyOf": [{"type": "object", "properties": {"p": itself}}] * 8},
        {"type": ["array"] * 8, "items": itself},
    ]
    return [{"type": "object", "properties": {"a": itself}, "$defs": {"n": node}} for node in nodes]


@attack(6)
def bomb_in_a_call(product: Product, folder: Path) -> None:
    """40 levels of `allOf: [$ref, $ref]` freeze neither a call, a neighbour nor SIGTERM."""
    evil = Stranger.made(folder, "evil", [tool("boom", inputSchema=_bomb(40))])
    good = Stranger.made(folder, "good", [tool("echo")])
    with product.gateway(configured(folder, evil, good)) as session:
        session.until("evil")
        session.until("good")
        first = session.begin(
            "tools/call",
            {"name": "tool_call", "arguments": {"name": "evil__boom", "arguments": {"x": "y"}}},
        )
        said = session.through_bridge("good__echo", {"x": "y"}, 10)
        must("good ran echo" in said, "the neighbour's call was not answered in 10 s")
        must(wait_for(lambda: not first.empty(), 10), "the call was not answered in 10 s")
        session.process.send_signal(signal.SIGTERM)
        gone = wait_for(lambda: session.process.poll() is not None, 15)
        must(gone, "SIGTERM is ignored")


@attack(6)
def bomb_in_check(product: Product, folder: Path) -> None:
    """`check` says that a schema expands too far."""
    catalog = found(folder, tool("boom", inputSchema=_bomb(40)), tool("echo"))
    command = ("check", "--no-retrieval", "--json", "--catalog", catalog)
    done = product.run(*command, cwd=folder, seconds=30)
    must(done.returncode != 124, "it did not end in 30 s")
    findings = json.loads(done.stdout)["findings"]
    named = [f for f in findings if "boom" in f["tools"] and "schema" in f["kind"]]
    must(named, f"nothing is said: {[f['kind'] for f in findings]}")


@attack(6)
def recursive_signature(product: Product, folder: Path) -> None:
    """A recursive schema of 700 bytes is shown as a line at once."""
    knots = [
        tool(f"knot_{n}", f"Tie the knot {n}.", inputSchema=schema)
        for n, schema in enumerate(_recursions())
    ]
    catalog = found(folder, *knots)
    done = product.run("search", "tie the knot", "--catalog", catalog, cwd=folder, seconds=8)
    must(done.returncode == 0, "it did not end in 8 s")
    must("knot" in done.stdout, done.stdout)


@contextmanager
def _http_server(answer: bytes, headers: dict[str, str]) -> Iterator[str]:
    """A server over HTTP whose every call is answered with the very same bytes."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            request = json.loads(body)
            if "id" not in request:
                self.send_response(202)
                self.send_header("content-length", "0")
                self.end_headers()
                return
            results: dict[str, Any] = {
                "initialize": {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "evil", "version": "1"},
                },
                "tools/list": {"tools": [tool("boom")]},
            }
            if request["method"] == "tools/call":
                self._send(answer, headers)
                return
            if request["method"] in results:
                message = {"result": results[request["method"]]}
            else:
                message = {"error": {"code": -32601, "message": "no"}}
            text = json.dumps({"jsonrpc": "2.0", "id": request["id"], **message}).encode()
            self._send(text, {})

        def do_GET(self) -> None:
            self.send_response(405)
            self.send_header("content-length", "0")
            self.end_headers()

        def _send(self, data: bytes, more: dict[str, str]) -> None:
            self.send_response(200)
            own = {"content-type": "application/json", "content-length": str(len(data)), **more}
            for name, value in own.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/mcp"
    finally:
        server.shutdown()


@attack(7)
def packed_answer(product: Product, folder: Path) -> None:
    """398 KB of gzip in an answer are not unpacked to what they hold."""
    megabytes = 400
    text = b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"'
    packed = gzip.compress(text + b"a" * (megabytes << 20))
    good = Stranger.made(folder, "good")
    with ExitStack() as stack:
        url = stack.enter_context(_http_server(packed, {"content-encoding": "gzip"}))
        config = configured(folder, good, more={"evil": {"url": url}})
        session = stack.enter_context(product.gateway(config))
        session.until("evil")
        session.until("good")
        before = resident_mb(session.process.pid)
        session.through_bridge("evil__boom", {}, 60)
        grown = peak_mb(session.process.pid) - before
        must(grown < 350, f"{len(packed) >> 10} KB took {grown:.0f} MB")
        must("good ran" in session.through_bridge("good__echo", {}), "the neighbour is gone")


@attack(7)
def flipping_list(product: Product, folder: Path) -> None:
    """A list that keeps changing does not fill the memory."""
    evil = Stranger.made(folder, "evil", _large_list(0), flip=0.5)
    ended = threading.Event()

    def change() -> None:
        number = 0
        while not ended.is_set():
            number += 1
            evil.become(tools=_large_list(number))
            time.sleep(0.5)

    threading.Thread(target=change, daemon=True).start()
    try:
        with product.gateway(configured(folder, evil)) as session:
            session.until("evil")
            _search_for(session, 10)
            before = resident_mb(session.process.pid)
            _search_for(session, 12)
            grown = resident_mb(session.process.pid) - before
            must(grown < 25, f"{grown:.0f} MB in 12 s")
    finally:
        ended.set()


def _large_list(number: int) -> list[dict[str, Any]]:
    """Return some 3 MB of tools that no other number has."""
    text = f"word{number} of the tool " * 40
    fields = {f"p{n}_{number}": {"type": "string", "description": text} for n in range(16)}
    schema = {"type": "object", "properties": fields}
    return [tool(f"tool_{number}_{n}", f"{text} {n}", inputSchema=schema) for n in range(200)]


def _search_for(session: Session, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        session.call("tool_search", {"query": "word of a tool"})
        time.sleep(0.1)


@attack(7)
def unknown_names(product: Product, folder: Path) -> None:
    """16 unknown names in one describe hold nobody up."""
    words = ("create", "update", "list", "find", "merge", "archive", "export", "share", "rename")
    things = ("issue", "invoice", "ticket", "document", "contact", "payment", "folder", "report")
    many = [
        tool(f"{words[n % 9]}_{things[n % 8]}_{n}", f"{words[n % 9]} the {things[n % 8]} {n}.")
        for n in range(3_000)
    ]
    big = Stranger.made(folder, "big", many)
    with product.gateway(configured(folder, big)) as session:
        session.until("big")
        session.call("tool_search", {"query": "create an issue"}, 60)
        names = [f"big__{'obtain_' * 6}{thing}_{n}_zz" for n, thing in enumerate(things * 2)]
        began = time.monotonic()
        asked = {"name": "tool_describe", "arguments": {"name": names}}
        waiting = session.begin("tools/call", asked)
        pinged = session.ask("ping", {}, 20)
        held_up = time.monotonic() - began
        must("result" in pinged and held_up < 1.5, f"a ping took {held_up:.1f} s")
        must(wait_for(lambda: not waiting.empty(), 20), "the describe took over 20 s")
        must(time.monotonic() - began < 6, f"it took {time.monotonic() - began:.1f} s")


@attack(7)
def rubbish(product: Product, folder: Path) -> None:
    """Rubbish on a server's stdout does not starve the others."""
    good = Stranger.made(folder, "good")
    evil = Stranger.made(folder, "evil", chatter=True)
    with product.gateway(configured(folder, good)) as session:
        session.until("good")
        calm = _calls(session, 4)
    (folder / "gateway.log").unlink()
    with product.gateway(configured(folder, good, evil)) as session:
        session.until("good")
        session.until("evil")
        loud = _calls(session, 4)
    must(loud > calm / 20, f"{loud} calls in 4 s instead of {calm}")


def _calls(session: Session, seconds: float) -> int:
    count, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        count += "good ran" in session.through_bridge("good__echo", {}, seconds)
    return count


@attack(7)
def yaml_aliases(product: Product, folder: Path) -> None:
    """A YAML file whose aliases come to a billion is refused at once."""
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    path = folder / "laughs.yaml"
    path.write_text("\n".join(lines) + "\nmcpServers: {s: {command: x, args: *a11}}\n")
    before = time.monotonic()
    done = product.run("list", "--config", path, cwd=folder, seconds=20)
    took = time.monotonic() - before
    must(done.returncode == 2, f"exit code {done.returncode} after {took:.0f} s")


@attack(7)
def too_deep(product: Product, folder: Path) -> None:
    """One tool nested too deep is left out and named; the others are served."""
    deep = '{"type":"object","properties":{"a":' * 900 + "{}" + "}}" * 900
    fine = json.dumps(tool("fine"))
    listed = f'[{fine},{{"name":"abyss","description":"Deep.","inputSchema":{deep}}}]'
    evil = Stranger.made(folder, "evil", tools_text=listed)
    with product.gateway(configured(folder, evil, fold="off")) as session:
        session.until("evil")
        names = [each["name"] for each in session.listed()]
        must("evil__fine" in names, f"served: {names}")
        must("abyss" in session.log(), "it is not named")


@attack(8)
def half_open(product: Product, folder: Path) -> None:
    """1,018 half-open connections without a token do not stop the service."""
    good = Stranger.made(folder, "good")
    tokens = [{"name": "me", "env": "ME"}]
    token = "m" * 32
    config = configured(folder, good, serve={"tokens": tokens})
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (4_096, max(4_096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    )
    with ExitStack() as stack:
        gateway = stack.enter_context(product.listening(config, env={"ME": token}))
        gateway.until("good")
        # As many as the usual bound of a process on its open files leaves it.
        resource.prlimit(gateway.process.pid, resource.RLIMIT_NOFILE, (1_024, 1_024))
        for _ in range(1_018):
            half = stack.enter_context(socket.socket())
            half.settimeout(5)
            try:
                half.connect(("127.0.0.1", gateway.port))
                half.sendall(b"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\nx-slow: ")
            except OSError:
                break
        began = time.monotonic()
        session = gateway.session(token, seconds=12)
        must(session, "nobody is let in")
        said = gateway.call("tool_call", {"name": "good__echo", "arguments": {}}, token, session)
        must("good ran" in said, said)
        must(time.monotonic() - began < 12, "it took over 12 s")


@attack(8)
def slow_headers(product: Product, folder: Path) -> None:
    """A connection that never sends its headers is ended."""
    config = configured(folder, Stranger.made(folder, "good"))
    with product.listening(config) as gateway, socket.socket() as half:
        half.settimeout(25)
        half.connect(("127.0.0.1", gateway.port))
        half.sendall(b"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\n")
        try:
            data = half.recv(1_000)
        except TimeoutError:
            data = None
        must(data is not None, "it was still open after 25 s")


@attack(8)
def many_sessions(product: Product, folder: Path) -> None:
    """One client cannot open sessions without end."""
    config = configured(folder, Stranger.made(folder, "good"))
    with product.listening(config) as gateway:
        gateway.until("good")
        opened = 0
        for _ in range(560):
            opened += bool(gateway.session())
        must(opened < 560, f"{opened} sessions were opened")
