"""What every framework's tests act on: 207 tools of a made-up world, and a model by a script.

The tools are those of `toolfold demo`. The model is a real HTTP server that speaks the wire of
the providers, so that each framework asks it through its own provider class.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
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
    "FOLD",
    "HIDDEN_FROM_READER",
    "READER",
    "ModelServer",
    "Says",
    "World",
    "as_responses",
    "asked",
    "call",
    "last_results",
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
    """A fresh world, its tools, and what was really called."""

    def __init__(self) -> None:
        self.host = DemoHost()
        self.tools: tuple[Tool, ...] = tuple(demo_catalog())
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def tool(self, name: str) -> Tool:
        """Return a tool by its name."""
        return next(tool for tool in self.tools if tool.name == name)

    def run(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Run a tool and return its result as JSON text."""
        self.calls.append((name, dict(arguments)))
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


def last_results(request: Received) -> list[str]:
    """Return what the last calls came to, as the request tells the model."""
    found: list[str] = []
    items = request.body.get("messages") or request.body.get("input") or []
    for item in reversed(items):
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
