"""How the gateway stands: on a terminal a picture that keeps itself up to date, else lines.

The picture is drawn at the bottom of standard error and drawn over in place. Whatever else
is to be written there goes through `LiveStatus.write`, which takes the picture away,
writes, and puts it back; so it is given to the log as its stream. What servers say of
themselves is written with nothing hidden in it and cut to the width of the screen.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from toolfold._terminal import Style, columns, erase_lines, fitted, padded, styled
from toolfold._terminal import size as terminal_size
from toolfold.dispatch.records import CallRecord, FoldRecord, SearchRecord, Silent
from toolfold.invisible import shown
from toolfold.prompts import plural
from toolfold.sources.mcp.server_status import ServerStatus

if TYPE_CHECKING:
    from toolfold.serve.observe.logs import Stream

__all__ = ["Board", "LiveStatus", "StatusLog"]

_log = logging.getLogger(__name__)

_SIGNS = {
    "ready": "●", "starting": "◌", "waiting": "○", "failed": "✗", "stopped": "·",
    "quarantined": "!", "disabled": "-", "removed": "-",
}  # fmt: skip
_STYLES: dict[str, Style] = {
    "ready": "green", "starting": "cyan", "failed": "red", "quarantined": "yellow"
}  # fmt: skip
_STDERR = 2
_REDRAW_SECONDS = 0.2
_ROWS_AT_MOST = 20


@dataclass(slots=True)
class Board(Silent):
    """What there is to show, counted together."""

    address: str = ""
    servers: dict[str, ServerStatus] = field(default_factory=dict[str, ServerStatus])
    calls: int = 0
    failed: int = 0
    searches: int = 0
    fold: FoldRecord | None = None

    def called(self, record: CallRecord) -> None:
        """Count a call."""
        self.calls += 1
        self.failed += record.outcome not in ("ok", "cancelled")

    def searched(self, record: SearchRecord) -> None:
        """Count a search."""
        self.searches += 1

    def server_changed(self, status: ServerStatus) -> None:
        """Keep a server's state; of one that is in the configuration no more, nothing."""
        if status.state == "removed":
            self.servers.pop(status.name, None)
        else:
            self.servers[status.name] = status

    def folded(self, record: FoldRecord) -> None:
        """Keep what folding saves."""
        self.fold = record

    def lines(self, width: int, rows: int = _ROWS_AT_MOST) -> list[str]:
        """Return the picture, each line at most `width` wide, without colours."""
        servers = list(self.servers.values())
        # Those in trouble first, should there not be room for all.
        servers.sort(key=lambda s: s.state in ("ready", "waiting"))
        kept = servers[: max(rows - 3, 1)]
        lines = [f"toolfold  {self.address}".rstrip()]
        widest = max((columns(shown(s.name, 30)) for s in kept), default=0)
        lines += [_server_line(status, widest) for status in kept]
        if len(kept) < len(servers):
            lines.append(f"  … and {len(servers) - len(kept)} more servers")
        lines.append(self._counts())
        return [fitted(line, max(width, 1)) for line in lines]

    def _counts(self) -> str:
        ready = sum(status.state == "ready" for status in self.servers.values())
        # Functions are no server's.
        behind = 0 if self.fold is None else self.fold.tools
        tools = max(sum(status.tools for status in self.servers.values()), behind)
        parts = [f"{ready} of {plural(len(self.servers), 'server')} ready"] if self.servers else []
        parts += [
            f"tools {tools:,}",
            f"calls {self.calls:,}" + (f" ({self.failed:,} failed)" if self.failed else ""),
            f"searches {self.searches:,}",
        ]
        if self.fold is not None and self.fold.is_active:
            parts.append(f"tokens saved {self.fold.tokens_saved:,}")
        return " · ".join(parts)


def _server_line(status: ServerStatus, widest: int) -> str:
    name = shown(status.name, 30)
    parts = [f"  {_SIGNS[status.state]} {padded(name, widest)}  {status.state}"]
    if status.state in ("ready", "waiting"):
        parts.append(plural(status.tools, "tool"))
    if status.quarantined:
        parts.append(f"{status.quarantined:,} wait for approval")
    if status.restarts:
        parts.append(f"restarted {status.restarts}×")
    if status.error:
        parts.append(shown(status.error, 200).replace("\n", " "))
    return ", ".join(parts)


class LiveStatus(Silent):
    """Draws a board at the bottom of a terminal. Use it within a running event loop.

    Args:
        stream: The terminal.
        address: Where the gateway listens.
        size: Tells the terminal's width and height.
    """

    def __init__(
        self,
        stream: Stream,
        address: str = "",
        *,
        size: Callable[[], tuple[int, int]] | None = None,
    ) -> None:
        self.board = Board(address)
        self._stream = stream
        self._size = size or (lambda: terminal_size(_STDERR))
        self._drawn = 0
        self._timer: asyncio.TimerHandle | None = None
        self._is_open = True

    def called(self, record: CallRecord) -> None:
        """Show a call."""
        self.board.called(record)
        self._soon()

    def searched(self, record: SearchRecord) -> None:
        """Show a search."""
        self.board.searched(record)
        self._soon()

    def server_changed(self, status: ServerStatus) -> None:
        """Show a server's state."""
        self.board.server_changed(status)
        self._soon()

    def folded(self, record: FoldRecord) -> None:
        """Show what folding saves."""
        self.board.folded(record)
        self._soon()

    def write(self, text: str) -> None:
        """Write something above the picture; for a log that shares the terminal."""
        # A text without its line break would be drawn over: it is on its own line.
        line = text if text.endswith("\n") else f"{text}\n"
        self._put(self._erased() + line + self._picture())

    def flush(self) -> None:
        """Send what was written."""
        with suppress(OSError):
            self._stream.flush()

    def draw(self) -> None:
        """Draw the picture anew."""
        self._timer = None
        self._put(self._erased() + self._picture())

    def close(self) -> None:
        """Leave the last picture where it is, and draw no more."""
        if not self._is_open:
            return
        if self._timer is not None:
            self._timer.cancel()
        self.draw()
        self._is_open = False
        self._drawn = 0

    def _put(self, text: str) -> None:
        with suppress(OSError):  # the terminal was closed, and the gateway goes on
            self._stream.write(text)
            self._stream.flush()

    def _soon(self) -> None:
        if self._is_open and self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(_REDRAW_SECONDS, self.draw)

    def _erased(self) -> str:
        """Return what moves to the picture's first line and clears all below it."""
        return erase_lines(self._drawn)

    def _picture(self) -> str:
        if not self._is_open:
            return ""
        width, height = self._size()
        # The last column is left free: some terminals go to the next line when it is used.
        lines = self.board.lines(width - 1, min(_ROWS_AT_MOST, height - 1))
        self._drawn = len(lines)
        return "".join(f"{self._coloured(line)}\n" for line in lines)

    def _coloured(self, line: str) -> str:
        for state, sign in _SIGNS.items():
            if line.startswith(f"  {sign} "):
                return f"  {styled(sign, _STYLES.get(state, 'dim'))}{line[3:]}"
        return styled(line, "dim")


class StatusLog(Silent):
    """Logs one line for each change of a server and of what is folded."""

    def __init__(self) -> None:
        self._servers: dict[str, str] = {}
        self._fold = ""

    def server_changed(self, status: ServerStatus) -> None:
        """Log a server's state where it differs from what was logged last."""
        line = _server_line(status, 0)[4:].replace("  ", ": ", 1)
        if self._servers.get(status.name) == line:
            return
        self._servers[status.name] = line
        level = logging.WARNING if status.state in ("failed", "quarantined") else logging.INFO
        _log.log(level, "server %s", line)

    def folded(self, record: FoldRecord) -> None:
        """Log that tools are folded, and what that saves."""
        tools = plural(record.tools, "tool")
        if not record.is_active:
            line = f"not folding {tools}: {record.reason}"
        elif record.tokens_before:
            before, after = f"{record.tokens_before:,}", f"{record.tokens_after:,}"
            line = f"folding {tools}: {before} tokens of definitions become {after}"
        else:  # of a shared catalog nobody here holds the definitions
            line = f"folding {tools} into {record.tokens_after:,} tokens"
        if line != self._fold:
            self._fold = line
            _log.info("%s", line)
