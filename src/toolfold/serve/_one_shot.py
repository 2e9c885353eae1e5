"""The tools of live MCP servers, and of functions and HTTP APIs beside them, asked once.

The gateway itself is put up in this process, for as long as it takes to list the tools or
to make one call; so names, scope, checks and deadlines are those of `toolfold serve`.
A server that fails is reported, and the others are listed all the same. What a module or a
function prints goes to standard error: standard output is the command's own.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from toolfold import prompts
from toolfold._bounds import one_line
from toolfold._suggestions import names_like
from toolfold.absent import AbsentSource
from toolfold.catalog import Catalog
from toolfold.config.configured_sources import load_apis
from toolfold.config.opened_store import store_of
from toolfold.dispatch.records import CallRecord, Observer, Silent
from toolfold.errors import MissingExtraError, ToolfoldError, UnknownToolError
from toolfold.scope import EVERYTHING, Scope
from toolfold.settings import Settings
from toolfold.sources.function_modules import load_functions
from toolfold.sources.mcp.server_status import ServerStatus
from toolfold.sources.openapi import OpenAPISource
from toolfold.sources.source import Source
from toolfold.tool import Json, Tool, is_object

if TYPE_CHECKING:
    from toolfold.config.gateway_config import GatewayConfig
    from toolfold.serve.gateway import Gateway
    from toolfold.serve.principals import Principal

__all__ = [
    "AskPerson",
    "CallError",
    "Listed",
    "NoServerError",
    "Progress",
    "call_tool",
    "list_tools",
]

Progress: TypeAlias = Callable[[ServerStatus, int, int], None]
"""Told of each server that has started or failed: its status, how many have, of how many."""

AskPerson: TypeAlias = Callable[[str], Awaitable[bool]]
"""Asks the person at the terminal something."""

_OVER = ("ready", "failed", "stopped", "quarantined")
_KEY = "terminal"
_PATIENCE = 5.0
_SERVED_AFTER = 0.5
_BY_HAND = "run its command by hand to see what it prints, or raise its `timeout`"
_MAY_HAVE_EFFECTS = "it may have had effects: look what has become of it before you call it again"


class CallError(ToolfoldError):
    """A call was not made, or was refused."""


class NoServerError(ToolfoldError):
    """Not one of the servers could be reached, and there are no functions."""


@dataclass(frozen=True, slots=True)
class Listed:
    """What the servers listed."""

    catalog: Catalog
    """The tools of those that could be reached, in the configuration's order."""

    failed: tuple[ServerStatus, ...] = ()
    """The servers that could not."""

    waiting: int = 0
    """How many tools wait for a person's approval and are left out."""

    notes: tuple[str, ...] = ()
    """What a person may want to know of documents of APIs that can be used all the same."""


def list_tools(
    config: GatewayConfig,
    *,
    scope: Scope = EVERYTHING,
    progress: Progress | None = None,
    strict: bool = True,
) -> Listed:
    """Return the tools of the servers, all asked at once, each with its own deadline.

    Args:
        config: The servers, and the functions beside them.
        scope: Which tools exist.
        progress: Told of each server.
        strict: Whether it is an error where not one of them could be reached.

    Raises:
        ConfigError: A module of functions cannot be loaded.
        MissingExtraError: The extra `mcp` is not installed.
        NoServerError: Not one of them could be reached.
    """
    with redirect_stdout(sys.stderr):
        sources = _loaded(config)

        async def work() -> Listed:
            async with _up(config, sources, scope, progress) as (gateway, principal, statuses):
                return _listed(gateway, principal, statuses, sources, strict=strict)

        return asyncio.run(work())


def call_tool(
    config: GatewayConfig,
    name: str,
    arguments: Mapping[str, Json],
    *,
    scope: Scope = EVERYTHING,
    progress: Progress | None = None,
    ask: AskPerson | None = None,
) -> dict[str, Json]:
    """Call one tool and return its result as it came.

    Only the server that the name belongs to is started, or the module loaded, where the name
    says which.

    Args:
        config: The servers, and the functions beside them.
        name: The tool's name.
        arguments: Its arguments, checked against its schema before they are sent.
        scope: Which tools exist.
        progress: Told of each server.
        ask: Asks about a call that may destroy something, where the settings want that.

    Raises:
        ConfigError: A module of functions cannot be loaded.
        MissingExtraError: The extra `mcp` is not installed.
        NoServerError: The server could not be reached.
        UnknownToolError: There is no such tool in the scope.
        CallError: Its arguments do not fit, the server refuses, or it died over the call.
    """
    wanted = _narrowed(config, name)
    losses = _Losses()
    with redirect_stdout(sys.stderr), _audit(wanted) as observers:
        sources = _loaded(wanted)

        async def work() -> dict[str, Json]:
            up = _up(wanted, sources, scope, progress, (losses, *observers))
            async with up as (gateway, principal, statuses):
                found = _listed(gateway, principal, statuses, sources).catalog
                tool = found.find(name)
                if tool is None:
                    raise _unknown(name, found, gateway.absent(principal))
                params = {
                    "name": tool.name,
                    "arguments": _checked(tool, arguments, config.settings),
                }
                result = await _called(gateway, principal, params, ask)
            losses.check(tool)
            return result

        return asyncio.run(work())


def _unknown(name: str, there: Catalog, absent: Sequence[AbsentSource]) -> ToolfoldError:
    """Return what is wrong with a name: its server does not run, or nobody has it."""
    said = [prompts.absent_source(a.name, a.cause, a.retry_in).rstrip(".") for a in absent]
    own = [text for text, away in zip(said, absent, strict=True) if away.owns(name)]
    if own:
        return NoServerError(f"no tool named {name!r} can be called: {own[0]}", hint=_BY_HAND)
    error = UnknownToolError(name, near=names_like(there, name))
    if said:
        error.hint = "; ".join([error.hint or "", *said[: prompts.ABSENT_AT_MOST]])
    return error


def _loaded(config: GatewayConfig) -> tuple[Source, ...]:
    """Load the modules of functions, in the main thread and outside of any event loop."""
    return (*map(load_functions, config.functions), *load_apis(config))


def _checked(tool: Tool, arguments: Mapping[str, Json], settings: Settings) -> dict[str, Json]:
    """Return the arguments as the tool wants them."""
    from toolfold._signature import signature
    from toolfold.arguments import check

    refuses = settings.unknown_arguments == "refuse"
    checked = check(tool, dict(arguments), refuse_unknown=refuses)
    if checked.faults:
        faults = (f"{f.path}: {f.message}" if f.path else f.message for f in checked.faults)
        what = "; ".join(faults)
        raise CallError(f"{tool.shown_name} was not called: {what}", hint=signature(tool))
    return checked.arguments


async def _called(
    gateway: Gateway, principal: Principal, params: Mapping[str, Json], ask: AskPerson | None
) -> dict[str, Json]:
    from mcp.shared.exceptions import MCPError

    try:
        return await gateway.call_tool(_Terminal(ask), principal, params)
    except MCPError as error:
        raise CallError(
            f"the server refused the call: {one_line(str(error), 500)}",
            hint="see what it wants with `toolfold describe`",
        ) from None


def _listed(
    gateway: Gateway,
    principal: Principal,
    statuses: Mapping[str, ServerStatus],
    sources: Sequence[Source],
    *,
    strict: bool = True,
) -> Listed:
    apis = [source for source in sources if isinstance(source, OpenAPISource)]
    failed = (
        *(status for status in statuses.values() if status.state == "failed"),
        *(
            ServerStatus(api.name, "openapi", "failed", error=api.problem)
            for api in apis
            if api.problem
        ),
    )
    every = len(statuses) + len(apis)
    if strict and failed and len(failed) == every and not gateway.config.functions:
        first = failed[0]
        more = f", and {len(failed) - 1} more" if len(failed) > 1 else ""
        raise NoServerError(
            f"{first.title} failed{more}: {first.error}",
            hint=_BY_HAND if first.transport != "openapi" else "mend it, or leave it out",
        )
    stock = gateway.pool.stock
    tools = [
        tool for tool in map(gateway.config.settings.applied, stock.tools) if principal.admits(tool)
    ]
    servers = sum(status.quarantined for status in gateway.pool.statuses)
    waiting = servers + gateway.others.waiting
    notes = tuple(note for api in apis for note in api.notes)
    return Listed(Catalog(tools, configured=gateway.pool.names), failed, waiting, notes)


def _narrowed(config: GatewayConfig, name: str) -> GatewayConfig:
    """Return the configuration with the one server or module that a name belongs to, if it says."""
    from toolfold.sources.mcp._exposed_names import exposed_name

    def owns(source: str) -> bool:
        return name.startswith(exposed_name(source, "x")[:-1])

    servers = tuple(s for s in config.servers if owns(s.name) or (s.prefix and owns(s.prefix)))
    functions = tuple(entry for entry in config.functions if owns(entry.name))
    apis = tuple(api for api in config.apis if owns(api.name))
    if len(servers) + len(functions) + len(apis) != 1:
        return config
    # What is listed is no matter for one call, and names tools of the others.
    settings = replace(config.settings, core=(), never_defer=())
    return replace(config, servers=servers, functions=functions, apis=apis, settings=settings)


@contextmanager
def _audit(config: GatewayConfig) -> Generator[tuple[Observer, ...]]:
    """Write the call down where those of clients are written down."""
    from toolfold.redact import Redactor
    from toolfold.serve.observe.opened_audit import audit_of

    audit = audit_of(config.serve, Redactor(config.secrets))
    try:
        yield (audit,) if audit is not None else ()
    finally:
        if audit is not None:
            audit.close()


@asynccontextmanager
async def _up(
    config: GatewayConfig,
    sources: tuple[Source, ...],
    scope: Scope,
    progress: Progress | None,
    observers: tuple[Observer, ...] = (),
) -> AsyncGenerator[tuple[Gateway, Principal, Mapping[str, ServerStatus]]]:
    """Put the gateway up, and yield it once each server has started or failed."""
    try:
        from toolfold.serve.gateway import Gateway
        from toolfold.serve.principals import local_principal
        from toolfold.serve.trust.store import TrustStore
        from toolfold.serve.trust.verdicts import Trust
        from toolfold.sources.mcp.oauth import signer
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("toolfold"):
            raise
        raise MissingExtraError("reaching MCP servers", "mcp") from None
    servers = tuple(replace(server, lazy=False) for server in config.servers)
    eager = replace(config, servers=servers, serve=replace(config.serve, lazy=False))
    folder, mode = eager.serve.state_folder, eager.serve.trust
    trust = None if mode == "off" else Trust(TrustStore(store_of(eager.serve).documents), mode)
    first = _First(len(servers), progress)
    gateway = Gateway(
        eager,
        scope=scope,
        sources=sources,
        observers=(first, *observers),
        trust=trust,
        auth=signer(folder),
    )
    async with gateway:
        longest = max((server.start_timeout for server in servers), default=0.0)
        try:
            async with asyncio.timeout(longest + _PATIENCE):
                await first.all.wait()
        except TimeoutError:
            pass  # whoever has not said anything by now is not listed
        yield gateway, gateway.narrowed(local_principal(eager.serve)), first.statuses


class _First(Silent):
    """Waits for the first that each server comes to."""

    def __init__(self, count: int, progress: Progress | None) -> None:
        self.statuses: dict[str, ServerStatus] = {}
        self.all = asyncio.Event()
        self._ready: set[str] = set()
        self._count = count
        self._progress = progress
        if not count:
            self.all.set()

    def server_changed(self, status: ServerStatus) -> None:
        """A server changed its state or its tools."""
        if status.state not in _OVER or status.name in self.statuses:
            return
        if status.state != "failed" and status.name not in self._ready:
            # Ready is told twice: when it has listed its tools, and when they are served.
            self._ready.add(status.name)
            asyncio.get_running_loop().call_later(_SERVED_AFTER, self._over, status)
        else:
            self._over(status)

    def _over(self, status: ServerStatus) -> None:
        if status.name in self.statuses:
            return
        self.statuses[status.name] = status
        if self._progress is not None:
            self._progress(status, len(self.statuses), self._count)
        if len(self.statuses) == self._count:
            self.all.set()


class _Losses(Silent):
    """Notes a server that did not take the call, or died over it.

    The answer to a model speaks of the next life of that server. Here there is none: what was
    put up for one call is taken down behind it.
    """

    def __init__(self) -> None:
        self._cause: BaseException | None = None

    def called(self, record: CallRecord) -> None:
        """A call has ended."""
        self._cause = record.cause

    def check(self, tool: Tool) -> None:
        """Raise `CallError` where the server was lost."""
        from toolfold.sources.mcp.mcp_source import ServerDownError

        lost = self._cause
        if not isinstance(lost, ServerDownError):
            return
        what = "failed" if lost.lost else "was not run"
        raise CallError(
            f"{tool.shown_name} {what}: the server {lost.server!r} {one_line(lost.reason, 500)}",
            hint=_MAY_HAVE_EFFECTS if lost.lost else _BY_HAND,
        )


class _Terminal:
    """The caller of a single call: a person at a terminal, who can say yes or no."""

    key = _KEY
    origin = _KEY
    owner = _KEY
    is_modern = False
    wants_progress = False
    log_level: str | None = None

    def __init__(self, ask: AskPerson | None) -> None:
        self._ask = ask

    @property
    def capabilities(self) -> Mapping[str, Json]:
        """What can be asked."""
        return {} if self._ask is None else {"elicitation": {"form": {}}}

    async def ask(self, method: str, params: Mapping[str, Json]) -> dict[str, Json]:
        """AskPerson for a yes; a form with fields is declined."""
        schema = params.get("requestedSchema")
        has_fields = is_object(schema) and bool(schema.get("properties"))
        if self._ask is None or has_fields:
            return {"action": "decline"}
        is_wanted = await self._ask(str(params.get("message", "")))
        return {"action": "accept", "content": {}} if is_wanted else {"action": "decline"}

    async def progress(self, done: float, total: float | None, message: str | None) -> None:
        """Pass over."""

    async def log(self, params: Mapping[str, Json]) -> None:
        """Pass over."""

    async def close_stream(self) -> None:
        """Pass over: there is none."""
