"""Documents as files of one folder, which several processes of a machine may share."""

from __future__ import annotations

from pathlib import Path

from toolfold._files import replace_file
from toolfold._locks import file_lock
from toolfold.store.store import Documents, Rewrite, Signature

__all__ = ["FileDocuments", "documents_in"]


class FileDocuments:
    """The files of a folder, each replaced at once. Their names are the documents'.

    Args:
        folder: The folder. It is made when something is written.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def where(self, name: str) -> str:
        """Return the path of a file."""
        return str(self._folder / name)

    def signature(self, name: str) -> Signature:
        """Return what changes whenever a file is replaced; None where there is none."""
        try:
            status = (self._folder / name).stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino

    def read(self, name: str) -> bytes | None:
        """Return a file's content; None where there is none."""
        try:
            return (self._folder / name).read_bytes()
        except FileNotFoundError:
            return None

    def update(self, name: str, change: Rewrite) -> Signature:
        """Replace a file by what `change` makes of it, under a lock of its own."""
        path = self._folder / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with file_lock(path.with_suffix(".lock")):
            content = change(self.read(name))
            if content is not None:
                replace_file(path, content, durable=True)  # a person's decisions
            return self.signature(name)

    def put(self, name: str, content: bytes) -> None:
        """Replace a file, whatever it holds."""
        replace_file(self._folder / name, content, durable=False)


def documents_in(place: Path | Documents) -> Documents:
    """Return the documents of a folder, or those that are given."""
    return FileDocuments(place) if isinstance(place, Path) else place
