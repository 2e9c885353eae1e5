"""What is kept for longer than a process lives, or for several: as small as it can be said.

A file on one machine and a row in PostgreSQL are both a `Documents`; whoever keeps approvals,
tokens or what servers listed knows that and no more. What may be lost at any time, such as the
hidden turns of a conversation, is an entry of `Entries`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from typing import Protocol

from toolfold.errors import ConfigError, ToolfoldError

__all__ = [
    "DEFAULT_TENANT", "Documents", "Entries", "Rewrite", "Signature", "StoreAwayError",
    "check_tenant",
]  # fmt: skip

DEFAULT_TENANT = "default"
"""Whose something is where nobody says."""

_LONGEST_TENANT = 255


def check_tenant(name: str, where: str = "a tenant's name") -> None:
    """Raise `ConfigError` where something cannot be a tenant's.

    Args:
        name: What it would be called.
        where: What says so.
    """
    if not name.strip():
        raise ConfigError(f"{where} is blank", hint="leave it out, or give it one")
    if len(name) > _LONGEST_TENANT or not name.isprintable():
        raise ConfigError(
            f"{where} cannot be {name[:40]!r}",
            hint=f"use up to {_LONGEST_TENANT} characters that can be printed",
        )


Signature = Hashable | None
"""Changes whenever a document is replaced; None where there is none."""

Rewrite = Callable[[bytes | None], bytes | None]
"""Makes a document's new content of its old one; None leaves it as it is."""


class StoreAwayError(ToolfoldError):
    """What is shared cannot be reached, or does not answer in time."""

    is_undone = False
    """Whether nothing of what was to be done was done, for certain."""


class Documents(Protocol):
    """Whole documents by name. Safe to share between threads.

    Every method may raise `StoreAwayError` where the documents are shared, and `OSError` where
    they are files.
    """

    def where(self, name: str) -> str:
        """Return where a document is, for a person."""
        ...

    def signature(self, name: str) -> Signature:
        """Return what changes whenever a document is replaced; None where there is none."""
        ...

    def read(self, name: str) -> bytes | None:
        """Return a document's content; None where there is none."""
        ...

    def update(self, name: str, change: Rewrite) -> Signature:
        """Replace a document by what `change` makes of it, while nobody else does.

        Whatever `change` raises is raised, and nothing is changed.

        Raises:
            TimeoutError: Another process held on to it for too long.
        """
        ...

    def put(self, name: str, content: bytes) -> None:
        """Replace a document, whatever it holds. It may be lost where the power goes."""
        ...


class Entries(Protocol):
    """Bytes under keys, each of which may be lost at any time: whoever asks does without.

    Safe to share between threads; nothing is raised for what is lost or cannot be kept.
    """

    def get(self, key: str) -> bytes | None:
        """Return what is kept under a key, or None."""
        ...

    def get_all(self, keys: Collection[str]) -> Mapping[str, bytes]:
        """Return what is kept under some keys, as far as anything is."""
        ...

    def put(self, key: str, value: bytes) -> None:
        """Keep something under a key, in place of what was there."""
        ...

    def forget(self, key: str) -> None:
        """Let go of what is kept under a key."""
        ...

    def of(self, tenant: str) -> Entries:
        """Return the entries of a tenant, who sees no others."""
        ...
