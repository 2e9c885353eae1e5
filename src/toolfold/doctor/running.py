"""What runs: gateways and proxies by their control sockets, and who has the proxy's port."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from toolfold._bounds import one_line
from toolfold.config import GatewayConfig
from toolfold.config.proxy_config import listen_address, load_proxy
from toolfold.config.proxy_settings import ProxySettings
from toolfold.doctor.diagnosis import Diagnosis
from toolfold.doctor.sockets import is_listening
from toolfold.errors import ToolfoldError
from toolfold.prompts import plural
from toolfold.serve.control.run_folder import has_sockets
from toolfold.serve.control.running_gateways import RunningGateway, running_gateways
from toolfold.tool import is_array, is_object

__all__ = ["look_at_what_runs"]

_PART = "running"


def look_at_what_runs(config: GatewayConfig, folders: Sequence[Path]) -> Iterator[Diagnosis]:
    """Yield each gateway and proxy, and whether the proxy's port is free."""
    if not has_sockets():
        yield Diagnosis(_PART, "gateways", "ok", "cannot be asked on this system")
        return
    found = running_gateways(folders)
    for gateway in found:
        yield _gateway(gateway)
    if not found:
        yield Diagnosis(_PART, "gateways", "ok", "none runs; a client starts its own")
    try:
        proxy = (
            load_proxy(config.path, needs_upstream=False).proxy if config.path else ProxySettings()
        )
    except ToolfoldError as error:
        yield Diagnosis(_PART, "proxy's settings", "broken", error.message, error.hint or "")
        return
    yield _port(proxy.listen, found)


def _gateway(gateway: RunningGateway) -> Diagnosis:
    report = gateway.report
    if report is None:
        name = f"gateway {gateway.pid}"
        why = one_line(gateway.error or "does not say how it is", 200)
        return Diagnosis(_PART, name, "broken", why, f"kill {gateway.pid}")
    is_proxy = report.get("transport") == "proxy"
    name = f"{'proxy' if is_proxy else 'gateway'} {gateway.pid}"
    where = one_line(str(report.get("address") or report.get("transport")), 200)
    servers = report.get("servers")
    each = [server for server in servers if is_object(server)] if is_array(servers) else []
    failed = [one_line(str(s.get("name")), 80) for s in each if s.get("state") == "failed"]
    if failed:
        message = f"{where}: {', '.join(failed)} failed"
        return Diagnosis(_PART, name, "warning", message, "toolfold status")
    counted = f", {plural(len(each), 'server')}" if each else ""
    return Diagnosis(_PART, name, "ok", where + counted)


def _port(listen: str, found: Sequence[RunningGateway]) -> Diagnosis:
    """Return whether `toolfold proxy` could listen there."""
    host, port = listen_address(listen)
    url = f"http://{host}:{port}"
    ours = any(f":{port}" in str((each.report or {}).get("address")) for each in found)
    if is_listening(url) and not ours:
        message = f"{host}:{port} is another program's"
        fix = f"toolfold proxy --listen {host}:{port + 1} --upstream URL"
        return Diagnosis(_PART, "proxy's port", "warning", message, fix)
    return Diagnosis(_PART, "proxy's port", "ok", f"{host}:{port} is {'ours' if ours else 'free'}")
