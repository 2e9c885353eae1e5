"""What `resolve` returns: an answer for the model, or an invocation for the host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from toolfold._signature import signature
from toolfold._summary import summary_of
from toolfold.session import Session
from toolfold.tool import Json, Tool

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

    @property
    def found(self) -> tuple[Tool, ...]:
        """The tools that it shows with what they take, each once: found, or described."""
        found = [hit.tool for hit in self.hits if hit.shown == "signature"]
        return tuple(dict.fromkeys(found or self.tools))


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
