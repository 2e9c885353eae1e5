"""A small host that holds a conversation with a provider, and writes its requests.

It keeps a transcript of its own and renders all of it for every request, as `Folded` says; what
a provider would answer is up to the test.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from toolfold import Answer, Folded, Session, Settings, Tool, fold
from toolfold.prompts import TOOL_SEARCH
from toolfold.tool import ProviderApi

__all__ = ["CHAT", "CLAUDE", "GPT", "INLINE", "NANO", "ROUTED", "Model", "Talk", "Turn"]


@dataclass(frozen=True)
class Model:
    """Whom the host speaks to."""

    name: str
    api: ProviderApi | None
    host: str
    inline: bool = False


CLAUDE = Model("claude-sonnet-5-5", "anthropic-messages", "https://api.anthropic.com")
INLINE = replace(CLAUDE, inline=True)
GPT = Model("gpt-6-sol", "openai-responses", "api.openai.com")
NANO = replace(GPT, name="gpt-5.4-nano")
ROUTED = replace(CLAUDE, host="openrouter.ai")
CHAT = Model("some-local-model", None, "localhost")


@dataclass(frozen=True)
class Turn:
    """One call of the model's, and what it came to."""

    id: str
    name: str
    arguments: dict[str, Any]
    text: str
    found: tuple[str, ...] | None = None
    """What a search found; None where it is another call."""


@dataclass
class Talk:
    """A conversation."""

    tools: list[Tool]
    settings: Settings
    model: Model
    context_length: int | None = None
    session: Session = field(default_factory=Session)
    turns: list[Turn] = field(default_factory=list)
    folded: Folded = field(init=False)

    def __post_init__(self) -> None:
        self.assemble()

    def assemble(self) -> Folded:
        """Fold the live list for the next request."""
        model = self.model
        self.folded = fold(
            self.tools,
            settings=replace(self.settings, inline=model.inline),
            session=self.session,
            model=model.name,
            api=model.api,
            host=model.host if model.api else None,
            shape=None if model.api else "openai-chat",
            context_length=self.context_length,
        )
        self.session = self.folded.session
        return self.folded

    def refuse(self) -> None:
        """Let the provider refuse deferred tools."""
        self.session = self.folded.refused()
        self.folded = self.folded.for_session(self.session)
        self.session = self.folded.session

    def call(self, name: str, /, **arguments: Any) -> Turn:
        """Let the model call something."""
        outcome = self.folded.resolve(name, arguments, session=self.session)
        self.session = outcome.session
        is_answer = isinstance(outcome, Answer)
        is_search = self.folded.bridge.role(name) == TOOL_SEARCH
        turn = Turn(
            id=f"call_{len(self.turns)}",
            name=name,
            arguments=arguments,
            text=outcome.text if is_answer else f"{outcome.tool.name} ran",
            found=tuple(t.name for t in outcome.found) if is_answer and is_search else None,
        )
        self.turns.append(turn)
        return turn

    def compact(self) -> None:
        """Shrink what was found to a line, as hosts do in long conversations."""
        self.turns = [t if t.found is None else replace(t, text="Found.") for t in self.turns]

    # ---- requests

    def request(self) -> dict[str, Any]:
        """Return the next request's body."""
        if self.model.api == "openai-responses":
            return {
                "model": self.model.name,
                "tools": self.folded.tools,
                "input": [item for part in self.parts() for item in part],
            }
        return {
            "model": self.model.name,
            "max_tokens": 1024,
            "tools": self.folded.tools,
            "messages": [item for part in self.parts() for item in part],
        }

    def parts(self) -> list[list[Any]]:
        """Return what the request says, turn by turn; first, the user."""
        known: set[str] = set()
        responses = self.model.api == "openai-responses"
        write = self._responses if responses else self._messages
        return [[{"role": "user", "content": "Go on."}], *(write(t, known) for t in self.turns)]

    def _messages(self, turn: Turn, known: set[str]) -> list[Any]:
        content: Any = [{"type": "text", "text": turn.text}]
        more: list[Any] = []
        if turn.found is not None:
            answer = self.folded.replayed(turn.text, turn.found)
            content = answer.result_content()
            if self.folded.found_form == "tool_addition":
                text, message = answer.additions(known)
                content = [{"type": "text", "text": text}]
                more = [message] if message is not None else []
                known |= {tool.wire_name for tool in answer.found}
        use = {"type": "tool_use", "id": turn.id, "name": turn.name, "input": turn.arguments}
        result = {"type": "tool_result", "tool_use_id": turn.id, "content": content}
        return [
            {"role": "assistant", "content": [use]},
            {"role": "user", "content": [result, *([_CLOSED] if more else [])]},
            *more,
        ]

    def _responses(self, turn: Turn, known: set[str]) -> list[Any]:
        if turn.found is not None and self.folded.found_form == "tool_search_output":
            search = {
                "type": "tool_search_call",
                "execution": "client",
                "call_id": turn.id,
                "status": "completed",
                "arguments": turn.arguments,
            }
            answer = self.folded.replayed(turn.text, turn.found)
            return [search, *answer.search_output(turn.id)]
        text = turn.text
        if turn.found is not None:
            text = self.folded.replayed(turn.text, turn.found).text
        namespace = self.folded.namespace(turn.name)
        call = {
            "type": "function_call",
            "call_id": turn.id,
            "name": turn.name,
            "arguments": json.dumps(turn.arguments),
            **({"namespace": namespace} if namespace else {}),
        }
        return [call, {"type": "function_call_output", "call_id": turn.id, "output": text}]


_CLOSED = {"type": "text", "text": "Go on."}


def references(messages: Sequence[Any]) -> Iterator[str]:
    """Return the names that an Anthropic request refers to."""
    for message in messages:
        for block in message["content"] if isinstance(message["content"], list) else ():
            for inner in block.get("content", ()) if block["type"] == "tool_result" else ():
                if inner["type"] == "tool_reference":
                    yield inner["tool_name"]
