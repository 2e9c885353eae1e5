"""The gateway as a process: over standard input and output, or over HTTP.

Servers' processes are started before the protocol's library is imported, which takes half
a second that they can use. The process ends on a signal, once calls under way have had a
while to end, and, on standard input, when the client closes it; either way, and at whatever
moment, nothing that was started stays behind.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version as installed
from typing import TYPE_CHECKING, Literal

from toolfold.config.configured_sources import load_apis
from toolfold.config.opened_store import store_of
from toolfold.dispatch.records import Observer
from toolfold.dispatch.spans import start_spans
from toolfold.errors import MissingExtraError
from toolfold.memory import Memory, open_memory
from toolfold.prompts import instructions, plural
from toolfold.redact import Redactor
from toolfold.scope import EVERYTHING, Scope
from toolfold.serve._shutdown import StopSignal, stopping
from toolfold.serve.control.gateway_control import GatewayControl, OpenControl
from toolfold.serve.mcp._console import Console
from toolfold.serve.mcp._descriptors import divert
from toolfold.serve.observe.audit import AuditLog
from toolfold.serve.observe.logs import LogFormat, start_logs
from toolfold.serve.observe.metrics import Metrics
from toolfold.serve.observe.opened_audit import audit_of
from toolfold.serve.observe.status_screen import LiveStatus, StatusLog
from toolfold.sources.function_modules import load_functions
from toolfold.sources.mcp._manifests import Manifests
from toolfold.sources.mcp.transports._process import Child, start
from toolfold.sources.openapi import OpenAPISource
from toolfold.sources.source import Source

if TYPE_CHECKING:
    from toolfold.config.gateway_config import GatewayConfig
    from toolfold.serve.gateway import Gateway
    from toolfold.serve.http.listening import Listening
    from toolfold.serve.trust.verdicts import Trust
    from toolfold.shared import SharedCatalog
    from toolfold.sources.mcp.server import Server

__all__ = ["How", "serve_http", "serve_stdio"]

TRUST_LOOKS = 2.0
"""How often approvals are looked for, in seconds."""

PARTING = 1.0
"""How long a client has to take what is still to be said at the end, in seconds."""

ONE_MORE = 0.1
"""How long a client that has its answers has to ask one thing more, in seconds."""

SPAWNING = 0.1
"""How long servers' processes are waited for before anything else is done, in seconds."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class How:
    """What the command line says beside the configuration."""

    scope: Scope = EVERYTHING
    """The tools that exist, for everybody."""

    verbose: bool = False
    """Whether to log more."""

    form: LogFormat = "text"
    """How to log."""

    load: Callable[[], GatewayConfig] | None = None
    """Reads the configuration anew, as it was read for this start."""


def serve_stdio(config: GatewayConfig, how: How = How()) -> None:  # noqa: B008
    """Serve the client that started this process, until it leaves.

    Raises:
        ConfigError: A module of functions cannot be loaded.
    """
    pair = divert()
    sources = _loaded(config)
    with stopping() as stop, _process(config, how, sources) as process:
        asyncio.run(_stdio(config, how, process, stop, pair))


def serve_http(config: GatewayConfig, host: str, port: int, how: How = How()) -> None:  # noqa: B008
    """Serve over streamable HTTP, until a signal comes.

    Args:
        config: What to serve.
        host: The host to bind to.
        port: The port; 0 takes a free one.
        how: What the command line says.

    Raises:
        ConfigError: The address cannot be used, or a module of functions cannot be loaded.
    """
    from toolfold.serve.http.guard import check_bind

    check_bind(host, config.serve)
    sources = _loaded(config)
    with stopping() as stop, _process(config, how, sources) as process:
        asyncio.run(_http(config, how, process, stop, (host, port)))


@dataclass(frozen=True, slots=True)
class _Process:
    """What belongs to the process."""

    redactor: Redactor
    audit: AuditLog | None
    sources: Sequence[Source]
    """What is served beside the servers."""

    memory: Memory | None
    """What searches led to."""

    @property
    def observers(self) -> tuple[Observer, ...]:
        """Who is told of calls, whatever the gateway is served over."""
        return (self.audit,) if self.audit is not None else ()

    def control(self, transport: Literal["stdio", "http"]) -> GatewayControl:
        """Return what the gateway's user may ask and change."""
        return GatewayControl(
            transport, redactor=self.redactor, memory=self.memory, audit=self.audit
        )


def _loaded(config: GatewayConfig) -> tuple[Source, ...]:
    """Load the modules of functions, and the documents of HTTP APIs.

    Before anything is started: a module may do at import what needs the main thread and no
    event loop, and one that is broken is the user's own to mend, so nothing is served.
    """
    return (*map(load_functions, config.functions), *load_apis(config))


@contextmanager
def _process(config: GatewayConfig, how: How, sources: Sequence[Source]) -> Generator[_Process]:
    """Set up what belongs to the process: logs and the audit."""
    tokens = [os.environ.get(name, "") for name in config.serve.token_variables]
    redactor = Redactor([*config.secrets, *filter(None, tokens)])
    start_logs(how.form, redactor=redactor, verbose=how.verbose)
    if not how.verbose:
        # The status log says once for all principals what folding does.
        logging.getLogger("toolfold.fold").setLevel(logging.WARNING)
    for note in config.notes:
        _log.warning("%s", note)
    for source in sources:
        _tell_loaded(source)
    audit = audit_of(config.serve, redactor)
    serve = config.serve
    memory = open_memory(
        config.settings.memory,
        serve.state_folder,
        has_tokens=bool(serve.tokens),
        redactor=redactor,
        database=store_of(serve).database,
    )
    try:
        yield _Process(redactor, audit, sources, memory)
    finally:
        if audit is not None:
            audit.close()
        if memory is not None:
            memory.close()


def _tell_loaded(source: Source) -> None:
    """Say what a source beside the servers came to, as far as that is known."""
    tools = plural(len(source.tools()), "tool")
    if not isinstance(source, OpenAPISource):
        _log.info("functions %s: %s", source.name, tools)
    elif source.problem is not None:
        _log.warning("openapi %s: %s", source.name, source.problem)
    elif source.absence() is None:
        _log.info("openapi %s: %s", source.name, tools)


@asynccontextmanager
async def _gateway(
    config: GatewayConfig,
    how: How,
    observers: tuple[Observer, ...],
    process: _Process,
) -> AsyncGenerator[Gateway]:
    """Start the servers, then everything else; at the end, end them all."""
    manifests = Manifests(store_of(config.serve).documents)
    catalog = _shared_catalog(config)
    known = await asyncio.to_thread(_known, catalog)
    lazy = {server.name for server in config.servers if _waits(server, config, manifests, known)}
    children = {
        server.name: asyncio.create_task(start(server))
        for server in config.servers
        if server.transport == "stdio"
        and server.problem is None
        and server.name not in lazy
        # Where it runs is not known yet.
        and (server.run == "each" or config.serve.store_address is None)
    }
    try:
        if children:
            # What follows keeps the loop busy: by then it is known which processes there are.
            await asyncio.wait(children.values(), timeout=SPAWNING)
        async with _made(
            config, how, observers, process, manifests, children, catalog, known
        ) as gateway:
            yield gateway
    finally:
        await _end(children)


def _waits(
    server: Server, config: GatewayConfig, manifests: Manifests, known: frozenset[str]
) -> bool:
    """Whether a server is started at its first call."""
    if config.serve.catalog == "shared":
        return server.lazy is not False and server.name in known
    waits = config.serve.lazy if server.lazy is None else server.lazy
    return waits and manifests.load(server) is not None


def _shared_catalog(config: GatewayConfig) -> SharedCatalog | None:
    """Return the catalog that tools are searched in, where it is a shared one."""
    database = store_of(config.serve).database
    if config.serve.catalog != "shared" or database is None:
        return None
    from toolfold.shared import SharedCatalog

    return SharedCatalog.over(database, config.serve.catalog_tenant)


def _known(catalog: SharedCatalog | None) -> frozenset[str]:
    """Return the sources whose tools are in the catalog; none while it cannot be asked."""
    from toolfold.store.store import StoreAwayError

    with suppress(StoreAwayError):
        return frozenset(source.name for source in catalog.sources()) if catalog else frozenset()
    return frozenset()


async def _end(children: Mapping[str, asyncio.Task[Child]]) -> None:
    """End the processes that nobody has come to look after; the others have ended."""
    async with asyncio.TaskGroup() as group:
        for task in children.values():
            if not task.done():
                task.cancel()
            elif not task.cancelled() and task.exception() is None:
                group.create_task(task.result().end())


@asynccontextmanager
async def _made(
    config: GatewayConfig,
    how: How,
    observers: tuple[Observer, ...],
    process: _Process,
    manifests: Manifests,
    children: Mapping[str, asyncio.Task[Child]],
    catalog: SharedCatalog | None,
    known: frozenset[str],
) -> AsyncGenerator[Gateway]:
    """Import the rest, and run the gateway."""
    try:
        from toolfold.serve.gateway import Gateway
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in ("mcp", "mcp_types", "anyio", "httpx2"):
            raise MissingExtraError("`toolfold serve`", "mcp") from None
        raise
    from toolfold.serve.catalog.shared_tools import SharedTools
    from toolfold.serve.replica.membership import Membership
    from toolfold.serve.trust.store import FILE_NAME as TRUST_FILE
    from toolfold.serve.trust.store import TrustStore
    from toolfold.serve.trust.verdicts import Trust
    from toolfold.sources.mcp.oauth import signer

    trust = None
    if config.serve.trust != "off":
        trust = Trust(TrustStore(store_of(config.serve).documents), config.serve.trust)
    spans = start_spans()
    membership = Membership.of(store_of(config.serve))
    once = sessions = None
    if membership is not None:
        from toolfold.serve.replica.servers_once import ServersOnce
        from toolfold.serve.replica.shared_sessions import SharedSessions

        sessions = SharedSessions.of(membership.database)
        once = ServersOnce(membership, how.scope)
    gateway = Gateway(
        config,
        scope=how.scope,
        sources=process.sources,
        observers=observers,
        memory=process.memory,
        trust=trust,
        manifests=manifests,
        children=children,
        auth=signer(config.serve.state_folder),
        spans=spans,
        shared=None if catalog is None else partial(SharedTools, catalog),
        known=known,
        placements=None if once is None else once.placement,
        sessions=sessions,
    )
    decided = asyncio.Event()
    if once is not None:
        once.serve(gateway)
    if membership is not None:
        gateway.membership = membership
        membership.on_document(TRUST_FILE, decided.set)
        if gateway.shared is not None:
            from toolfold.shared.shared_catalog import CHANNEL

            membership.on_channel(CHANNEL, gateway.shared.listener())
    looking = asyncio.create_task(_look(gateway, trust, decided)) if trust is not None else None
    try:
        async with (
            nullcontext() if membership is None else membership.opened(),
            gateway,
        ):
            yield gateway
    finally:
        if looking is not None:
            looking.cancel()
        spans.close()


async def _look(gateway: Gateway, trust: Trust, decided: asyncio.Event) -> None:
    """Serve a tool as soon as a person has approved it."""
    while True:
        with suppress(TimeoutError):
            async with asyncio.timeout(TRUST_LOOKS):
                await decided.wait()
        decided.clear()
        stale = await asyncio.to_thread(_stale, trust, gateway.pool.names)
        if stale:
            await gateway.pool.judge_again(stale)


def _stale(trust: Trust, names: Sequence[str]) -> list[str]:
    return [name for name in names if trust.is_stale(name)]


async def _first(*waits: asyncio.Task[object]) -> None:
    """Return when one of several is done; the others are given up."""
    done, rest = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for task in rest:
        task.cancel()
    if rest:
        await asyncio.wait(rest, timeout=PARTING)
    for task in done:
        if not task.cancelled() and task.exception() is not None:
            _log.error("serving ended: %r", task.exception())


async def _stdio(
    config: GatewayConfig, how: How, process: _Process, stop: StopSignal, pair: tuple[int, int]
) -> None:
    folding = config.folding
    console = Console(*pair, instructions(folding.bridge_prefix, folding.listing))
    stopped = stop.event()
    control = process.control("stdio")
    observers = (StatusLog(), *process.observers, *control.observers)
    async with (
        _gateway(config, how, observers, process) as gateway,
        control.opened(gateway, how.load) as opened,
    ):
        stop.reloads(opened.reloading)
        from toolfold.serve.mcp.downstream import make_server
        from toolfold.serve.principals import local_principal

        server = make_server(gateway, local_principal(config.serve))
        async with console.streams() as (read, write):
            options = server.create_initialization_options()
            await _first(
                asyncio.create_task(server.run(read, write, options)),
                asyncio.create_task(_drained(gateway, stopped, console)),
                asyncio.create_task(console.closed.wait()),
            )


async def _drained(gateway: Gateway, stopped: asyncio.Event, console: Console) -> None:
    """Wait until it is time to stop, calls under way have ended and their answers are sent."""
    await stopped.wait()
    await gateway.drain()
    try:
        async with asyncio.timeout(PARTING):
            await console.all_answered()
            await asyncio.sleep(ONE_MORE)
            await console.all_answered()
    except TimeoutError:
        _log.debug("the client does not read what is left to be said")


async def _http(
    config: GatewayConfig, how: How, process: _Process, stop: StopSignal, address: tuple[str, int]
) -> None:
    stopped = stop.event()
    live = _live(how, process)
    status: Observer = live or StatusLog()
    metrics = Metrics(
        installed("toolfold"),
        sessions=lambda: len(gateway.clients),
        in_flight=lambda: gateway.pool.in_flight,
    )
    control = process.control("http")
    observers = (status, *process.observers, metrics, *control.observers)
    try:
        async with (
            _gateway(config, how, observers, process) as gateway,
            control.opened(gateway, how.load) as opened,
        ):
            stop.reloads(opened.reloading)
            await _listen(gateway, metrics, address, stopped, live, control, opened)
    finally:
        if live is not None:
            live.close()


def _live(how: How, process: _Process) -> LiveStatus | None:
    """Return a picture of how the gateway stands, where there is a screen for it."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb" or how.form == "json":
        return None
    live = LiveStatus(sys.stderr)
    start_logs(how.form, redactor=process.redactor, verbose=how.verbose, stream=live)
    return live


async def _listen(
    gateway: Gateway,
    metrics: Metrics,
    address: tuple[str, int],
    stopped: asyncio.Event,
    live: LiveStatus | None,
    control: GatewayControl,
    opened: OpenControl,
) -> None:
    """Serve over HTTP until it is time to stop."""
    from toolfold.serve.http.app import make_app
    from toolfold.serve.http.listening import Listening

    app = make_app(
        gateway, address[0], metrics=metrics.text, refused=metrics.refused, verbs=opened.verbs
    )
    listening = Listening(app, address, gateway.config.serve)
    serving = asyncio.create_task(listening.serve())
    others = [
        asyncio.create_task(stopped.wait()),
        asyncio.create_task(_tell_address(listening, live, control)),
    ]
    await asyncio.wait((serving, others[0]), return_when=asyncio.FIRST_COMPLETED)
    if not serving.done():
        await gateway.drain()
        await app.close(PARTING)
    listening.stop()
    for task in others:
        task.cancel()
    await serving


async def _tell_address(
    listening: Listening, live: LiveStatus | None, control: GatewayControl
) -> None:
    where = f"{await listening.address()}/mcp"
    control.address = where
    if live is not None:
        live.board.address = where
    _log.info("listening on %s", where)
