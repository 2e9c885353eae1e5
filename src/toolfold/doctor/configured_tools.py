"""The configuration, and each server of it: started, asked for its tools, timed, ended."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from toolfold._bounds import one_line
from toolfold.config import GatewayConfig, find_config, load_gateway
from toolfold.doctor.diagnosis import Diagnosis
from toolfold.doctor.installation import missing_of
from toolfold.errors import ToolfoldError
from toolfold.prompts import plural
from toolfold.redact import Redactor

if TYPE_CHECKING:
    from toolfold.sources.mcp.server_status import ServerStatus

__all__ = ["ServerProgress", "look_at_configuration", "look_at_servers"]

ServerProgress: TypeAlias = "Callable[[ServerStatus, int, int], None]"
"""Told of a server, of how many are done, and of how many there are."""

_LIMIT = 300
_SLOW = 5.0
_VARIABLE = re.compile(r"needs the environment variable `(\w+)`")
_NO_PROGRAM = re.compile(r"'([^']+)' is not there")


def look_at_configuration(
    given: str | None,
) -> tuple[list[Diagnosis], GatewayConfig | None]:
    """Return how the configuration is, and the configuration where it can be used."""
    part = "configuration"
    try:
        path = find_config(given)
        config = load_gateway(given, strict=False)
    except ToolfoldError as error:
        return [Diagnosis(part, "file", "broken", error.message, error.hint or "")], None
    if path is None:
        message = "there is none: the bundled demo stands in for tools"
        return [Diagnosis(part, "file", "warning", message, "toolfold import")], config
    counts = [
        plural(len(config.servers), "server"),
        *([plural(len(config.functions), "module") + " of functions"] if config.functions else []),
        *([plural(len(config.apis), "API")] if config.apis else []),
        *([f"{len(config.disabled)} disabled"] if config.disabled else []),
    ]
    found = [Diagnosis(part, "file", "ok", f"{path}: {', '.join(counts)}")]
    found += [Diagnosis(part, "note", "warning", one_line(note, _LIMIT)) for note in config.notes]
    if not config.has_tools:
        found[0] = Diagnosis(part, "file", "warning", f"{path} names no tools", "toolfold import")
    for extra, word, there in (("mcp", "server", config.servers), ("openapi", "API", config.apis)):
        if there and missing_of(extra):
            message = f"it has {plural(len(there), word)}, and the extra is not installed"
            fix = f"pip install 'toolfold[{extra}]'"
            found.append(Diagnosis(part, f"extra {extra}", "broken", message, fix))
            return found, None
    return found, config


def look_at_servers(
    config: GatewayConfig, deadline: float, progress: ServerProgress | None = None
) -> Iterator[Diagnosis]:
    """Yield how each server is, all started at once.

    Args:
        config: Which servers there are.
        deadline: How long one may take, in seconds.
        progress: Told of each server that has started or failed, how many have, of how many.
    """
    if not config.has_tools:
        return
    from toolfold.serve._one_shot import list_tools

    began = time.monotonic()
    took: dict[str, tuple[ServerStatus, float]] = {}

    def told(status: ServerStatus, done: int, count: int) -> None:
        took[status.name] = status, time.monotonic() - began
        if progress is not None:
            progress(status, done, count)

    redactor = Redactor.from_environment(secrets=config.secrets)
    try:
        listed = list_tools(_looked_at(config, deadline), progress=told, strict=False)
    except ToolfoldError as error:
        text = redactor.redact(one_line(error.message, _LIMIT))
        yield Diagnosis("servers", "all", "broken", text, error.hint or _again(config))
        return
    for server in config.servers:
        if server.name in took:
            status, seconds = took[server.name]
            yield _diagnosis(status, seconds, config, redactor)
    for note in listed.notes:
        yield Diagnosis("servers", "note", "warning", redactor.redact(one_line(note, _LIMIT)))
    own = {tool.source for tool in listed.catalog} - {server.name for server in config.servers}
    for source in sorted(name for name in own if name):
        count = sum(tool.source == source for tool in listed.catalog)
        yield Diagnosis("servers", one_line(source, 80), "ok", plural(count, "tool"))


def _diagnosis(
    status: ServerStatus, seconds: float, config: GatewayConfig, redactor: Redactor
) -> Diagnosis:
    name = one_line(status.name, 80)
    if status.state != "ready":
        why = redactor.redact(one_line(status.error or status.cause or status.state, _LIMIT))
        return Diagnosis("servers", name, "broken", why, _fix(why, config))
    message = f"{plural(status.tools, 'tool')} in {seconds:.1f} s"
    if not status.tools:
        return Diagnosis("servers", name, "warning", f"{message}: it has none to serve")
    if seconds > _SLOW:
        fix = "install its program, rather than fetching it at each start (npx, uvx)"
        return Diagnosis("servers", name, "warning", f"{message}: that is slow", fix)
    return Diagnosis("servers", name, "ok", message)


def _looked_at(config: GatewayConfig, deadline: float) -> GatewayConfig:
    """Return the configuration for a look: no server takes long, and nothing is remembered."""
    servers = tuple(
        replace(server, start_timeout=min(server.start_timeout, deadline))
        for server in config.servers
    )
    return replace(config, servers=servers, serve=replace(config.serve, trust="off"))


def _fix(why: str, config: GatewayConfig) -> str:
    """Return what to do about a server that failed."""
    if variable := _VARIABLE.search(why):
        return f"export {variable[1]}=…"
    if program := _NO_PROGRAM.match(why):
        return f"install {program[1]}, or write its whole path into {config.path}"
    return _again(config)


def _again(config: GatewayConfig) -> str:
    given = ["--config", str(config.path)] if config.path else []
    return shlex.join(["toolfold", "--verbose", "list", *given])
