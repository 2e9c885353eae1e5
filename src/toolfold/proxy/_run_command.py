"""A program run behind a proxy of its own: with its exit code, and with its signals."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from toolfold.config.proxy_config import ProxyConfig
from toolfold.dispatch.records import Observer
from toolfold.proxy._run_proxy import ProxyOptions, process, running
from toolfold.proxy.clients import client_of, place_of

__all__ = ["ProgramEnd", "run_command"]

_PASSED_ON = ("SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
_LOCAL = "127.0.0.1,localhost"


@dataclass(frozen=True, slots=True)
class ProgramEnd:
    """ProxyOptions a program ended."""

    code: int
    """Its exit code; of one that a signal ended, 128 and the signal's number."""

    summary: str
    """What folding came to, in one line."""


def run_command(
    command: Sequence[str],
    config: ProxyConfig,
    how: ProxyOptions = ProxyOptions(),  # noqa: B008
    environ: Mapping[str, str] | None = None,
    *,
    named: bool = True,
) -> ProgramEnd:
    """Run a program whose requests to a model go through a proxy, and wait for its end.

    Args:
        command: The program and its arguments.
        config: The proxy's configuration; where it listens is chosen here.
        how: ProxyOptions to log, and where traffic is kept.
        environ: The environment; the process's own by default.
        named: Whether somebody named the upstreams.

    Raises:
        ConfigError: The proxy cannot be started.
        FileNotFoundError: There is no such program.
        PermissionError: It cannot be started.
    """
    variables = dict(os.environ if environ is None else environ)
    local = replace(config, proxy=replace(config.proxy, listen="127.0.0.1:0", tokens=()))
    with process(local, how) as observers:
        return asyncio.run(_run(command, local, how, variables, observers, named=named))


async def _run(
    command: Sequence[str],
    config: ProxyConfig,
    how: ProxyOptions,
    variables: dict[str, str],
    observers: Sequence[Observer],
    *,
    named: bool,
) -> ProgramEnd:
    client = client_of(command[0])
    async with running(config, how, observers) as proxy:
        place = place_of(proxy.address, config.proxy.upstreams, named=named)
        launch = client.launch(command[1:], variables, place)
        started = await asyncio.create_subprocess_exec(
            command[0],
            *launch.arguments,
            env={**variables, **_unproxied(variables), **launch.environment},
        )
        with _signals(started):
            code = await started.wait()
    return ProgramEnd(code if code >= 0 else 128 - code, proxy.tally.summary())


@contextmanager
def _signals(started: asyncio.subprocess.Process) -> Generator[None]:
    """Have the program get the signals that this process gets."""
    loop = asyncio.get_running_loop()

    def pass_on(number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            started.send_signal(number)

    taken: list[int] = []
    for name in _PASSED_ON:
        number = getattr(signal, name, None)
        with contextlib.suppress(NotImplementedError, ValueError):
            if number is not None:
                loop.add_signal_handler(number, pass_on, number)
                taken.append(number)
    # A terminal sends its interrupt to both, and twice means something else to many programs.
    at_terminal = sys.stdin is not None and sys.stdin.isatty()
    interrupt = (lambda: None) if at_terminal else (lambda: pass_on(signal.SIGINT))
    with contextlib.suppress(NotImplementedError):
        loop.add_signal_handler(signal.SIGINT, interrupt)
        taken.append(signal.SIGINT)
    try:
        yield
    finally:
        for number in taken:
            loop.remove_signal_handler(number)


def _unproxied(variables: Mapping[str, str]) -> dict[str, str]:
    """Return what keeps a program from asking for this machine elsewhere."""
    return {
        name: ",".join(filter(None, (variables.get(name), _LOCAL)))
        for name in ("NO_PROXY", "no_proxy")
    }
