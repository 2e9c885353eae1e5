"""Names and addresses: what a gateway is asked under, which pages may ask, what it is bound to."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from toolfold.errors import ConfigError

if TYPE_CHECKING:
    from toolfold.config.serve_settings import ServeSettings

__all__ = ["Hosts", "Origins", "check_bind", "is_loopback"]

_NAME = re.compile(r"[0-9a-z._:%-]+\Z")
_PORTS = {"http": 80, "https": 443}


def is_loopback(host: str) -> bool:
    """Whether a name or an address can only be this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    address = _address(host)
    return address is not None and address.is_loopback


def check_bind(host: str, settings: ServeSettings, block: str = "serve") -> None:
    """Raise where everybody who can reach the address would be let in.

    Raises:
        ConfigError: The address is not a loopback one and there are no tokens.
    """
    if not settings.knows_callers and not is_loopback(_bound_name(host)):
        raise ConfigError(
            f"without tokens, {host!r} would serve everybody who can reach it",
            hint=f"add `tokens` under `{block}`, or bind to 127.0.0.1",
        )


class Hosts:
    """The names under which the gateway may be asked.

    Loopback names, the address it is bound to and those given. One bound to every address
    takes any address: a name that was pointed here by somebody else is never one.

    Args:
        bound: The host it is bound to.
        allowed: More names: `name`, `name:port` or `*.name`; `*` takes everything.
    """

    def __init__(self, bound: str, allowed: Iterable[str] = ()) -> None:
        own = _bound_name(bound)
        address = _address(own)
        self._any_address = address is not None and address.is_unspecified
        self._own = own
        self._allowed = tuple(_split(entry) for entry in allowed)

    def admit(self, header: str) -> bool:
        """Whether a `Host` header names this gateway."""
        name, port = _split(header)
        if not _NAME.match(name):
            return False
        if name == self._own or is_loopback(name):
            return True
        if self._any_address and _address(name) is not None:
            return True
        return any(_fits(name, port, *entry) for entry in self._allowed)


class Origins:
    """The pages that may ask: none but those named and those of this machine's same port.

    Args:
        allowed: Origins as browsers write them, `https://app.example.com`; `*` takes all.
    """

    def __init__(self, allowed: Iterable[str] = ()) -> None:
        given = tuple(allowed)
        self._any = "*" in given
        self._allowed = frozenset(filter(None, map(_origin, given)))

    def admit(self, header: str, port: int | None) -> bool:
        """Whether a page of this origin may ask the gateway at that port."""
        if self._any:
            return True
        origin = _origin(header)
        if origin is None:
            return False
        return origin in self._allowed or (is_loopback(origin[1]) and origin[2] == port)


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _bound_name(host: str) -> str:
    """Return the name of what is bound to: an IPv6 address stands there without brackets."""
    return host.lower() if _address(host) is not None else _split(host)[0]


def _split(host: str) -> tuple[str, str]:
    """Return the name and the port of a `Host` header; an empty name where it is none."""
    host = host.strip().lower()
    if host.startswith("["):
        name, closing, rest = host[1:].partition("]")
        return (name, rest[1:]) if closing and rest[:1] in ("", ":") else ("", "")
    name, _, port = host.partition(":")
    if port and not (port.isascii() and port.isdigit()) and port != "*":
        return "", ""
    return name.removesuffix("."), port


def _fits(name: str, port: str, allowed: str, allowed_port: str) -> bool:
    if allowed_port not in ("", "*", port):
        return False
    if allowed.startswith("*."):
        return name.endswith(allowed[1:])
    return allowed in ("*", name)


def _origin(text: str) -> tuple[str, str, int] | None:
    """Return the scheme, the host and the port of an origin; None where it is none."""
    scheme, separator, rest = text.strip().rstrip("/").lower().partition("://")
    name, port = _split(rest)
    if not separator or not name or "/" in rest or "@" in rest:
        return None
    default = _PORTS.get(scheme)
    number = int(port) if port.isdigit() else default
    return None if number is None else (scheme, name, number)
