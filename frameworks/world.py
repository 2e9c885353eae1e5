"""What every framework's tests act on: 207 tools of a made-up world, and a model by a script.

The tools are those of `toolfold demo`. The model is a real HTTP server that speaks the wire of
the providers, so that each framework asks it through its own provider class. What the model
says in every framework's tests stands here, too: one task, its mistakes, a forbidden wish.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from support.model_server import ModelServer, Raw, Received, Says, response
from toolfold import Scope, Settings, estimate
from toolfold.demo import demo_catalog
from toolfold.demo.host import DemoHost
from toolfold.runtime.messages import Call
from toolfold.tool import Tool

__all__ = [
    "BRIDGE",
    "CORE",
    "CREATE",
    "DIRECT",
    "DONE",
    "FOLD",
    "FORBIDDEN",
    "HIDDEN_FROM_READER",
    "ISSUE",
    "MCP_SERVER",
    "MISTAKES",
    "OURS",
    "QUERY",
    "READER",
    "REPORTED",
    "SEARCH",
    "TASK",
    "ModelServer",
    "Says",
    "World",
    "as_responses",
    "asked",
    "call",
    "called",
    "last_results",
    "messages",
    "says",
    "tool_names",
    "tools_tokens",
]

FOLD = Settings(enabled="on")
CORE = ("list_calendar_events",)
BRIDGE = ["tool_search", "tool_describe", "tool_call"]
READER = Scope(allow=("forge__list_*", "forge__get_*", "notes__*", "list_calendar_events"))
"""What a restricted user may use."""

HIDDEN_FROM_READER = "forge__create_issue"


class World:
    """A fresh world, its tools, and what was really called.

    Args:
        more: Tools beside those of the demo, and what each of them does with its arguments.
        tools: All tools, in place of the demo's.
    """

    def __init__(
        self,
        more: Mapping[Tool, Callable[..., str]] | None = None,
        tools: Sequence[Tool] | None = None,
    ) -> None:
        self.host = DemoHost()
        self._does = {tool.name: run for tool, run in (more or {}).items()}
        self.tools: tuple[Tool, ...] = (*(tools or demo_catalog()), *(more or ()))
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def tool(self, name: str) -> Tool:
        """Return a tool by its name."""
        return next(tool for tool in self.tools if tool.name == name)

    def run(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Run a tool and return its result as JSON text."""
        self.calls.append((name, dict(arguments)))
        if name in self._does:
            return self._does[name](**arguments)
        return json.dumps(self.host.run(name, arguments), default=lambda output: output.text)

    async def arun(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Run a tool as `run` does, having let others run first."""
        await asyncio.sleep(0)
        return self.run(name, arguments)


def call(name: str, id: str = "call_1", /, **arguments: Any) -> Call:
    """Return a call of a tool, as a model writes it."""
    return Call(name, json.dumps(arguments), id)


def says(*calls: Call, text: str = "") -> Says:
    """Return a reply of the model."""
    return Says(text, calls=calls, prompt=10, completion=5)


def asked(place: int, name: str, /, **arguments: Any) -> Says:
    """Return a reply that calls one tool, with an id of its own."""
    return says(call(name, f"call_{place}", **arguments))


# ---- what the model says

TASK = "Report it."
"""What the user asks for."""

QUERY = "open an issue in the tracker"
ISSUE = {"repo": "acme/website", "title": "It is broken"}
REPORTED = [("forge__create_issue", ISSUE)]
"""What was really called once the task is done."""

SEARCH = asked(1, "tool_search", query=QUERY)
CREATE = asked(2, "tool_call", name="forge__create_issue", arguments=ISSUE)
DONE = says(text="Done.")
OURS = (SEARCH, CREATE, DONE)
"""The task, done by a model whose tools are folded."""

DIRECT = (asked(1, "forge__create_issue", **ISSUE), DONE)
"""The task, done by a model that sees all tools, or guesses."""

MISTAKES = (
    asked(3, "tool_call", name="forge__create_issue", arguments={"title": "x"}),
    asked(4, "tool_call", name="forge__create_isue", arguments=ISSUE),
    asked(5, "forge__create_isue", **ISSUE),
    asked(6, "tool_call", name="tool_call", arguments={}),
)
"""An argument that is missing, a name that is nearly right, the same called directly, a bridge
called through the bridge."""

FORBIDDEN = (
    SEARCH,
    asked(2, "tool_describe", name=HIDDEN_FROM_READER),
    asked(3, "tool_call", name=HIDDEN_FROM_READER, arguments=ISSUE),
    asked(4, HIDDEN_FROM_READER, **ISSUE),
    DONE,
)
"""What a restricted user's model tries."""


MCP_SERVER = """
try:
    from mcp.server import MCPServer
except ImportError:
    from mcp.server import FastMCP as MCPServer

server = MCPServer("tracker")


@server.tool()
def create_issue(repo: str, title: str) -> str:
    "Open an issue in the tracker."
    return f"{repo}: {title}"


server.run()
"""
"""The program of an MCP server, of today's SDK and of the one before."""


def as_responses(*script: Says) -> list[Any]:
    """Return replies of the Responses API, each with ids of its own, as a provider gives them."""

    def step(place: int, reply: Says) -> Raw:
        text = json.dumps(response(reply))
        for kind in ("resp", "msg", "fc"):
            text = text.replace(f'"{kind}_1"', f'"{kind}_{place}{place}"')
        return Raw([text.encode()], 200, {"content-type": "application/json"})

    return [step(place, reply) for place, reply in enumerate(script, 1)]


def tool_names(request: Received) -> list[str]:
    """Return the names of the tools in a request, whatever its API."""
    tools = request.body.get("tools") or []
    return [tool.get("name") or tool["function"]["name"] for tool in tools]


def tools_tokens(request: Received) -> int:
    """Return what the tools of a request cost, nearly."""
    return estimate(json.dumps(request.body.get("tools") or []))


def messages(request: Received) -> list[Any]:
    """Return what was said before a request, whatever its API."""
    return request.body.get("messages") or request.body.get("input") or []


def called(request: Received) -> list[tuple[str, Any]]:
    """Return the calls that a request tells the model it made, whatever the API."""
    found: list[tuple[str, Any]] = []
    for message in messages(request):
        content = message.get("content")
        blocks = content if isinstance(content, list) else []
        found += [(b["name"], b["input"]) for b in blocks if b.get("type") == "tool_use"]
        functions = [each["function"] for each in message.get("tool_calls") or ()]
        functions += [message] if message.get("type") == "function_call" else []
        found += [(f["name"], json.loads(f["arguments"])) for f in functions]
    return found


def last_results(request: Received) -> list[str]:
    """Return what the last calls came to, as the request tells the model."""
    found: list[str] = []
    for item in reversed(messages(request)):
        if item.get("role") == "tool":
            found.append(_text(item["content"]))
        elif item.get("type") == "function_call_output":
            found.append(_text(item["output"]))
        elif item.get("role") == "user" and _results_of(item):
            found += reversed(_results_of(item))
        else:
            break
    return found[::-1]


def _results_of(item: Any) -> list[str]:
    blocks = item["content"] if isinstance(item["content"], list) else []
    return [_text(block["content"]) for block in blocks if block.get("type") == "tool_result"]


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text", "")) for part in content)
