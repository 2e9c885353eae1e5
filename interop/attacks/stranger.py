"""A server that does what a script tells it: `python -S -E stranger.py SCRIPT.json`.

On the bare pipes, with the standard library alone. The script is read anew for each list, so
that a server can change its mind. Every run of a tool is a line of the file `calls`.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import Any

PATH = sys.argv[1]
lock = threading.Lock()


def script() -> dict[str, Any]:
    while True:
        try:
            with open(PATH, encoding="utf-8") as file:
                return json.load(file)
        except ValueError:  # it is being written
            time.sleep(0.01)


def put(text: str) -> None:
    data = memoryview(text.encode("utf-8", "surrogatepass") + b"\n")
    with lock:
        while data:
            data = data[os.write(1, data) :]


def send(message: dict[str, Any]) -> None:
    put(json.dumps({"jsonrpc": "2.0", **message}))


def listing(own: dict[str, Any], number: Any, key: str) -> None:
    if own.get(f"{key}_text"):
        put(
            f'{{"jsonrpc":"2.0","id":{json.dumps(number)},"result":{{"{key}":{own[f"{key}_text"]}}}}}'
        )
    else:
        send({"id": number, "result": {key: own.get(key, [])}})


def ran(own: dict[str, Any], params: dict[str, Any]) -> None:
    line = json.dumps({"server": own["name"], **params}) + "\n"
    with open(own["calls"], "a", encoding="utf-8") as file:
        file.write(line)


def answer(request: dict[str, Any]) -> None:
    own, number, method = script(), request["id"], request["method"]
    params = request.get("params") or {}
    if method == "initialize":
        able = {"tools": {"listChanged": True}, "resources": {}, "prompts": {}}
        about = {"name": own["name"], "version": "1"}
        version = {"protocolVersion": "2025-11-25", "capabilities": able, "serverInfo": about}
        send({"id": number, "result": version})
    elif method == "tools/list":
        listing(own, number, "tools")
    elif method in ("resources/list", "prompts/list"):
        listing(own, number, method.partition("/")[0])
    elif method == "resources/read":
        contents = [{"uri": params["uri"], "text": "read"}]
        send({"id": number, "result": {"contents": contents}})
    elif method == "prompts/get":
        send({"id": number, "result": {"messages": []}})
    elif method == "tools/call":
        ran(own, params)
        if own.get("last_words"):
            sys.stderr.write(own["last_words"] + "\n")
            sys.stderr.flush()
            os._exit(3)
        if own.get("elicit"):
            send({"id": "ask", "method": "elicitation/create", "params": own["elicit"]})
        text = own.get("result", f"{own['name']} ran {params['name']}")
        send({"id": number, "result": {"content": [{"type": "text", "text": text}]}})
    elif method == "ping":
        send({"id": number, "result": {}})
    else:
        send({"id": number, "error": {"code": -32601, "message": "Method not found"}})


def flip(seconds: float) -> None:
    while True:
        time.sleep(seconds)
        send({"method": "notifications/tools/list_changed"})


def chatter() -> None:
    noise = ("x" * 120 + "\n") * 500
    while True:
        put(noise)


def main() -> None:
    own = script()
    if own.get("first_words"):
        sys.stderr.write(own["first_words"] + "\n")
        sys.exit(3)
    if own.get("environment"):
        with open(own["environment"], "w", encoding="utf-8") as file:
            json.dump(dict(os.environ), file)
    if own.get("flip"):
        threading.Thread(target=flip, args=(own["flip"],), daemon=True).start()
    while line := sys.stdin.buffer.readline():
        request = json.loads(line)
        if "id" in request and "method" in request:
            answer(request)
            if own.get("chatter") and request["method"] == "tools/list":
                threading.Thread(target=chatter, daemon=True).start()
                own["chatter"] = False


if __name__ == "__main__":
    main()
