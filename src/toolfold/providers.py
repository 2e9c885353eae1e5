"""Which providers defer tools themselves, for which models: one table, with its sources.

A provider is asked to defer only where the API, the host and the model all stand in the table:
the same model behind a router does not know the fields. What is not known here is answered
with the bridge, which every model can use.

The table was read in November 2026 in the SDKs anthropic 2.8.0 and openai 3.49.0, whose types
have the fields, and in Pydantic AI 2.66, whose comments say what was seen to work on the live
services.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

from toolfold._refusals import names_deferral
from toolfold.tool import Json, ProviderApi, Shape

__all__ = [
    "SHAPES",
    "TABLE",
    "Provider",
    "Support",
    "binds_reasoning",
    "refuses_native",
]

SHAPES: dict[ProviderApi, Shape] = {
    "anthropic-messages": "anthropic",
    "openai-responses": "openai-responses",
}
"""The wire shape of the tools, by API."""


@dataclass(frozen=True, slots=True)
class Support:
    """Where tools may be deferred: an API at its hosts, for some models."""

    api: ProviderApi
    hosts: tuple[str, ...]
    """Names of hosts, or patterns of them."""

    models: tuple[str, ...]
    """What the names of its models begin with."""

    not_models: tuple[str, ...]
    """What the names of those among them begin with that refuse all the same."""

    tools_at_most: int
    """How many tools a request may defer."""

    source: str
    """Where that was read."""


TABLE: tuple[Support, ...] = (
    Support(
        api="anthropic-messages",
        # Bedrock's Converse, routers and LiteLLM's chat endpoint do not pass the fields on.
        hosts=("api.anthropic.com", "aiplatform.googleapis.com", "*-aiplatform.googleapis.com"),
        models=(
            "claude-fable-5", "claude-mythos-5", "claude-sonnet-4-5", "claude-sonnet-4-6",
            "claude-sonnet-5", "claude-opus-4-5", "claude-opus-4-6", "claude-opus-4-7",
            "claude-opus-4-8", "claude-opus-5", "claude-haiku-4-5", "claude-haiku-5-5",
        ),
        not_models=(),
        tools_at_most=10_000,
        source="anthropic 2.8.0, `ToolParam.defer_loading`, `ToolReferenceBlockParam`; models and "
        "hosts: Pydantic AI 2.66, profiles of Anthropic's models",
    ),
    Support(
        api="openai-responses",
        # Not the host that signs in with ChatGPT.
        hosts=("api.openai.com",),
        models=("gpt-5.4", "gpt-5.5", "gpt-5.6", "gpt-6"),
        not_models=("gpt-5.4-nano",),
        tools_at_most=10_000,
        source="openai 3.49.0, `ToolSearchToolParam`, `ResponseToolSearchOutputItemParamParam`; "
        "models: Pydantic AI 2.66, profiles of OpenAI's models",
    ),
)  # fmt: skip
"""Who defers tools. What is not here is not asked to."""

_BOUND = ("claude-fable-5-1", "claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5")
"""Models that refuse a replayed thinking block where the tools before it have changed."""

_REFUSALS = frozenset({400, 422})


@dataclass(frozen=True, slots=True)
class Provider:
    """Whom a request goes to: an API, the host that serves it, the model there."""

    api: ProviderApi
    host: str = ""
    """The host's name, without port; empty where it is not known."""

    model: str = ""

    @classmethod
    def of(cls, api: ProviderApi, host: str | None, model: str | None) -> Provider:
        """Return the provider at a host, or at an address that names one."""
        given = (host or "").strip()
        try:
            name = urlsplit(given if "//" in given else f"//{given}").hostname
        except ValueError:
            name = None
        return cls(api, (name or "").rstrip("."), (model or "").strip())

    @property
    def key(self) -> str:
        """Names the provider in a session."""
        return f"{self.api} {self.host} {self.model}"

    @property
    def shape(self) -> Shape:
        """The wire shape in which its API takes tools."""
        return SHAPES[self.api]

    def support(self) -> Support | None:
        """Return the entry of the table that holds for it, if any does."""
        for entry in TABLE:
            if (
                entry.api == self.api
                and any(fnmatchcase(self.host, host) for host in entry.hosts)
                and _begins(self.model, entry.models)
                and not _begins(self.model, entry.not_models)
            ):
                return entry
        return None


def binds_reasoning(model: str | None) -> bool:
    """Whether a model's reasoning is bound to what was sent before it, the tools included."""
    return bool(model) and _begins(model.replace(":", "/").rsplit("/", 1)[-1], _BOUND)


def refuses_native(status: int | None, body: str | bytes | Json) -> bool:
    """Whether an error says that the provider does not know deferred tools.

    Such a conversation goes on with the bridge: `folded.refused()` is the session that
    remembers it. An error of a request that held no deferred tools is none of these, nor is one
    that only quotes a tool which speaks of them.

    Args:
        status: The HTTP status.
        body: What came with it: the text, or the JSON in it.
    """
    if status not in _REFUSALS:
        return False
    return names_deferral(body)


def _begins(name: str, beginnings: Sequence[str]) -> bool:
    """Whether a name begins with one of these, a number in it not cut in two."""
    lower = name.lower()
    return any(
        lower.startswith(begin) and not lower[len(begin) : len(begin) + 1].isdigit()
        for begin in beginnings
    )
