"""A server that breaks the protocol in every way, written on the bare pipes.

    python -S -E wild.py [FLAG…]

Nothing but the standard library is imported, so it starts in a few hundredths of a second,
and no library mends what it does. Every run of a tool is written to the file `$RUNS`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

FLAGS = {flag.partition("=")[0]: flag.partition("=")[2] for flag in sys.argv[1:]}
WHO = os.environ.get("WHO", "")
DEEP = b'{"jsonrpc":"2.0","id":1,"result":' + b'{"a":' * 5000 + b"1" + b"}" * 5000 + b"}\n"
RUBBISH = (
    b"Starting up...\n",
    b"\xff\xfe\x00\x80 not text\n",
    b'{"jsonrpc":"2.0","id":1,"resu\n',
    b'{"jsonrpc":"2.0"}\n',
    b'{"jsonrpc":"1.0","id":1,"result":{}}\n',
    b"[1,2,3]\nnull\ntrue\n\n\r\n\x00\n",
    b'[{"jsonrpc":"2.0","id":1,"result":{"content":[]}}]\n',
    b'{"jsonrpc":"2.0","id":{"a":1},"result":{}}\n',
    b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}\n',
    b'{"jsonrpc":"2.0","method":7}\n',
    b'{"jsonrpc":"2.0","method":"notifications/no/such","params":{"a":[]}}\n',
    b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1}}\n',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}\n',
    DEEP,
    b"x" * 3_000_000 + b"\n",
)
HINTS: dict[str, dict[str, bool]] = {
    "echo": {"readOnlyHint": True},
    "read": {"readOnlyHint": True},
    "put": {"idempotentHint": True},
}
TEXT = {"type": "object", "properties": {"x": {"type": "string"}, "n": {"type": "integer"}}}
lock = threading.Lock()
changes = 0


def send(message: dict[str, Any]) -> None:
    line = json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
    with lock:
        if "rubbish" in FLAGS:
            for piece in RUBBISH:
                put(piece)
            # A message may come in pieces.
            put(line[:7])
            put(line[7:])
        else:
            put(line)


def put(data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(1, rest) :]


def note(method: str, **params: Any) -> None:
    send({"method": f"notifications/{method}", "params": params})


def bomb(levels: int) -> dict[str, Any]:
    """Return a schema of some 2 KB that means the same thing 2 to the power of `levels` times."""
    twice = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(levels)}
    definitions: dict[str, Any] = {**twice, f"d{levels}": {"type": "object"}}
    return {"type": "object", "properties": TEXT["properties"], "allOf": [{"$ref": "#/$defs/d0"}],
            "$defs": definitions}  # fmt: skip


def tools() -> list[dict[str, Any]]:
    names = [
        "echo", "read", "put", "write", "hang", "pid", "die", "flood", "refuse", "child",
        "detach", *([f"now_{changes}"] if "changing" in FLAGS else []),
        *(["wait"] if "waits" in FLAGS else []),
    ]  # fmt: skip
    found: list[Any] = [
        {
            "name": name,
            "description": f"The tool {name} of {WHO}.",
            "inputSchema": TEXT,
            **({"annotations": HINTS[name]} if name in HINTS else {}),
        }
        for name in names
    ]
    if "bomb" in FLAGS:
        found.append({"name": "boom", "inputSchema": bomb(40)})
    if "odd-tools" in FLAGS:
        schema = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 2**80}}}
        found += [
            None, "echo", 7, [], {}, {"name": ""}, {"name": 7}, {"name": None},
            {"name": "no_schema"}, {"name": "odd_schema", "inputSchema": [1]},
            {"name": "echo", "inputSchema": TEXT}, {"name": "large", "inputSchema": schema},
            {"name": "not_a_number", "inputSchema": {"type": "object", "default": float("nan")}},
            {"name": "a" * 5000, "inputSchema": TEXT}, {"name": "né / ☃", "inputSchema": TEXT},
            {"name": "long", "description": "y" * 1_000_000, "inputSchema": TEXT},
        ]  # fmt: skip
    return found


def page(cursor: str | None) -> dict[str, Any]:
    many = int(FLAGS.get("many") or 0)
    if not many:
        return {"tools": tools()}
    start = int(cursor or 0)
    end = min(start + 100, many)
    rest = {"nextCursor": str(end)} if end < many else {}
    listed = [
        {"name": f"tool_{i}", "description": f"Does thing {i}.", "inputSchema": TEXT}
        for i in range(start, end)
    ]
    return {"tools": listed, **rest}


def runs(mark: str) -> int:
    """Write a run down, and return how many there were of that kind, this one included."""
    with open(os.environ["RUNS"], "a+", encoding="utf-8") as file:
        file.write(mark + "\n")
        file.flush()
        file.seek(0)
        return file.read().splitlines().count(mark)


def end() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)


def flood(count: int) -> None:
    for i in range(count):
        note("message", level="info", data={"n": i})
        if i % 20 == 0:
            note("tools/list_changed")
            note("prompts/list_changed")
            note("resources/updated", uri=f"wild:///{i}")


def call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    x, n = str(arguments.get("x", "")), int(arguments.get("n", 0))
    text = f"{WHO}{x}"
    if "RUNS" in os.environ and runs(f"{name} {x}") <= n and name in ("read", "put", "write"):
        end()
    if name == "hang":
        time.sleep(600)
    elif name == "wait":  # for a file
        while not os.path.exists(x):
            time.sleep(0.01)
    elif name == "die":
        end()
    elif name == "pid":
        text = str(os.getpid())
    elif name == "flood":
        flood(n)
    elif name in ("child", "detach"):
        command = [sys.executable, "-S", "-E", "-c", "import time; time.sleep(600)"]
        text = str(subprocess.Popen(command, start_new_session=name == "detach").pid)
    return {"content": [{"type": "text", "text": text}]}


def outcome(request: dict[str, Any]) -> dict[str, Any]:
    """Return what a request comes to, as the rest of the message that answers it."""
    method, params = request["method"], request.get("params") or {}
    if method == "initialize":
        result: dict[str, Any] = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {"listChanged": True}, "logging": {}},
            "serverInfo": {"name": "wild", "version": "1"},
        }
    elif method == "tools/list":
        result = page(params.get("cursor"))
    elif method == "tools/call" and params["name"] == "refuse":
        error = {"code": int(params["arguments"]["n"]), "message": params["arguments"]["x"]}
        runs(f"refuse {error['message']}")
        return {"error": error}
    elif method == "tools/call":
        result = call(params["name"], params.get("arguments") or {})
    elif method in ("ping", "logging/setLevel"):
        result = {}
    else:
        return {"error": {"code": -32601, "message": "Method not found"}}
    return {"result": result}


def answer(request: dict[str, Any]) -> None:
    number, method, came = request["id"], request["method"], outcome(request)
    if "wrong" in FLAGS and method == "tools/call":
        number += 1_000_000
    if "twice" not in FLAGS or "error" in came:
        send({"id": number, **came})
        return
    other = {"content": [{"type": "text", "text": "another's"}]}
    # Before anybody asked, under ids to come and such as were never given.
    for odd in (number + 1, number + 2, -number, f"x{number}", 10**30, number + 0.5):
        send({"id": odd, "result": other})
    send({"id": number, **came})
    send({"id": number, "result": other})
    send({"id": number, "error": {"code": -32000, "message": "Connection closed"}})
    send({"id": number - 1, "result": other})


def change() -> None:
    global changes
    while True:
        time.sleep(float(FLAGS["changing"]))
        changes += 1
        note("tools/list_changed")


def begin() -> None:
    """Do what it does before it reads anything."""
    if "stubborn" in FLAGS:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "exit" in FLAGS:
        sys.stderr.write("I will not\n")
        sys.exit(7)
    if "hang" in FLAGS:
        time.sleep(600)
    if "changing" in FLAGS:
        threading.Thread(target=change, daemon=True).start()


def main() -> None:
    begin()
    while line := sys.stdin.buffer.readline():
        request = json.loads(line)
        method = request.get("method", "")
        if "id" not in request or not method:
            continue
        if "hang-list" in FLAGS and method.endswith("/list"):
            continue
        threading.Thread(target=answer, args=(request,), daemon=True).start()
        if "deaf" in FLAGS and method == "tools/list":
            time.sleep(600)
        if "mute" in FLAGS and method == "tools/call":
            os.close(0)
            time.sleep(600)
    if "stubborn" in FLAGS:
        time.sleep(600)


if __name__ == "__main__":
    main()
