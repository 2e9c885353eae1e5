"""The folder of the sockets on which running gateways answer: their user's alone.

It stands in `serve.state_dir`. A gateway's socket is named by its process, and takes that
name when somebody listens on it: where nobody does, the gateway was killed. A folder whose
path is too long for a socket holds a link to one in a folder of its own beside the system's
temporary files.
"""

from __future__ import annotations

import os
import secrets
import socket
import stat
import struct
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from toolfold.serve.control._unix_sockets import own_uid, unix_socket

__all__ = ["RunFolder", "has_sockets", "peer_uid"]

_LONGEST_PATH = 100
"""In bytes; what systems take begins at 104, with the end of the text."""

_SUFFIX = ".sock"
_SHORT = "toolfold-"
_WAITING = 16
_SOL_LOCAL, _LOCAL_PEERCRED = 0, 1
_PRIVATE_FOLDER, _PRIVATE = 0o700, 0o600


def has_sockets() -> bool:
    """Whether the system has sockets that are files, and loops that serve them."""
    return sys.platform != "win32" and hasattr(socket, "AF_UNIX")


class RunFolder:
    """The sockets of the gateways that share a state folder.

    Args:
        state: The folder that `serve.state_dir` stands for.
    """

    def __init__(self, state: Path) -> None:
        self.path = state / "run"

    def listen(self) -> tuple[socket.socket, Path]:
        """Return a socket that listens for this process, and its name in the folder.

        Raises:
            OSError: The folder is somebody else's, or cannot be written.
        """
        self._prepare()
        name = f"{os.getpid()}-{secrets.token_hex(3)}{_SUFFIX}"
        place, hidden = self.path / name, self.path / f".{name}"
        if len(os.fsencode(hidden)) <= _LONGEST_PATH:
            listening = _bound(hidden)
            hidden.rename(place)
            return listening, place
        short = _short_folder() / "s"
        listening = _bound(short)
        place.symlink_to(short)
        return listening, place

    def _prepare(self) -> None:
        self.path.parent.mkdir(mode=_PRIVATE_FOLDER, parents=True, exist_ok=True)
        self.path.mkdir(mode=_PRIVATE_FOLDER, exist_ok=True)
        if not self._is_ours():
            raise OSError(f"`{self.path}` is not a folder of this user")
        self.path.chmod(_PRIVATE_FOLDER)

    def _is_ours(self) -> bool:
        try:
            found = self.path.lstat()
        except OSError:
            return False
        return stat.S_ISDIR(found.st_mode) and found.st_uid == own_uid()

    def places(self) -> list[Path]:
        """Return the sockets that lie there, live or not; none of a folder that is not ours."""
        if not self._is_ours():
            return []
        return sorted(self.path.glob(f"[0-9]*{_SUFFIX}"))

    def clear(self) -> None:
        """Remove what gateways have left that were killed."""
        for place in self.places():
            if not is_listened_to(place):
                remove(place)


def pid_of(place: Path) -> int:
    """Return the process that a socket is named by."""
    number = place.name.partition("-")[0]
    return int(number) if number.isdecimal() else 0


def address_of(place: Path) -> str:
    """Return the path at which a socket is reached: its own, or where it leads to."""
    with suppress(OSError):
        return str(place.readlink())
    return str(place)


def is_listened_to(place: Path) -> bool:
    """Whether a process listens on a socket, however busy."""
    with unix_socket() as probe:
        probe.setblocking(False)
        try:
            probe.connect(address_of(place))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:  # there is one who does not come to it now
            return True
    return True


def remove(place: Path) -> None:
    """Remove a socket, and the folder that was made for it alone."""
    with suppress(OSError):
        target = place.readlink()
        if target.parent.name.startswith(_SHORT):
            target.unlink(missing_ok=True)
            target.parent.rmdir()
    with suppress(OSError):
        place.unlink()


def peer_uid(connection: socket.socket) -> int | None:
    """Return the user at the other end of a connection, where the system tells."""
    with suppress(OSError, struct.error):
        if sys.platform == "linux":
            size = struct.calcsize("3i")
            found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
            return struct.unpack("3i", found)[1]
        if sys.platform == "darwin":
            found = connection.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, 8)
            return struct.unpack("2I", found)[1]
    return None


def _short_folder() -> Path:
    """Return a new folder of this user with a short path."""
    made = Path(tempfile.mkdtemp(prefix=_SHORT))
    if len(os.fsencode(made / "s")) > _LONGEST_PATH:
        made.rmdir()
        made = Path(tempfile.mkdtemp(prefix=_SHORT, dir="/tmp"))
    return made


def _bound(path: Path) -> socket.socket:
    made = unix_socket()
    try:
        made.bind(str(path))
        path.chmod(_PRIVATE)
        made.listen(_WAITING)
        made.setblocking(False)
    except BaseException:
        made.close()
        raise
    return made
