"""Which headers go on, in both directions: all but those of one connection."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from toolfold.serve.http.customs import Header

__all__ = ["downward", "named", "upward"]

_OF_A_CONNECTION = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer "
    b"transfer-encoding upgrade".split()
)
# The first names the proxy; the library answers the second itself; the third is ours.
_NEVER_UP = _OF_A_CONNECTION | {b"host", b"expect", b"x-toolfold-token"}


def upward(headers: Iterable[Header], *, without: Collection[bytes] = ()) -> list[Header]:
    """Return the headers of a request that go up, in their order.

    Args:
        headers: The request's.
        without: Names in lower case that do not.
    """
    return _kept(list(headers), _NEVER_UP.union(without))


def downward(headers: Iterable[Header], *, without: Collection[bytes] = ()) -> list[Header]:
    """Return the headers of a response that go down, in their order.

    Args:
        headers: The response's.
        without: Names in lower case that do not.
    """
    return _kept(list(headers), _OF_A_CONNECTION.union(without))


def named(headers: Iterable[Header], name: bytes) -> str:
    """Return what stands first under a name; empty where nothing does."""
    return next((v.decode("latin-1") for k, v in headers if k.lower() == name), "")


def _kept(headers: list[Header], left_out: frozenset[bytes]) -> list[Header]:
    # A connection may name more headers that are its own.
    listed = (value for key, value in headers if key.lower() == b"connection")
    own = {name.strip().lower() for value in listed for name in value.split(b",")}
    return [(k, v) for k, v in headers if k.lower() not in left_out and k.lower() not in own]
