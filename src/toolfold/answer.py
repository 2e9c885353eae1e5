"""What `resolve` returns: an answer for the model, or an invocation for the host."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from toolfold import prompts
from toolfold._json_values import parse
from toolfold._signature import signature
from toolfold._summary import summary_of
from toolfold.session import Session
from toolfold.tool import Json, ProviderApi, Tool

__all__ = ["Answer", "Hit", "Invocation", "Shown"]

Shown = Literal["signature", "name", "companion"]
"""How a hit stands in an answer: with its signature, by name behind those, or by name as a
tool that may be needed beside them."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One search result: a live tool and why it is there."""

    tool: Tool
    """The tool, of the catalog that was searched."""

    score: float
    """How well it answers, in the ranker's measure. Higher is better."""

    need: str
    """The need it answers: the query, or one part of it."""

    shown: Shown = "signature"
    """How the answer shows it. What has its signature there is revealed, and nothing else."""

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.tool.name

    @property
    def source(self) -> str | None:
        """Where the tool comes from."""
        return self.tool.source

    @property
    def signature(self) -> str:
        """How the tool is called, on one line."""
        return signature(self.tool)

    @property
    def summary(self) -> str:
        """The first sentence of the tool's description, and the rules behind it that decide."""
        return summary_of(self.tool)


@dataclass(frozen=True, slots=True)
class Answer:
    """A text for the model: what a search or a describe found, or what to do instead."""

    text: str
    """What the model reads, as the result of its call."""

    is_error: bool = False
    """Whether the model made a mistake. No match is none."""

    hits: tuple[Hit, ...] = ()
    """What a search shows, best first, need by need, and companions behind all others."""

    tools: tuple[Tool, ...] = ()
    """What a describe described."""

    session: Session = field(default_factory=Session)
    """The conversation after this answer."""

    meant: Tool | None = None
    """Of a call that is not run: the tool it was of, where there is one for the caller."""

    note: str = ""
    """What of the text is said whatever form the answer takes, such as sources that are not
    there now."""

    @property
    def found(self) -> tuple[Tool, ...]:
        """The tools that it shows with what they take, each once: found, or described."""
        found = [hit.tool for hit in self.hits if hit.shown == "signature"]
        return tuple(dict.fromkeys(found or self.tools))

    # ---- as a provider that defers tools takes it

    def result_content(self) -> list[Json]:
        """Return the `content` of Anthropic's `tool_result`: references to what was found.

        A reference loads a tool that the request's `tools` defers. Where nothing was found, or
        nothing of it is deferred there, the content is the text. References stand alone, so a
        `note` goes into a text block of the same message, behind all of its results.
        """
        sent = self.session.sent
        names = [tool.wire_name for tool in self.found]
        if sent is not None:
            names = [name for name in names if name in sent.deferred]
        if not names:
            return [{"type": "text", "text": self.text}]
        return [{"type": "tool_reference", "tool_name": name} for name in names]

    def search_output(self, call_id: str) -> list[Json]:
        """Return the items of `input` that answer OpenAI's `tool_search_call`.

        The first is the `tool_search_output` with the definitions of what was found. It can hold
        nothing else, so a note, and the text where nothing was found, follows as a message.

        Args:
            call_id: The `call_id` of the search.
        """
        definitions = self._definitions("openai-responses")
        output: dict[str, Json] = {
            "type": "tool_search_output",
            "execution": "client",
            "call_id": call_id,
            "status": "completed",
            "tools": definitions,
        }
        if definitions and not self.note:
            return [output]
        text = prompts.search_notes(self.note) if definitions else prompts.search_says(self.text)
        said = {"type": "input_text", "text": text}
        return [output, {"type": "message", "role": "user", "content": [said]}]

    def additions(self, known: Collection[str] = ()) -> tuple[str, Json | None]:
        """Return the text of Anthropic's `tool_result`, and the message to follow it, if any.

        The message holds the definitions of what was found, for requests whose `tools` do not
        hold them (the setting `inline`). Close the user's turn with a text block before it: some
        models read what follows a tool's result at once as a part of it.

        Args:
            known: The names of the tools whose definitions stand further up.
        """
        found = self._definitions("anthropic-messages")
        if not found:
            return self.text, None
        blocks: list[Json] = []
        for own in found:
            if own["name"] not in known:
                definition = {key: value for key, value in own.items() if key != "defer_loading"}
                tool = {"type": "tool_definition", "definition": definition}
                blocks.append({"type": "tool_addition", "tool": tool})
        text = prompts.loaded([own["name"] for own in found])
        text = f"{text}\n{self.note}" if self.note else text
        return text, {"role": "system", "content": blocks} if blocks else None

    def _definitions(self, api: ProviderApi) -> list[dict[str, Json]]:
        """Return what was found as it was defined first in the conversation, else as it is now."""
        # Most hosts never need it.
        from toolfold.wire.deferred import deferred_definition

        sent = self.session.sent
        kept = dict(self.session.defined) if sent is None or sent.api == api else {}
        return [
            parse(kept[tool.wire_name])
            if tool.wire_name in kept
            else deferred_definition(tool, api)
            for tool in self.found
        ]


@dataclass(frozen=True, slots=True)
class Invocation:
    """A call to a real tool, for the host to run."""

    tool: Tool
    """The tool that is really called."""

    arguments: Mapping[str, Json]
    """Its arguments; for a folded tool, checked against its schema."""

    via: Literal["direct", "tool_call"]
    """How the model called it."""

    session: Session = field(default_factory=Session)
    """The conversation after this call."""
