"""All of it, part by part, in the order in which one would mend it. Nothing is changed."""

from __future__ import annotations

import os
from collections.abc import Iterator

from toolfold.config import GatewayConfig, ServeSettings
from toolfold.doctor.client_entries import look_at_clients
from toolfold.doctor.configured_tools import (
    ServerProgress,
    look_at_configuration,
    look_at_servers,
)
from toolfold.doctor.diagnosis import Diagnosis
from toolfold.doctor.environment import look_at_environment
from toolfold.doctor.installation import look_at_installation
from toolfold.doctor.running import look_at_what_runs
from toolfold.doctor.state_files import look_at_files
from toolfold.setup.client_programs import Machine

__all__ = ["examine"]


def examine(
    config: str | None = None,
    *,
    deadline: float = 10.0,
    servers: bool = True,
    progress: ServerProgress | None = None,
) -> Iterator[Diagnosis]:
    """Yield what is found as it is found.

    Args:
        config: The configuration's file, where it is not the usual one.
        deadline: How long a server may take to start and to list its tools, in seconds.
        servers: Whether to start the servers.
        progress: Told of each server that has started or failed.
    """
    yield from look_at_installation()
    found, usable = look_at_configuration(config)
    yield from found
    if usable is not None and servers:
        yield from look_at_servers(usable, deadline, progress)
    yield from look_at_clients(Machine.this())
    own = usable or GatewayConfig()
    yield from look_at_files(own)
    folders = dict.fromkeys((own.serve.state_folder, ServeSettings().state_folder))
    yield from look_at_what_runs(own, list(folders))
    yield from look_at_environment(os.environ)
