"""What servers listed when they last ran, kept on disk so that they need not run.

One file for each server, named by a digest of how it is started: another command, address
or argument is another server. A file that cannot be read is as good as none.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

from toolfold._files import replace_file
from toolfold._json_values import parse
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
        folder: Where they are kept; None keeps nothing.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def load(self, server: Server) -> dict[ListedKind, list[Json]] | None:
        """Return what a server listed last, or None where it is not known."""
        path = self._path(server)
        if path is None:
            return None
        try:
            if path.stat().st_size > _SIZE_LIMIT:
                return None
            found = parse(path.read_bytes())
        except (OSError, ValueError, RecursionError):
            return None
        if not is_object(found) or not is_array(found.get("tools")):
            return None
        lists = {kind: found[kind] for kind in _KINDS if is_array(found.get(kind))}
        return cast("dict[ListedKind, list[Json]]", lists)

    def save(self, server: Server, lists: Mapping[ListedKind, list[Json]]) -> None:
        """Keep what a server lists."""
        path = self._path(server)
        if path is None or "tools" not in lists:
            return
        try:
            replace_file(path, canonical({"server": server.name, **lists}), durable=False)
        except OSError as error:
            _log.warning("the tools of server %s cannot be kept: %s", server.name, error)

    def _path(self, server: Server) -> Path | None:
        if self._folder is None:
            return None
        return self._folder / "manifests" / f"{digest(server)}.json"


def digest(server: Server) -> str:
    """Name how a server is started, without giving any of its secrets away."""
    parts = (
        server.name, server.transport, server.command, list(server.args), server.cwd, server.url,
        sorted(server.env), sorted(server.headers),
    )  # fmt: skip
    return hashlib.sha256(canonical(parts)).hexdigest()[:32]
