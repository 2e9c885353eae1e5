"""`python -m live proxied`: a small model behind the proxy, and an agent that knows nothing of it.

    python -m live proxied --base-url http://127.0.0.1:8080/v1 --model local --arms proxy,direct
    python -m live proxied --base-url http://127.0.0.1:8080/v1 --prefetch always

The agent is a plain loop around OpenAI's own SDK: it sends a hundred tools with every request,
runs what comes back as calls, and stops where nothing does. The arm `proxy` puts `toolfold
proxy` with `recover: true` before the model's server; `direct` asks the server itself. Both
count the same, and for each call it is told who made it: the model's server, or the proxy out
of a text.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median
from typing import Any

from live.server import ServerError
from live.sixteen import SIXTEEN, OneTool, registry_of
from toolfold.evaluation.ab.stage import Stage
from toolfold.sources.calls import PendingCall
from toolfold.tool import Tool

__all__ = ["main"]

_TOOLS = 100
_REPLIES = 4
_START_SECONDS = 60.0
_SYSTEM = "You are a helpful assistant. Use a tool where the task needs one."


@dataclass(slots=True)
class Outcome:
    """What became of one request."""

    task: str
    arm: str
    chose: bool = False
    right: bool = False
    replies: int = 0
    by_server: int = 0
    """Calls that the model's server made of what the model wrote."""
    by_proxy: int = 0
    """Calls that the proxy read out of a text."""
    read: int = 0
    written: int = 0
    seconds: float = 0.0
    why: str = ""
    messages: list[Any] = field(default_factory=list[Any])


def main(given: Sequence[str]) -> int:
    """Run both arms and print the counts."""
    options = _options(given)
    outcomes: list[Outcome] = []
    try:
        for arm in options.arms.split(","):
            chosen = SIXTEEN[: options.direct] if arm == "direct" else SIXTEEN
            with _address(arm, options.base_url, options.prefetch) as base_url:
                for number, wanted in enumerate(chosen, 1):
                    outcomes.append(_run(wanted, number, arm, base_url, options.model))
                    _tell(outcomes[-1], options.out)
    except ServerError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print("\narm     right tool  all right  by server  by proxy  tokens in/out  seconds")
    for arm in dict.fromkeys(outcome.arm for outcome in outcomes):
        own = [outcome for outcome in outcomes if outcome.arm == arm]
        seconds = [outcome.seconds for outcome in own]
        print(
            f"{arm:<7} {sum(o.chose for o in own)} of {len(own):<6} "
            f"{sum(o.right for o in own)} of {len(own):<5} {sum(o.by_server for o in own):<10} "
            f"{sum(o.by_proxy for o in own):<9} "
            f"{fmean(o.read for o in own):,.0f}/{fmean(o.written for o in own):,.0f}     "
            f"{median(seconds):.1f} ({min(seconds):.1f} to {max(seconds):.1f})"
        )
    return 0


def _options(given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m live proxied")
    parser.add_argument("--base-url", required=True, help="the model's server, with /v1")
    parser.add_argument("--model", default="local", help="what that server calls its model")
    parser.add_argument("--arms", default="proxy,direct")
    parser.add_argument("--prefetch", choices=["off", "sure", "always"], default="sure")
    parser.add_argument("--direct", type=int, default=16, help="how many requests go direct")
    parser.add_argument("--out", type=Path, default=Path(".live/proxied.jsonl"))
    return parser.parse_args(given)


@contextmanager
def _address(arm: str, upstream: str, prefetch: str) -> Generator[str]:
    if arm == "direct":
        yield upstream
        return
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="toolfold-proxied-") as folder:
        config = Path(folder) / "toolfold.yaml"
        entry = {"name": "local", "url": upstream, "recover": True}
        own = {"enabled": "on", "core": ["terminal", "memory"], "prefetch": prefetch}
        settings = {"tool_search": own}
        config.write_text(json.dumps({"tools": settings, "proxy": {"upstreams": [entry]}}), "utf-8")
        command = [sys.executable, "-c", "from toolfold.cli import main; raise SystemExit(main())"]
        command += ["proxy", "--config", str(config), "--listen", f"127.0.0.1:{port}"]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        try:
            _wait(process, port)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()
            process.wait(10)


def _wait(process: subprocess.Popen[bytes], port: int) -> None:
    began = time.monotonic()
    while time.monotonic() - began < _START_SECONDS:
        if process.poll() is not None:
            raise ServerError(f"the proxy ended with {process.returncode}")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models", timeout=5):
                return
        except OSError:
            time.sleep(0.2)
    raise ServerError(f"the proxy did not answer within {_START_SECONDS:.0f} s")


def _run(wanted: OneTool, number: int, arm: str, base_url: str, model: str) -> Outcome:
    import httpx2
    import openai

    outcome = Outcome(f"{number} {wanted.tool}", arm)
    recovered: list[int] = []

    def seen(response: Any) -> None:
        recovered.append(int(response.headers.get("x-toolfold-recovered", 0)))
        outcome.read += int(response.headers.get("x-toolfold-prompt-tokens", 0))
        outcome.written += int(response.headers.get("x-toolfold-completion-tokens", 0))

    stage = Stage()
    tools = _hundred()
    by_name = {tool.name: tool for tool in tools}
    messages: list[Any] = [
        {"role": "system", "content": _SYSTEM},
        {"role": "user", "content": wanted.prompt},
    ]
    began = time.perf_counter()
    http = httpx2.Client(event_hooks={"response": [seen]}, timeout=600)
    try:
        with openai.OpenAI(base_url=base_url, api_key="none", http_client=http) as client:  # type: ignore[arg-type]
            for _ in range(_REPLIES):
                reply = client.chat.completions.create(
                    model=model, messages=messages, tools=[_as_openai(t) for t in tools],
                    temperature=0, seed=1, max_tokens=512,
                )  # fmt: skip
                outcome.replies += 1
                if arm == "direct" and reply.usage:
                    outcome.read += reply.usage.prompt_tokens
                    outcome.written += reply.usage.completion_tokens
                message = reply.choices[0].message
                messages.append(message.model_dump(exclude_none=True))
                calls = message.tool_calls or []
                outcome.by_proxy += min(recovered[-1], len(calls))
                outcome.by_server += len(calls) - min(recovered[-1], len(calls))
                if not calls:
                    break
                messages += [_ran(call, by_name, stage) for call in calls]
                if wanted.chose(stage.executed):
                    break
    except openai.OpenAIError as error:
        outcome.why = str(error)[:200]
    outcome.seconds = time.perf_counter() - began
    outcome.chose, outcome.right = wanted.chose(stage.executed), wanted.is_right(stage.executed)
    outcome.messages = messages
    if not outcome.right and not outcome.why:
        ran = ", ".join(f"{one.tool}({json.dumps(dict(one.arguments))})" for one in stage.executed)
        outcome.why = f"ran: {ran or 'nothing'}"
    return outcome


def _hundred() -> list[Tool]:
    """Return a hundred tools: those that the requests need, and others of the same sources."""
    every = list(registry_of(Stage()).tools())
    needed = {wanted.tool for wanted in SIXTEEN} | {"terminal", "memory"}
    others = [tool for tool in every if tool.name not in needed][: _TOOLS - len(needed)]
    kept = {tool.name for tool in others} | needed
    return [tool for tool in every if tool.name in kept]


def _as_openai(tool: Tool) -> Any:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.parameters),
    }
    return {"type": "function", "function": function}


def _ran(call: Any, tools: dict[str, Tool], stage: Stage) -> dict[str, str]:
    tool = tools.get(call.function.name)
    try:
        arguments = json.loads(call.function.arguments)
    except ValueError:
        arguments = None
    if tool is None or not isinstance(arguments, dict):
        content = f"error: cannot call {call.function.name} with {call.function.arguments}"
    else:
        pending = PendingCall(tool, arguments)  # type: ignore[arg-type]
        content = asyncio.run(stage.run(pending)).text
    return {"role": "tool", "tool_call_id": call.id, "content": content}


def _tell(outcome: Outcome, out: Path) -> None:
    state = "right" if outcome.right else "chose" if outcome.chose else "wrong"
    made = f"{outcome.by_server} by server, {outcome.by_proxy} by proxy"
    print(
        f"  {outcome.arm:<7} {state:<5} {outcome.task:<34} {outcome.replies} replies, {made}, "
        f"{outcome.seconds:5.1f} s  {outcome.why[:100]}",
        flush=True,
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    record = {name: getattr(outcome, name) for name in Outcome.__slots__}
    with out.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record, ensure_ascii=False) + "\n")
