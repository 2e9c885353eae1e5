"""What servers listed when they last ran, kept so that they need not run.

One document for each server, named by a digest of how it is started: another command, address
or argument is another server. What cannot be read is as good as none.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

from toolfold._json_values import parse
from toolfold.store.files import documents_in
from toolfold.store.store import Documents, StoreAwayError
from toolfold.tool import Json, canonical, is_array, is_object

if TYPE_CHECKING:
    from toolfold.sources.mcp.mcp_source import ListedKind
    from toolfold.sources.mcp.server import Server

__all__ = ["Manifests"]

_log = logging.getLogger(__name__)
_KINDS = ("tools", "prompts", "resources", "templates")
_SIZE_LIMIT = 64 * 1024 * 1024


class Manifests:
    """The last known lists of servers.

    Args:
        place: The folder of their files, or where they are kept together with others; None
            keeps nothing.
    """

    def __init__(self, place: Path | Documents | None) -> None:
        self._documents = None if place is None else documents_in(place)

    def load(self, server: Server) -> dict[ListedKind, list[Json]] | None:
        """Return what a server listed last, or None where it is not known."""
        if self._documents is None:
            return None
        try:
            content = self._documents.read(_name(server))
            if content is None or len(content) > _SIZE_LIMIT:
                return None
            found = parse(content)
        except (OSError, ValueError, RecursionError, StoreAwayError):
            return None
        if not is_object(found) or not is_array(found.get("tools")):
            return None
        lists = {kind: found[kind] for kind in _KINDS if is_array(found.get(kind))}
        return cast("dict[ListedKind, list[Json]]", lists)

    def save(self, server: Server, lists: Mapping[ListedKind, list[Json]]) -> None:
        """Keep what a server lists."""
        if self._documents is None or "tools" not in lists:
            return
        content = canonical({"server": server.name, **lists})
        if len(content) > _SIZE_LIMIT:
            return
        try:
            self._documents.put(_name(server), content)
        except (OSError, StoreAwayError) as error:
            _log.warning("the tools of server %s cannot be kept: %s", server.name, error)


def _name(server: Server) -> str:
    return f"manifests/{digest(server)}.json"


def digest(server: Server) -> str:
    """Name how a server is started, without giving any of its secrets away."""
    parts = (
        server.name, server.transport, server.command, list(server.args), server.cwd, server.url,
        sorted(server.env), sorted(server.headers),
    )  # fmt: skip
    return hashlib.sha256(canonical(parts)).hexdigest()[:32]
