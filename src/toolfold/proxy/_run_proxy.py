"""The proxy as a process, or beside one that it is there for."""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
from collections.abc import AsyncGenerator, Callable, Generator, Iterable
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from importlib.metadata import version as installed
from pathlib import Path
from typing import TYPE_CHECKING

from toolfold.config.opened_store import store_of
from toolfold.config.proxy_config import ProxyConfig
from toolfold.dispatch.records import Observer
from toolfold.dispatch.spans import start_spans
from toolfold.errors import ConfigError, MissingExtraError
from toolfold.memory import open_memory
from toolfold.proxy._report import ProxyLog, ProxyReport, ProxyTally
from toolfold.proxy.app import ProxyApp, guarded
from toolfold.proxy.traffic import Traffic
from toolfold.redact import Redactor
from toolfold.serve._shutdown import StopSignal, stopping
from toolfold.serve.control.control_socket import ControlSocket
from toolfold.serve.control.recent_activity import RecentActivity
from toolfold.serve.http.guard import Guard, check_bind
from toolfold.serve.observe.logs import LogFormat, start_logs
from toolfold.serve.observe.metrics import Metrics
from toolfold.serve.observe.opened_audit import audit_of
from toolfold.store.entries import MemoryEntries, SqliteEntries
from toolfold.store.postgres.entries import TURNS, PostgresEntries
from toolfold.store.store import Entries

if TYPE_CHECKING:
    from toolfold.serve.http.listening import Listening

__all__ = ["ProxyOptions", "Running", "process", "run_proxy", "running"]

PARTING = 5.0
"""How long answers under way have to end when the proxy is told to stop, in seconds."""

_log = logging.getLogger("toolfold.proxy")


@dataclass(frozen=True, slots=True)
class ProxyOptions:
    """What the command line says beside the configuration."""

    verbose: bool = False
    """Whether to log more."""

    form: LogFormat = "text"
    """How to log."""

    save: Path | None = None
    """The folder in which traffic is kept."""

    quiet: bool = False
    """Whether only what goes wrong is logged."""

    mute: bool = False
    """Whether nothing is logged at all."""


@dataclass(slots=True)
class Running:
    """A proxy that listens."""

    address: str
    tally: ProxyTally


def run_proxy(config: ProxyConfig, how: ProxyOptions = ProxyOptions()) -> None:  # noqa: B008
    """Stand before the upstreams until a signal comes.

    Raises:
        ConfigError: The address or a token cannot be used.
    """
    check_bind(config.address[0], config.door, "proxy")
    with stopping() as stop, process(config, how) as observers:
        asyncio.run(_until_stopped(config, how, observers, stop))


async def _until_stopped(
    config: ProxyConfig, how: ProxyOptions, observers: Iterable[Observer], stop: StopSignal
) -> None:
    stopped = stop.event()
    async with running(config, how, observers) as proxy:
        _log.info("listening on %s", proxy.address)
        for each in config.proxy.upstreams:
            _log.info("upstream %s: %s", each.name, each.url)
        await stopped.wait()
    _log.info("%s", proxy.tally.summary())


@contextmanager
def process(config: ProxyConfig, how: ProxyOptions) -> Generator[tuple[Observer, ...]]:
    """Set up what belongs to the process: logs and the audit."""
    redactor = Redactor(_secrets(config))
    start_logs(how.form, redactor=redactor, verbose=how.verbose)
    # The application says itself what went wrong with a request.
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    # A request's address may have a key in it.
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    if not how.verbose:
        # Every request folds anew; what that saves stands in its own line.
        logging.getLogger("toolfold.fold").setLevel(logging.WARNING)
    if how.quiet:
        logging.getLogger("toolfold").setLevel(logging.WARNING)
    if how.mute:
        logging.getLogger().handlers = [logging.NullHandler()]
    audit = audit_of(config.serve, redactor)
    try:
        yield (ProxyLog(), *((audit,) if audit is not None else ()))
    finally:
        if audit is not None:
            audit.close()


@asynccontextmanager
async def running(
    config: ProxyConfig,
    how: ProxyOptions = ProxyOptions(),  # noqa: B008
    observers: Iterable[Observer] = (),
) -> AsyncGenerator[Running]:
    """Have a proxy listen as long as the block lasts.

    Raises:
        ConfigError: The address or a token cannot be used.
        MissingExtraError: The extra `proxy` is not installed.
    """
    try:
        from toolfold.serve.http.listening import Listening
    except ModuleNotFoundError:
        raise MissingExtraError("`toolfold proxy`", "proxy") from None
    tally = ProxyTally()
    metrics = Metrics(installed("toolfold"), in_flight=lambda: app.in_flight)
    traffic = None if how.save is None else Traffic(how.save, secrets=_secrets(config))
    store, close = _store(config)
    memory = open_memory(
        config.settings.memory,
        config.serve.state_folder,
        has_tokens=bool(config.proxy.tokens),
        redactor=Redactor(_secrets(config)),
        database=store_of(config.serve).database,
    )
    spans = start_spans()
    activity = RecentActivity(Redactor(_secrets(config)), memory)
    app = ProxyApp(
        config,
        store=store,
        observers=(*observers, metrics, tally, activity),
        metrics=metrics.text,
        traffic=traffic,
        spans=spans,
        memory=memory,
    )
    report = ProxyReport(config, tally, lambda: app.in_flight)
    host, port = config.address
    door = guarded(app, host, refused=metrics.refused, is_closing=lambda: report.is_stopping)
    listening = Listening(door, (host, port), config.door, dated=False)
    serving = asyncio.create_task(listening.serve())
    address = asyncio.create_task(listening.address())
    try:
        verbs = {"status": report.status, "activity": activity.activity}
        async with ControlSocket(config.serve.state_folder, verbs):
            await asyncio.wait((serving, address), return_when=asyncio.FIRST_COMPLETED)
            if serving.done():
                serving.result()
            report.address = address.result()
            yield Running(report.address, tally)
    finally:
        report.is_stopping = True
        address.cancel()
        await _end(door, listening, serving, config.serve.drain)
        close()
        if memory is not None:
            memory.close()
        spans.close()
        if traffic is not None:
            traffic.close()


async def _end(
    door: Guard, listening: Listening, serving: asyncio.Task[None], drain: float
) -> None:
    if not serving.done():
        await door.close(min(drain, PARTING))
        listening.stop()
        await serving


def _store(config: ProxyConfig) -> tuple[Entries, Callable[[], None]]:
    """Return what remembers conversations, and what closes it."""
    database = store_of(config.serve).database
    if database is not None:
        return PostgresEntries(database, TURNS), lambda: None
    if config.proxy.store == "memory":
        return MemoryEntries(), lambda: None
    place = config.serve.state_folder / "proxy.sqlite"
    try:
        kept = SqliteEntries(place)
    except (OSError, sqlite3.Error) as error:
        raise ConfigError(
            f"the history cannot be kept in `{place}`: {error}",
            hint="give another `state_dir` under `serve`, or `store: memory` under `proxy`",
        ) from None
    return kept, kept.close


def _secrets(config: ProxyConfig) -> list[str]:
    tokens = [os.environ.get(token.env, "") for token in config.proxy.tokens if token.env]
    return [*config.keys.values(), *filter(None, tokens)]
