"""Servers of a running gateway: listed, restarted, turned on and off, their last lines read.

A verb begins a change and answers; `status` says when it has come about. What is turned off
by hand is off until it is turned on again or the gateway ends: the configuration is what
holds over a restart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING

from toolfold.invisible import shown
from toolfold.redact import Redactor
from toolfold.serve.control.messages import ControlError
from toolfold.serve.control.moments import moment
from toolfold.serve.control.verb_arguments import number, text
from toolfold.serve.observe.changes import ChangeLog
from toolfold.tool import Json

if TYPE_CHECKING:
    from toolfold.serve.control.control_socket import Verb
    from toolfold.serve.gateway import Gateway

__all__ = ["ServerVerbs"]


class ServerVerbs:
    """The verbs that begin with `servers.`.

    Args:
        gateway: The gateway.
        listed: Returns how the servers stand, as `status` tells it.
        changes: Takes note of what is changed.
        redactor: Takes secrets out of what servers wrote.
    """

    def __init__(
        self,
        gateway: Gateway,
        listed: Callable[[], list[Json]],
        changes: ChangeLog,
        redactor: Redactor,
    ) -> None:
        self._gateway = gateway
        self._listed = listed
        self._changes = changes
        self._redactor = redactor

    @property
    def table(self) -> dict[str, Verb]:
        """The verbs by name."""
        return {
            "servers.list": self.list_all,
            "servers.restart": self.restart,
            "servers.enable": self.enable,
            "servers.disable": self.disable,
            "servers.logs": self.logs,
        }

    async def list_all(self, arguments: Mapping[str, Json]) -> Json:
        """Answer how all servers stand, and which the configuration leaves out."""
        return {"servers": self._listed(), "left_out": list(self._gateway.config.disabled)}

    async def restart(self, arguments: Mapping[str, Json]) -> Json:
        """Begin to restart a server; calls under way have `serve.drain` seconds to end."""
        name = self._named(arguments)
        if name not in self._gateway.pool.upstreams:
            raise ControlError("disabled", f"the server {shown(name, 100)!r} is turned off")
        self._gateway.pool.servers.restart(name, self._gateway.config.serve.drain)
        self._changes.note("servers.restart", name)
        return {"name": name, "state": self._state(name)}

    async def enable(self, arguments: Mapping[str, Json]) -> Json:
        """Turn a server on."""
        return self._turned(arguments, on=True)

    async def disable(self, arguments: Mapping[str, Json]) -> Json:
        """Turn a server off; calls under way have `serve.drain` seconds to end."""
        return self._turned(arguments, on=False)

    def _turned(self, arguments: Mapping[str, Json], *, on: bool) -> Json:
        name = self._named(arguments)
        changed = self._gateway.pool.turn(name, self._gateway.config.serve.drain, on=on)
        if changed.names:
            self._changes.note(f"servers.{'enable' if on else 'disable'}", name)
        return {"name": name, "state": self._state(name), "changed": bool(changed.names)}

    async def logs(self, arguments: Mapping[str, Json]) -> Json:
        """Answer the last lines of a server's standard error."""
        name = self._named(arguments)
        # The library beneath it is slow to import, and the first client is not kept waiting.
        from toolfold.sources.mcp._server_words import LINES_AT_MOST

        wanted = number(arguments, "lines", default=50, high=LINES_AT_MOST)
        source = self._gateway.pool.upstreams.get(name)
        lines = () if source is None else source.lifecycle.words.lines
        error = None if source is None else source.error
        return {
            "name": name,
            "state": self._state(name),
            "error": None if error is None else self._redactor.redact(error),
            "lines": [
                {"at": moment(line.at, "milliseconds"), "text": self._redactor.redact(line.text)}
                for line in lines[len(lines) - min(wanted, len(lines)) :]
            ],
        }

    def _state(self, name: str) -> str:
        return next(s.state for s in self._gateway.pool.statuses if s.name == name)

    def _named(self, arguments: Mapping[str, Json]) -> str:
        name = text(arguments, "name")
        known = self._gateway.pool.servers.configured
        if name in known:
            return name
        if name in self._gateway.config.disabled:
            raise ControlError(
                "left_out",
                f"the configuration leaves the server {shown(name, 100)!r} out: take its "
                "`disabled` away, then reload",
            )
        near = get_close_matches(name, known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ControlError("unknown_server", f"no server is named {shown(name, 100)!r}{hint}")
