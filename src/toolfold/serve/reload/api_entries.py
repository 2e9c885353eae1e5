"""HTTP APIs of a configuration that is read again: which of them are made anew.

One is, whose entry is another, or whose document stands in a file that was written since. What
is the same goes on with its connections, its access tokens and its document.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from toolfold.config.configured_sources import load_api
from toolfold.serve.reload.config_file import Look
from toolfold.serve.reload.differences import changed_apis

if TYPE_CHECKING:
    from toolfold.config.gateway_config import GatewayConfig
    from toolfold.sources.openapi import HttpApi, OpenAPISource

__all__ = ["ApiEntries"]


class ApiEntries:
    """Knows how the documents of APIs looked when they were read.

    Args:
        apis: The APIs that are served.
    """

    def __init__(self, apis: Iterable[HttpApi]) -> None:
        self._looks = self._next = _looks(apis)

    def changed(self, old: Sequence[HttpApi], new: GatewayConfig) -> dict[str, OpenAPISource]:
        """Return the APIs that are new or another, made; a document that is no good says so.

        It reads files, and is for a thread.

        Raises:
            MissingExtraError: The extra `openapi` is not installed.
        """
        self._next = _looks(new.apis)  # before they are read: what is written then is seen later
        names = {*changed_apis(old, new.apis)}
        names |= {name for name, look in self._next.items() if self._looks.get(name) != look}
        limit = new.serve.description_limit
        return {api.name: load_api(api, limit) for api in new.apis if api.name in names}

    def served(self) -> None:
        """Take note that what was made last is served now."""
        self._looks = self._next


def _looks(apis: Iterable[HttpApi]) -> dict[str, Look | None]:
    return {api.name: _look(api) for api in apis if api.path is not None}


def _look(api: HttpApi) -> Look | None:
    assert api.path is not None
    try:
        found = api.path.stat()
    except OSError:
        return None
    return Look(found.st_mtime_ns, found.st_size, found.st_ino)
