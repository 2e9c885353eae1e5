"""Agents as people write them with the official SDKs: ask, run what is called, send it back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from support.proxying import Between, mcp_tools

__all__ = ["AGENTS", "Agent", "ChatAgent", "Handed", "MessagesAgent", "ResponsesAgent"]

OWN = ("shell",)


@dataclass(frozen=True, slots=True)
class Handed:
    """A call that an agent was handed."""

    id: str
    name: str
    arguments: Any


@dataclass
class _Agent:
    wire: Between
    streamed: bool = False
    tools: list[Any] = field(default_factory=list)
    items: list[Any] = field(default_factory=list)
    more: dict[str, Any] = field(default_factory=dict)
    answers: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Take the dialect's tools, where none are given."""

    def talk(self, text: str, rounds: int = 20) -> list[Handed]:
        """Say something, run what is called until nothing is; return all calls."""
        self.say(text)
        made: list[Handed] = []
        for _ in range(rounds):
            calls = self.ask()
            if not calls:
                break
            made += calls
            self.results(calls)
        return made

    def say(self, text: str) -> None:
        """Add a message of the user's."""
        self.items.append({"role": "user", "content": text})

    def ask(self) -> list[Handed]:
        """Ask, and keep the answer."""
        raise NotImplementedError

    def results(self, calls: Sequence[Handed]) -> None:
        """Send back what calls came to."""
        raise NotImplementedError


class Agent(Protocol):
    """What all of them have."""

    wire: Between
    items: list[Any]
    tools: list[Any]
    answers: list[Any]
    more: dict[str, Any]

    def talk(self, text: str, rounds: int = 20) -> list[Handed]: ...
    def say(self, text: str) -> None: ...
    def ask(self) -> list[Handed]: ...
    def results(self, calls: Sequence[Handed]) -> None: ...


class ChatAgent(_Agent):
    """OpenAI's chat completions."""

    def __post_init__(self) -> None:
        self.tools = self.tools or mcp_tools("openai-chat", own=OWN)

    def ask(self) -> list[Handed]:
        client = self.wire.openai().chat.completions
        request: Any = {"model": "m", "messages": self.items, "tools": self.tools, **self.more}
        if self.streamed:
            with client.stream(**request) as stream:
                made = stream.get_final_completion()
        else:
            made = client.create(**request)
        self.answers.append(made)
        message = made.choices[0].message
        self.items.append(message.model_dump(exclude_none=True, exclude={"parsed"}))
        for call in self.items[-1].get("tool_calls", ()):
            call.pop("index", None)
            call["function"].pop("parsed_arguments", None)
        return [
            Handed(call.id, call.function.name, json.loads(call.function.arguments))
            for call in message.tool_calls or ()
        ]

    def results(self, calls: Sequence[Handed]) -> None:
        self.items += [
            {"role": "tool", "tool_call_id": call.id, "content": f"did {call.name}"}
            for call in calls
        ]


class MessagesAgent(_Agent):
    """Anthropic's Messages."""

    def __post_init__(self) -> None:
        self.tools = self.tools or mcp_tools("anthropic-messages", own=OWN)

    def ask(self) -> list[Handed]:
        client = self.wire.anthropic().messages
        request: Any = {
            "model": "m",
            "max_tokens": 99,
            "messages": self.items,
            "tools": self.tools,
            **self.more,
        }
        if self.streamed:
            with client.stream(**request) as stream:
                made = stream.get_final_message()
        else:
            made = client.create(**request)
        self.answers.append(made)
        content = [
            block.model_dump(exclude_none=True, exclude={"parsed_output"}) for block in made.content
        ]
        self.items.append({"role": "assistant", "content": content})
        return [
            Handed(block.id, block.name, block.input)
            for block in made.content
            if block.type == "tool_use"
        ]

    def results(self, calls: Sequence[Handed]) -> None:
        content = [
            {"type": "tool_result", "tool_use_id": call.id, "content": f"did {call.name}"}
            for call in calls
        ]
        self.items.append({"role": "user", "content": content})


class ResponsesAgent(_Agent):
    """OpenAI's Responses."""

    def __post_init__(self) -> None:
        self.tools = self.tools or mcp_tools("openai-responses", own=OWN)
        self.more = {"store": False, **self.more}

    def ask(self) -> list[Handed]:
        client = self.wire.openai().responses
        request: Any = {"model": "m", "input": self.items, "tools": self.tools, **self.more}
        if self.streamed:
            with client.stream(**request) as stream:
                made: Any = stream.get_final_response()
        else:
            made = client.create(**request)
        self.answers.append(made)
        for item in made.output:
            self.items.append(item.model_dump(exclude_none=True))
            for part in self.items[-1].get("content", ()):
                part.pop("parsed", None)
            self.items[-1].pop("parsed_arguments", None)
        return [
            Handed(item.call_id, item.name, json.loads(item.arguments))
            for item in made.output
            if item.type == "function_call"
        ]

    def results(self, calls: Sequence[Handed]) -> None:
        self.items += [
            {"type": "function_call_output", "call_id": call.id, "output": f"did {call.name}"}
            for call in calls
        ]


AGENTS: dict[str, type[_Agent]] = {
    "openai-chat": ChatAgent,
    "openai-responses": ResponsesAgent,
    "anthropic-messages": MessagesAgent,
}
