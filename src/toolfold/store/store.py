"""What is kept for longer than a process lives, or for several: as small as it can be said.

A file on one machine and a row in PostgreSQL are both a `Documents`; whoever keeps approvals,
tokens or what servers listed knows that and no more.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Protocol

from toolfold.errors import ToolfoldError

__all__ = ["Documents", "Rewrite", "Signature", "StoreAwayError"]

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
