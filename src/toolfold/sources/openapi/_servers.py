"""Where an API is: the address that the configuration names, or the one that the document does.

All operations of a source go to one origin. What a person named is taken as it stands. What
only a document says may not lead to this machine or into a private network, and, where the
document itself came from an address, not to any other host than that.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from urllib.parse import SplitResult, urljoin, urlsplit

from toolfold._bounds import one_line
from toolfold._json_values import is_array, is_mapping
from toolfold.errors import ConfigError
from toolfold.sources.openapi.api_document import ApiDocument, DocumentFault, DocumentNode

__all__ = ["check_address", "is_public", "origin_of", "read_server"]

_VARIABLE = re.compile(r"\{([^{}]+)\}")
_NAME_BASE = "name it as `base_url`"
_PORTS = {"http": 80, "https": 443}
_LOCAL = ("localhost", "localdomain", "local", "internal", "home.arpa", "lan")


def origin_of(url: str) -> tuple[str, str, int]:
    """Return the scheme, host and port of an address.

    Raises:
        ValueError: It has none.
    """
    parts = urlsplit(url)
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ValueError(url)
    return parts.scheme, parts.hostname.lower(), parts.port or _PORTS[parts.scheme]


def check_address(key: str, url: str) -> None:
    """Raise `ConfigError` where what a person wrote is no address, or holds a password."""
    try:
        origin_of(url)
        parts = urlsplit(url)
    except ValueError:
        parts = None
    if parts is None or not url.isprintable() or " " in url or parts.fragment:
        # It may hold a password: it is not shown.
        raise ConfigError(
            f"`{key}` is no address", hint="write an address with http:// or https://"
        )
    if parts.username is not None:
        raise ConfigError(
            f"`{key}` holds a user's name", hint="write `auth: {basic: user:password}` beside it"
        )
    if key.endswith("base_url") and parts.query:
        raise ConfigError(f"`{key}` holds a query", hint="leave it out")


def is_public(host: str) -> bool:
    """Whether a host may be one that everybody can reach, as far as its name tells."""
    plain = host.strip("[]").rstrip(".").lower()
    try:
        address = ipaddress.ip_address(plain.partition("%")[0])
    except ValueError:
        last = plain.rpartition(".")
        # 127.1, 0x7f000001 and 2130706433 are addresses, too, for who connects.
        is_number = last[2].isdecimal() or last[2].startswith("0x")
        is_local = any(plain == name or plain.endswith(f".{name}") for name in _LOCAL)
        return bool(last[1]) and not is_number and not is_local
    return is_global(address)


def is_global(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Whether an address is nobody's own, an embedded one included."""
    inner = getattr(address, "ipv4_mapped", None) or getattr(address, "sixtofour", None)
    return address.is_global and not address.is_multicast and (inner is None or inner.is_global)


def read_server(
    document: ApiDocument,
    node: DocumentNode,
    *,
    base_url: str = "",
    variables: Mapping[str, str],
    came_from: str = "",
) -> str:
    """Return the address that a list of servers gives first, without a slash at its end.

    Args:
        document: The document.
        node: Its `servers`, or those of a path or of an operation.
        base_url: What the configuration names instead.
        variables: The values of variables in addresses, over their defaults.
        came_from: The address that the document came from.

    Raises:
        DocumentFault: There is none, or it may not be used unless somebody names it.
    """
    if base_url:
        return base_url.rstrip("/")
    servers = node.value
    first = servers[0] if is_array(servers) and servers else {"url": "/"}
    here = DocumentNode(first, (*node.steps, "0"))
    written = first.get("url") if is_mapping(first) else None
    if not isinstance(written, str):
        raise DocumentFault("a server has no `url`", here)
    url = urljoin(came_from, _filled(here, written, variables)).rstrip("/")
    try:
        scheme, host, _ = origin = origin_of(url)
        parts = urlsplit(url)
    except ValueError:
        raise DocumentFault(
            f"the server `{one_line(written, 100)}` is no address; {_NAME_BASE}", here
        ) from (None)
    _check_parts(parts, here)
    if came_from:
        # The document was asked for there by a person; its own host may answer calls, too.
        if origin != origin_of(came_from):
            raise DocumentFault(
                f"the server `{scheme}://{host}` is another than the document's; {_NAME_BASE}", here
            )
    elif not is_public(host):
        raise DocumentFault(f"the server `{host}` is this machine's or private; {_NAME_BASE}", here)
    return url


def _check_parts(parts: SplitResult, node: DocumentNode) -> None:
    if parts.username is not None or parts.query or parts.fragment:
        raise DocumentFault(f"a server's address has more than host and path; {_NAME_BASE}", node)
    if any(step in (".", "..") for step in parts.path.split("/")) or not parts.path.isprintable():
        raise DocumentFault(f"a server's path leads elsewhere; {_NAME_BASE}", node)


def _filled(server: DocumentNode, url: str, variables: Mapping[str, str]) -> str:
    """Return an address with its variables filled in."""
    variable = server.at("variables")

    def value(match: re.Match[str]) -> str:
        name = match[1]
        about = variable.at(name).mapping
        chosen = variables.get(name, about.get("default"))
        if not isinstance(chosen, str | int | float):
            raise DocumentFault(
                f"the server's variable `{one_line(name, 60)}` has no value", server
            )
        options = about.get("enum")
        if is_array(options) and str(chosen) not in map(str, options):
            raise DocumentFault(
                f"the server's variable `{one_line(name, 60)}` has no such value", server
            )
        return str(chosen)

    return _VARIABLE.sub(value, url)
