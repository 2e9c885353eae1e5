"""What one task costs in tokens: all tools listed, the framework's own search, ours.

    python frameworks/tokens.py .adapters            # a table of all that are installed
    python frameworks/tokens.py pydantic_ai          # one of them, as a line of JSON

The task: among 207 tools, find the one that opens an issue, call it, say that it is done. The
model is a script. Counted are the whole requests to it, as characters over four.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "frameworks"), str(ROOT / "tests"), str(ROOT)]

from bench.results import keep, now  # noqa: E402
from world import FOLD, ModelServer, World, asked, says  # noqa: E402

from toolfold import estimate  # noqa: E402

WANTED = "open an issue in the tracker"
ISSUE = {"repo": "acme/website", "title": "It is broken"}
DONE = says(text="Done.")
DIRECT = (asked(1, "forge__create_issue", **ISSUE), DONE)
OURS = (
    asked(1, "tool_search", query=WANTED),
    asked(2, "tool_call", name="forge__create_issue", arguments=ISSUE),
    DONE,
)
Costs = dict[str, tuple[int, int]]
"""By way: how many requests, and their tokens together."""


def spent(script: Sequence[Any], run: Callable[[ModelServer, World], Any]) -> tuple[int, int]:
    """Play a script, and return what it cost."""
    world = World()
    with ModelServer(*script) as server:
        run(server, world)
    assert world.calls == [("forge__create_issue", ISSUE)], world.calls
    costs = [estimate(json.dumps(request.body)) for request in server.requests]
    return len(costs), sum(costs)


def pydantic_ai() -> Costs:
    """Pydantic AI, whose own search is local here."""
    from pydantic_ai import Agent
    from test_pydantic_ai import User, chat, toolset_of

    from toolfold.adapters.pydantic_ai import FoldTools

    def run(server: ModelServer, toolset: Any, **more: Any) -> None:
        agent = Agent(chat(server), deps_type=User, toolsets=[toolset], **more)
        agent.run_sync("Report it.", deps=User())

    own = (asked(1, "search_tools", queries=[WANTED]), asked(2, "forge__create_issue", **ISSUE))
    return {
        "listed": spent(DIRECT, lambda s, w: run(s, toolset_of(w))),
        "own": spent((*own, DONE), lambda s, w: run(s, toolset_of(w).defer_loading())),
        "ours": spent(OURS, lambda s, w: run(s, toolset_of(w), capabilities=[FoldTools(FOLD)])),
    }


def langchain() -> Costs:
    """LangChain, which has no search of its own without a provider's."""
    from langchain.agents import create_agent
    from test_langchain import chat, tools_of, user

    from toolfold.adapters.langchain import FoldToolsMiddleware

    def run(server: ModelServer, world: World, *middleware: Any) -> None:
        create_agent(chat(server), tools_of(world), middleware=middleware).invoke(
            user("Report it.")
        )

    return {
        "listed": spent(DIRECT, run),
        "ours": spent(OURS, lambda s, w: run(s, w, FoldToolsMiddleware(FOLD))),
    }


def openai_agents() -> Costs:
    """The OpenAI Agents SDK, which has no search of its own without OpenAI's."""
    from agents import Agent, Runner
    from test_openai_agents import chat, tools_of

    from toolfold.adapters.openai_agents import FoldedAgent

    def run(kind: Any, server: ModelServer, world: World, **more: Any) -> None:
        agent = kind(name="a", model=chat(server), tools=tools_of(world), **more)
        asyncio.run(Runner.run(agent, "Report it."))

    return {
        "listed": spent(DIRECT, lambda s, w: run(Agent, s, w)),
        "ours": spent(OURS, lambda s, w: run(FoldedAgent, s, w, settings=FOLD)),
    }


def google_adk() -> Costs:
    """Google ADK, which has no search of its own."""
    from google.adk.agents import LlmAgent
    from test_google_adk import events, model_of, tools_of

    from toolfold.adapters.google_adk import FoldToolsPlugin

    def run(server: ModelServer, world: World, *plugins: Any) -> None:
        agent = LlmAgent(name="assistant", model=model_of(server), tools=tools_of(world))
        asyncio.run(events(agent, plugins=list(plugins)))

    return {
        "listed": spent(DIRECT, run),
        "ours": spent(OURS, lambda s, w: run(s, w, FoldToolsPlugin(FOLD))),
    }


def haystack() -> Costs:
    """Haystack, with its own `SearchableToolset`; it has no adapter."""
    from haystack.components.agents import Agent
    from haystack.components.generators.chat import OpenAIChatGenerator
    from haystack.dataclasses import ChatMessage
    from haystack.tools import SearchableToolset, Tool
    from haystack.utils import Secret

    def run(server: ModelServer, world: World, folds: bool) -> None:
        tools = [
            Tool(
                name=tool.name,
                description=tool.description,
                parameters=dict(tool.parameters),
                function=lambda name=tool.name, **given: world.run(name, given),
            )
            for tool in world.tools
        ]
        generator = OpenAIChatGenerator(
            api_key=Secret.from_token("key"), model="any", api_base_url=server.openai
        )
        agent = Agent(chat_generator=generator, tools=SearchableToolset(tools) if folds else tools)
        agent.run(messages=[ChatMessage.from_user("Report it.")])

    own = (asked(1, "search_tools", tool_keywords=WANTED), asked(2, "forge__create_issue", **ISSUE))
    return {
        "listed": spent(DIRECT, lambda s, w: run(s, w, False)),
        "own": spent((*own, DONE), lambda s, w: run(s, w, True)),
    }


COUNTED = (pydantic_ai, langchain, openai_agents, google_adk, haystack)


def table(environments: Path) -> None:
    """Print the table."""
    ways = ("listed", "own", "ours")
    started = time.perf_counter()
    rows: list[dict[str, Any]] = []
    print("| framework | all listed | its own search | toolfold |\n|---|---:|---:|---:|")
    for each in COUNTED:
        name = each.__name__
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
        print(json.dumps(next(each for each in COUNTED if each.__name__ == sys.argv[1])()))
    else:
        table(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / ".adapters"))
