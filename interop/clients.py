"""Three real clients behind one small face, so that one sentence can be tested with each.

The official SDK's and FastMCP's clients live in this process. The MCP Inspector's command
line is started for each request, as a person would. Whatever they answer is handed on as
plain JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import httpx2
import mcp_types as t
from fastmcp import Client as FastClient
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from pydantic import BaseModel
from servers import PARTS

__all__ = ["INSPECTOR", "Answers", "Driver", "Refusal", "Target", "Way", "connected"]

Json: TypeAlias = dict[str, Any]
Progress: TypeAlias = list[tuple[float, float | None]]

INSPECTOR = str(PARTS / "node_modules" / ".bin" / "mcp-inspector")
_ERAS = {"old": "legacy", "new": "auto"}


@dataclass(frozen=True, slots=True)
class Way:
    """Which client, in which revision of the protocol, over what."""

    client: Literal["official", "fastmcp", "inspector"]
    era: Literal["old", "new"]
    over: Literal["stdio", "http"]

    def __str__(self) -> str:
        return f"{self.client}-{self.era}-{self.over}"


@dataclass(frozen=True, slots=True)
class Target:
    """What a client connects to: a command to start, or an address."""

    command: Sequence[str] = ()
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Answers:
    """What a client does when it is asked, and what it was told."""

    elicit: Callable[[Json], Json] | None = None
    sample: Callable[[Json], str] | None = None
    roots: Sequence[str] | None = None
    asked: list[Json] = field(default_factory=list)
    logs: list[Json] = field(default_factory=list)
    level: str | None = None
    """From which level on a client of 2026-07-28 wants log messages."""
    changes: list[str] = field(default_factory=list)
    """The notifications that came, by method."""


class Refusal(Exception):
    """A request was answered by an error."""


class Driver:
    """A connected client."""

    version = ""
    """The revision of the protocol that was agreed on, where the client tells."""

    async def tools(self) -> list[Json]:
        """List the tools."""
        return (await self.ask("tools/list"))["tools"]

    async def call(
        self, name: str, arguments: Json | None = None, *, progress: Progress | None = None
    ) -> Json:
        """Call a tool; its progress reports go into a list."""
        raise NotImplementedError

    async def ask(self, method: str, **params: Any) -> Json:
        """Ask for anything else: lists, a resource, a prompt, a completion."""
        raise NotImplementedError

    async def search(self, query: str, **more: Any) -> str:
        """Search through the bridge."""
        return text(await self.call("tool_search", {"query": query, **more}))

    async def through(self, name: str, arguments: Json | None = None, **more: Any) -> Json:
        """Call a tool through the bridge."""
        wrapped = {"name": name, "arguments": arguments or {}}
        return await self.call("tool_call", wrapped, **more)


def text(result: Json) -> str:
    """The text of a result's first block."""
    return result["content"][0]["text"]


def _json(model: BaseModel) -> Json:
    return model.model_dump(mode="json", by_alias=True, exclude_unset=True)


def _ref(params: Json) -> t.PromptReference | t.ResourceTemplateReference:
    kinds = {"ref/prompt": t.PromptReference, "ref/resource": t.ResourceTemplateReference}
    return kinds[params["type"]].model_validate(params)


@asynccontextmanager
async def connected(
    way: Way, target: Target, answers: Answers | None = None
) -> AsyncGenerator[Driver]:
    """Connect one of the clients."""
    answers = answers or Answers()
    if way.client == "official":
        async with _official(way, target, answers) as client:
            yield _Official(client)
    elif way.client == "fastmcp":
        async with _fastmcp(way, target, answers) as client:
            yield _FastMCP(client)
    else:
        yield _Inspector(way, target)


def _on_elicit(answers: Answers) -> Any:
    answer = answers.elicit
    if answer is None:
        return None

    async def elicit(context: Any, params: t.ElicitRequestParams) -> t.ElicitResult:
        answers.asked.append(_json(params))
        return t.ElicitResult.model_validate(answer(_json(params)))

    return elicit


def _on_sample(answers: Answers) -> Any:
    answer = answers.sample
    if answer is None:
        return None

    async def sample(context: Any, params: t.CreateMessageRequestParams) -> t.CreateMessageResult:
        answers.asked.append(_json(params))
        said = t.TextContent(text=answer(_json(params)))
        return t.CreateMessageResult(role="assistant", model="a-model", content=said)

    return sample


def _on_roots(answers: Answers) -> Any:
    roots = answers.roots
    if roots is None:
        return None

    async def listed(context: Any) -> t.ListRootsResult:
        answers.asked.append({"method": "roots/list"})
        return t.ListRootsResult(roots=[t.Root.model_validate({"uri": uri}) for uri in roots])

    return listed


def _on_log(answers: Answers) -> Any:
    async def log(params: t.LoggingMessageNotificationParams) -> None:
        answers.logs.append(_json(params))

    return log


def _on_message(answers: Answers) -> Any:
    async def message(message: Any) -> None:
        if isinstance(message, Exception):
            raise message
        answers.changes.append(getattr(message, "method", type(message).__name__))

    return message


# ---- the official SDK's client


@asynccontextmanager
async def _official(way: Way, target: Target, answers: Answers) -> AsyncGenerator[Client]:
    more: Json = {
        "mode": _ERAS[way.era],
        "elicitation_callback": _on_elicit(answers),
        "sampling_callback": _on_sample(answers),
        "list_roots_callback": _on_roots(answers),
        "logging_callback": _on_log(answers),
        "message_handler": _on_message(answers),
        "log_level": answers.level,
    }
    if target.command:
        command, *arguments = target.command
        parameters = StdioServerParameters(command=command, args=arguments, env=dict(target.env))
        with _nowhere().open("w") as nowhere:
            async with Client(stdio_client(parameters, errlog=nowhere), **more) as client:
                yield client
        return
    patience = httpx2.Timeout(30, read=None)
    async with (
        httpx2.AsyncClient(headers=dict(target.headers), timeout=patience) as http,
        Client(streamable_http_client(target.url, http_client=http), **more) as client,
    ):
        yield client


class _Official(Driver):
    def __init__(self, client: Client) -> None:
        self.client = client
        self.version = client.protocol_version

    async def call(
        self, name: str, arguments: Json | None = None, *, progress: Progress | None = None
    ) -> Json:
        async def on_progress(done: float, total: float | None, message: str | None) -> None:
            assert progress is not None
            progress.append((done, total))

        callback = None if progress is None else on_progress
        result = await self.client.call_tool(name, arguments or {}, progress_callback=callback)
        return _json(result)

    async def ask(self, method: str, **params: Any) -> Json:
        client = self.client
        if method == "completion/complete":
            return _json(await client.complete(_ref(params["ref"]), params["argument"]))
        asked = {
            "tools/list": client.list_tools,
            "resources/list": client.list_resources,
            "resources/templates/list": client.list_resource_templates,
            "resources/read": client.read_resource,
            "prompts/list": client.list_prompts,
            "prompts/get": client.get_prompt,
        }
        return _json(await asked[method](**params))


# ---- FastMCP's client


@asynccontextmanager
async def _fastmcp(way: Way, target: Target, answers: Answers) -> AsyncGenerator[FastClient[Any]]:
    if target.command:
        command, *arguments = target.command
        # Kept alive, the process would outlast the client.
        transport: Any = StdioTransport(
            command, arguments, env=dict(target.env), keep_alive=False, log_file=_nowhere()
        )
    else:
        transport = StreamableHttpTransport(target.url, headers=dict(target.headers))
    elicit, sample, log = _on_elicit(answers), _on_sample(answers), _on_log(answers)

    async def fast_elicit(message: str, kind: Any, params: Any, context: Any) -> Any:
        return await elicit(context, params)

    async def fast_sample(messages: Any, params: Any, context: Any) -> Any:
        return await sample(context, params)

    async def on_message(message: Any) -> None:
        await _on_message(answers)(message)

    client: FastClient[Any] = FastClient(
        transport,
        mode=_ERAS[way.era],
        elicitation_handler=None if elicit is None else fast_elicit,
        sampling_handler=None if sample is None else fast_sample,
        roots=None if answers.roots is None else list(answers.roots),
        log_handler=log,
        message_handler=on_message,
    )
    async with client:
        yield client


def _nowhere() -> Path:
    return Path(os.devnull)


class _FastMCP(Driver):
    def __init__(self, client: FastClient[Any]) -> None:
        self.client = client
        self.version = client.protocol_version or ""

    async def call(
        self, name: str, arguments: Json | None = None, *, progress: Progress | None = None
    ) -> Json:
        async def on_progress(done: float, total: float | None, message: str | None) -> None:
            assert progress is not None
            progress.append((done, total))

        handler = None if progress is None else on_progress
        return _json(
            await self.client.call_tool_mcp(name, arguments or {}, progress_handler=handler)
        )

    async def ask(self, method: str, **params: Any) -> Json:
        client = self.client
        if method == "completion/complete":
            return _json(await client.complete_mcp(_ref(params["ref"]), params["argument"]))
        asked = {
            "tools/list": client.list_tools_mcp,
            "resources/list": client.list_resources_mcp,
            "resources/templates/list": client.list_resource_templates_mcp,
            "resources/read": client.read_resource_mcp,
            "prompts/list": client.list_prompts_mcp,
            "prompts/get": client.get_prompt_mcp,
        }
        return _json(await asked[method](**params))


# ---- the Inspector's command line


class _Inspector(Driver):
    def __init__(self, way: Way, target: Target) -> None:
        era = {"old": "legacy", "new": "modern"}[way.era]
        headers = [f"{name}: {value}" for name, value in target.headers.items()]
        self._fixed = ["--protocol-era", era, "--format", "json", "--quiet"]
        for header in headers:
            self._fixed += ["--header", header]
        for name, value in target.env.items():
            self._fixed += ["-e", f"{name}={value}"]
        self._target = list(target.command) or [target.url]

    async def call(
        self, name: str, arguments: Json | None = None, *, progress: Progress | None = None
    ) -> Json:
        given = json.dumps(arguments or {})
        return await self._run("tools/call", "--tool-name", name, "--tool-args-json", given)

    async def ask(self, method: str, **params: Any) -> Json:
        given: list[str] = []
        if method == "resources/read":
            given = ["--uri", params["uri"]]
        elif method == "prompts/get":
            given = ["--prompt-name", params["name"]]
            for key, value in (params.get("arguments") or {}).items():
                given += ["--prompt-args", f"{key}={value}"]
        return await self._run(method, *given)

    async def _run(self, method: str, *given: str) -> Json:
        # Behind `--`, what the target is given is not read as the Inspector's own.
        own = [*self._fixed, "--method", method, *given, "--", *self._target]
        process = await asyncio.create_subprocess_exec(
            INSPECTOR,
            "--cli",
            *own,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            out, complaint = await process.communicate()
        except asyncio.CancelledError:
            process.kill()
            await process.communicate()
            raise
        if not out.strip():
            raise Refusal(complaint.decode())
        return json.loads(out)["result"]
