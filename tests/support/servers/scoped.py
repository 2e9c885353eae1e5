"""A server that has just what it is given, and that can be made to speak up.

    CONTENT='{"tools": […], …}' PIDS=FOLDER WHO=name python -S -E scoped.py

`CONTENT` holds the records of its lists; under `later`, those that they change to, and back,
at each `SIGUSR1`, upon which it also sends the messages under `news`. Nothing but the standard
library is imported, so it starts in a few hundredths of a second.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

WHO = os.environ["WHO"]
CONTENT: dict[str, Any] = json.loads(os.environ["CONTENT"])
LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
CAPABILITIES: dict[str, Any] = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "completions": {},
    "logging": {},
}
lock = threading.RLock()
answers: dict[str, Any] = {}
is_later = False


def send(message: dict[str, Any]) -> None:
    line = json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
    with lock:
        while line:
            line = line[os.write(1, line) :]


def speak(*_: object) -> None:
    """Change the lists, and say what there is to say."""
    global is_later
    is_later = not is_later
    for number, message in enumerate(CONTENT.get("news", ())):
        asks = not message["method"].startswith("notifications/")
        send({**({"id": f"news-{time.time_ns()}-{number}"} if asks else {}), **message})


def listed(key: str) -> list[Any]:
    later = CONTENT.get("later", {})
    return later[key] if is_later and key in later else CONTENT.get(key, [])


def text(said: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": said}]}


def ask(question: str) -> dict[str, Any]:
    """Ask the client of the call that is under way."""
    number = f"ask-{time.time_ns()}"
    schema = {"type": "object", "properties": {"v": {"type": "string"}}}
    params = {"message": question, "requestedSchema": schema}
    send({"id": number, "method": "elicitation/create", "params": params})
    end = time.monotonic() + 30
    while number not in answers and time.monotonic() < end:
        time.sleep(0.01)
    return answers.pop(number, {})


def call(name: str, arguments: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    mark = str(arguments.get("x", ""))
    if name.endswith("link"):
        link = {"type": "resource_link", "uri": mark or "doc:///linked", "name": "linked"}
        return {"content": [link]}
    if name.endswith("ask"):
        return text(json.dumps(ask(f"{WHO} asks {mark}"), sort_keys=True))
    if name.endswith("wait"):
        token = (params.get("_meta") or {}).get("progressToken")
        note("message", level="error", data=f"{WHO}:{name} begins {mark}")
        if token is not None:
            note("progress", progressToken=token, progress=1, message=f"{name} {mark}")
        gate = Path(os.environ["PIDS"]) / f"{mark}.go"
        (Path(os.environ["PIDS"]) / f"{mark}.began").touch()
        end = time.monotonic() + 30
        while not gate.exists() and time.monotonic() < end:
            time.sleep(0.01)
        note("message", level="error", data=f"{WHO}:{name} ends {mark}")
    return text(f"{WHO}:{name} {json.dumps(arguments, sort_keys=True)[:200]}")


def note(method: str, **params: Any) -> None:
    send({"method": f"notifications/{method}", "params": params})


def outcome(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    if method == "initialize":
        return {
            "protocolVersion": "2025-11-25",
            "capabilities": CAPABILITIES,
            "serverInfo": {"name": WHO, "version": "1"},
        }
    if method in LISTS:
        return {LISTS[method]: listed(LISTS[method])}
    if method == "tools/call":
        return call(params["name"], params.get("arguments") or {}, params)
    if method == "prompts/get":
        said = {"type": "text", "text": f"{WHO}:{params['name']}"}
        return {"messages": [{"role": "user", "content": said}]}
    if method == "resources/read":
        return {"contents": [{"uri": params["uri"], "text": f"{WHO} has {params['uri']}"}]}
    if method == "completion/complete":
        return {"completion": {"values": [f"{WHO} {json.dumps(params['ref'], sort_keys=True)}"]}}
    return {} if method in ("ping", "logging/setLevel") or "ubscribe" in method else None


def answer(request: dict[str, Any]) -> None:
    result = outcome(request["method"], request.get("params") or {})
    if result is None:
        error = {"code": -32601, "message": "Method not found"}
        send({"id": request["id"], "error": error})
    else:
        send({"id": request["id"], "result": result})


def main() -> None:
    signal.signal(signal.SIGUSR1, speak)
    (Path(os.environ["PIDS"]) / WHO).write_text(str(os.getpid()), "utf-8")
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if message.get("method") == "notifications/roots/list_changed":
            send({"id": f"roots-{time.time_ns()}", "method": "roots/list"})
        elif "method" not in message:
            answers[str(message.get("id"))] = message.get("result", message.get("error"))
        elif "id" in message:
            threading.Thread(target=answer, args=(message,), daemon=True).start()


main()
