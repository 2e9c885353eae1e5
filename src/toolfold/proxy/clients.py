"""The programs that `toolfold run` starts: how each is told to speak to the proxy.

By its environment or its arguments, never by its files. A program that is not known gets the
variables that the SDKs of OpenAI and Anthropic read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from toolfold.config.proxy_settings import Upstream
from toolfold.tool import Json, is_object

__all__ = ["RUN_CLIENTS", "ProgramLaunch", "RunClient", "client_of"]

OPENAI = "https://api.openai.com/v1"
ANTHROPIC = "https://api.anthropic.com"

Environment = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ProgramLaunch:
    """What a program is started with."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    """Variables beside those that there are."""


@dataclass(frozen=True, slots=True)
class ProxyPlace:
    """Where the proxy is, for a program that may speak two dialects."""

    anthropic: str
    """The base URL for Anthropic's API."""

    openai: str
    """The base URL for OpenAI's."""

    has_upstream: bool
    """Whether the upstream was named, and is not the provider's own."""


@dataclass(frozen=True, slots=True)
class RunClient:
    """A program that is known."""

    name: str
    """What is typed to start it."""

    title: str
    upstreams: Callable[[Environment], tuple[Upstream, ...]]
    """Where its requests go if nobody names an upstream."""

    launch: Callable[[Sequence[str], Environment, ProxyPlace], ProgramLaunch]
    """Its arguments, the environment and where the proxy is, to what it is started with."""


def client_of(command: str) -> RunClient:
    """Return how a program is told; by the common variables where it is not known."""
    name = os.path.basename(command).lower().removesuffix(".exe").removesuffix(".cmd")
    return RUN_CLIENTS.get(name, _ANY)


def place_of(address: str, upstreams: Sequence[Upstream], *, named: bool) -> ProxyPlace:
    """Return where the proxy is for each of the two APIs.

    Args:
        address: Where it listens.
        upstreams: The upstreams behind it.
        named: Whether somebody named them.
    """
    paths = {each.name: each.path for each in upstreams}
    return ProxyPlace(
        address + paths.get("anthropic", ""), address + paths.get("openai", "") + "/v1", named
    )


def _anthropic(environ: Environment) -> tuple[Upstream, ...]:
    return (Upstream(name="anthropic", url=environ.get("ANTHROPIC_BASE_URL") or ANTHROPIC),)


def _openai(environ: Environment) -> tuple[Upstream, ...]:
    return (Upstream(name="openai", url=environ.get("OPENAI_BASE_URL") or OPENAI),)


def _both(environ: Environment) -> tuple[Upstream, ...]:
    anthropic = environ.get("ANTHROPIC_BASE_URL") or ANTHROPIC
    openai = environ.get("OPENAI_BASE_URL") or environ.get("OPENAI_API_BASE") or OPENAI
    return (
        Upstream(name="anthropic", url=anthropic, path="/anthropic"),
        Upstream(name="openai", url=openai, path="/openai"),
    )


def _goose_upstreams(environ: Environment) -> tuple[Upstream, ...]:
    # It joins its own paths to a bare host, so there is one host for one provider.
    if environ.get("GOOSE_PROVIDER", "").lower() == "anthropic":
        return (Upstream(name="anthropic", url=environ.get("ANTHROPIC_HOST") or ANTHROPIC),)
    return (Upstream(name="openai", url=environ.get("OPENAI_HOST") or OPENAI),)


def _any(arguments: Sequence[str], environ: Environment, place: ProxyPlace) -> ProgramLaunch:
    return ProgramLaunch(
        tuple(arguments),
        {
            "ANTHROPIC_BASE_URL": place.anthropic,
            "OPENAI_BASE_URL": place.openai,
            "OPENAI_API_BASE": place.openai,
        },
    )


def _claude(arguments: Sequence[str], environ: Environment, place: ProxyPlace) -> ProgramLaunch:
    # With a search of its own it would keep its tools back, and there were nothing to fold.
    search = environ.get("ENABLE_TOOL_SEARCH") or "false"
    own = {"ANTHROPIC_BASE_URL": place.anthropic, "ENABLE_TOOL_SEARCH": search}
    return ProgramLaunch(tuple(arguments), own)


def _codex(arguments: Sequence[str], environ: Environment, place: ProxyPlace) -> ProgramLaunch:
    entry: dict[str, Json] = {
        "name": "toolfold",
        "base_url": place.openai,
        "wire_api": "responses",
    }
    if environ.get("OPENAI_API_KEY"):
        entry["env_key"] = "OPENAI_API_KEY"
    elif not place.has_upstream:
        entry["requires_openai_auth"] = True
    options = ["-c", 'model_provider="toolfold"']
    for key, value in entry.items():
        options += ["-c", f"model_providers.toolfold.{key}={json.dumps(value)}"]
    return ProgramLaunch((*options, *arguments), {})


def _opencode(arguments: Sequence[str], environ: Environment, place: ProxyPlace) -> ProgramLaunch:
    own: dict[str, Json] = {
        "anthropic": {"options": {"baseURL": f"{place.anthropic}/v1"}},
        "openai": {"options": {"baseURL": place.openai}},
    }
    try:
        given = json.loads(environ.get("OPENCODE_CONFIG_CONTENT") or "{}")
    except ValueError:
        given = {}
    content: dict[str, Json] = given if is_object(given) else {}
    there = content.get("provider")
    content["provider"] = {**(there if is_object(there) else {}), **own}
    launched = _any(arguments, environ, place)
    return ProgramLaunch(
        launched.arguments,
        {**launched.environment, "OPENCODE_CONFIG_CONTENT": json.dumps(content)},
    )


def _goose(arguments: Sequence[str], environ: Environment, place: ProxyPlace) -> ProgramLaunch:
    return ProgramLaunch(
        tuple(arguments),
        {
            "ANTHROPIC_HOST": place.anthropic,
            "OPENAI_HOST": place.openai.removesuffix("/v1"),
            "OPENAI_BASE_PATH": "v1/chat/completions",
        },
    )


_ANY = RunClient("", "any program", _both, _any)

RUN_CLIENTS: Mapping[str, RunClient] = {
    client.name: client
    for client in (
        RunClient("claude", "Claude Code", _anthropic, _claude),
        RunClient("codex", "Codex", _openai, _codex),
        RunClient("opencode", "opencode", _both, _opencode),
        RunClient("goose", "goose", _goose_upstreams, _goose),
        RunClient("llm", "llm", _both, _any),
    )
}
"""The programs that are known, by name."""
