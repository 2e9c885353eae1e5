"""What one task costs in tokens: all tools listed, the framework's own search, ours.

    python frameworks/tokens.py .adapters            # a table of all that are installed
    python frameworks/tokens.py pydantic_ai          # one of them, as a line of JSON

The task: among 207 tools, find the one that opens an issue, call it, say that it is done. The
model is a script. Counted are the whole requests to it, as characters over four.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "frameworks"), str(ROOT / "tests"), str(ROOT)]

from bench.results import keep, now  # noqa: E402
from scenario import Scenario  # noqa: E402
from world import (  # noqa: E402
    DIRECT,
    FOLD,
    ISSUE,
    QUERY,
    REPORTED,
    TASK,
    ModelServer,
    World,
    asked,
)

from toolfold import estimate  # noqa: E402

FRAMEWORKS = (
    "pydantic_ai",
    "langchain",
    "fastmcp",
    "openai_agents",
    "google_adk",
    "strands",
    "agent_framework",
    "llama_index",
    "haystack",
    "smolagents",
)
CREATE = asked(2, "forge__create_issue", **ISSUE)
Asking = Callable[[ModelServer, World], Coroutine[Any, Any, None]]


def spent(script: Sequence[Any], ask: Asking) -> tuple[int, int]:
    """Play a script; return how many requests there were, and their tokens together."""
    world = World()
    with ModelServer(*script) as server:
        asyncio.run(ask(server, world))
    assert world.calls == REPORTED, world.calls
    costs = [estimate(json.dumps(request.body)) for request in server.requests]
    return len(costs), sum(costs)


def measured(name: str) -> dict[str, tuple[int, int]]:
    """Return what the task costs in a framework, by way."""
    tests: Any = importlib.import_module(f"test_{name}")
    tests.CORE = ()  # nothing stays open
    (suite,) = (
        each()
        for each in vars(tests).values()
        if isinstance(each, type) and issubclass(each, Scenario) and each is not Scenario
    )

    def asking(settings: Any) -> Asking:
        return lambda server, world: suite.begin(server, suite.tools(world), settings=settings)(
            TASK
        )

    costs = {
        "listed": spent((DIRECT[0], suite.done), asking(None)),
        "ours": spent(suite.ours, asking(FOLD)),
    }
    if name in OWN:
        search, create, ask = OWN[name](tests)
        costs["own"] = spent((search, create, suite.done), ask)
    return costs


# ---- the frameworks' own searches, where they run without a provider's


def _pydantic_ai(tests: Any) -> tuple[Any, Any, Asking]:
    async def ask(server: ModelServer, world: World) -> None:
        toolset = tests.toolset_of(world).defer_loading()
        agent = tests.Agent(tests.chat(server), deps_type=tests.User, toolsets=[toolset])
        await agent.run(TASK, deps=tests.User())

    return asked(1, "search_tools", queries=[QUERY]), CREATE, ask


def _haystack(tests: Any) -> tuple[Any, Any, Asking]:
    from haystack.tools import SearchableToolset

    async def ask(server: ModelServer, world: World) -> None:
        tools = SearchableToolset(tests.tools_of(world))
        agent = tests.Agent(chat_generator=tests.model_of(server), tools=tools)
        await agent.run_async(tests.said(TASK))

    return asked(1, "search_tools", tool_keywords=QUERY), CREATE, ask


def _fastmcp(tests: Any) -> tuple[Any, Any, Asking]:
    async def ask(server: ModelServer, world: World) -> None:
        # Its own transform, where the suite puts ours.
        tests.FoldTransform = lambda *_, **__: tests.BM25SearchTransform()
        await tests.TestFastMCP().begin(server, tests.tools_of(world))(TASK)

    create = asked(2, "call_tool", name="forge__create_issue", arguments=ISSUE)
    return asked(1, "search_tools", query=QUERY), create, ask


OWN = {"pydantic_ai": _pydantic_ai, "haystack": _haystack, "fastmcp": _fastmcp}


def table(environments: Path) -> None:
    """Print the table."""
    ways = ("listed", "own", "ours")
    started = time.perf_counter()
    rows: list[dict[str, Any]] = []
    print("| framework | all listed | its own search | toolfold |\n|---|---:|---:|---:|")
    for name in FRAMEWORKS:
        python = environments / name / "bin" / "python"
        if not python.exists():
            print(f"{name}: not installed, `make adapter-{name}` does it", file=sys.stderr)
            continue
        command = [str(python), __file__, name]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if ran.returncode:
            print(f"{name}: {ran.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
            continue
        costs = json.loads(ran.stdout.splitlines()[-1])
        cells = [f"{costs[way][1]:,} in {costs[way][0]}" if way in costs else "" for way in ways]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
        tokens = {f"tokens {way}": costs[way][1] for way in ways if way in costs}
        requests = {f"requests {way}": costs[way][0] for way in ways if way in costs}
        rows.append({"framework": name, **tokens, **requests})
    title = "Tokens of one task among 207 tools: all listed, the framework's own search, ours"
    keep(now("frameworks-tokens", title, "make recall", rows, started))


if __name__ == "__main__":
    if len(sys.argv) > 1 and not Path(sys.argv[1]).is_dir():
        print(json.dumps(measured(sys.argv[1])))
    else:
        table(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / ".adapters"))
