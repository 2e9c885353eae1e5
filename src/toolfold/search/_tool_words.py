"""Words that an author wrote for tools: requests and synonyms, in a file that a person can review.

A line of JSON a tool: its name, the digest of what it said when the words were written, the
requests, the synonyms. Words of a tool that says something else by now are stale and are not
used. The file is a stranger's text like any other: what is in it is bounded, and nothing that
cannot be seen is taken.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import orjson

from toolfold._bounds import one_line
from toolfold._memo import Memo
from toolfold.settings.words_file import NO_FILE
from toolfold.tool import Json, Tool, canonical, is_array, is_object

__all__ = [
    "FILE_LIMIT",
    "PHRASES_AT_MOST",
    "PHRASE_LIMIT",
    "BadLine",
    "ToolWords",
    "WordsEntry",
    "clean_phrases",
    "content_digest",
    "load_words",
    "read_words",
    "written_line",
]

PHRASES_AT_MOST = 16
"""Requests of one tool that are looked at, and synonyms as many."""

PHRASE_LIMIT = 160
"""Characters of a request or a synonym; longer ones are cut."""

FILE_LIMIT = 64 * 1024 * 1024
"""Bytes of a file that is read at all."""

_DIGEST_DIGITS = 16
_log = logging.getLogger(__name__)


class WordsEntry(NamedTuple):
    """What was written for one tool."""

    name: str
    digest: str
    """What the tool said when it was written: see `content_digest`."""
    requests: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    """Synonyms: other words for what it does and what it works on."""

    @property
    def phrases(self) -> tuple[str, ...]:
        """What a request is compared with: the requests, and the synonyms together."""
        together = (" ".join(self.words),) if self.words else ()
        return (*self.requests, *together)


class BadLine(NamedTuple):
    """A line of a file that cannot be used."""

    number: int
    problem: str


@dataclass(frozen=True, slots=True)
class ToolWords:
    """The words of one file. Equal where the content is."""

    digest: str
    """Names the content."""
    by_name: Mapping[str, WordsEntry] = field(compare=False, repr=False)
    bad_lines: tuple[BadLine, ...] = field(default=(), compare=False, repr=False)
    where: str = field(default="", compare=False)
    """The file, for people."""

    @classmethod
    def of(cls, entries: Iterable[WordsEntry]) -> ToolWords:
        """Return the words of some entries; of two for one tool the later counts."""
        by_name = {entry.name: entry for entry in entries}
        text = b"\n".join(written_line(by_name[name]) for name in sorted(by_name))
        return cls(_digest(text), MappingProxyType(by_name))

    def entry(self, tool: Tool) -> WordsEntry | None:
        """Return what was written for a tool as it is now."""
        found = self.by_name.get(tool.name)
        return found if found is not None and found.digest == content_digest(tool) else None

    def stale(self, tools: Iterable[Tool]) -> list[str]:
        """Return the names of the tools that say something else than when words were written."""
        return [t.name for t in tools if t.name in self.by_name and self.entry(t) is None]


def content_digest(tool: Tool) -> str:
    """Return a digest of what a tool says of itself: what an author reads of it."""
    said = (tool.bare_name, tool.title, tool.description, tool.parameters)
    return _digest(canonical(said))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_DIGEST_DIGITS]


def clean_phrases(values: Iterable[object], limit: int = PHRASES_AT_MOST) -> tuple[str, ...]:
    """Return texts on one line each, bounded, visible, each once; what holds no word is dropped."""
    kept: dict[str, str] = {}
    for value in values:
        if len(kept) == limit:
            break
        text = one_line(value, PHRASE_LIMIT) if isinstance(value, str) else ""
        if any(map(str.isalnum, text)):
            kept.setdefault(text.casefold(), text)
    return tuple(kept.values())


def written_line(entry: WordsEntry) -> bytes:
    """Return an entry as a line of the file."""
    return orjson.dumps(
        {
            "name": entry.name,
            "digest": entry.digest,
            "requests": entry.requests,
            "words": entry.words,
        }
    )


def read_words(content: bytes, where: str = "") -> ToolWords:
    """Return the words of a file's content; a line that cannot be used is left out and told of."""
    by_name: dict[str, WordsEntry] = {}
    bad: list[BadLine] = []
    for number, line in enumerate(content.split(b"\n"), 1):
        if not line.strip():
            continue
        entry = _entry(line)
        if isinstance(entry, str):
            bad.append(BadLine(number, entry))
        else:
            by_name[entry.name] = entry
    return ToolWords(_digest(content), MappingProxyType(by_name), tuple(bad), where)


def _entry(line: bytes) -> WordsEntry | str:
    """Return what a line says, or what is wrong with it."""
    try:
        row: Json = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        return f"not JSON: {error.msg}"
    if not is_object(row):
        return "no JSON object"
    name, digest = row.get("name"), row.get("digest")
    if not isinstance(name, str) or not name.strip():
        return "no `name`"
    if not isinstance(digest, str):
        return "no `digest`"
    lists: list[Sequence[object]] = []
    for key in ("requests", "words"):
        value = row.get(key, [])
        if not is_array(value) or not all(isinstance(item, str) for item in value):
            return f"`{key}` is no list of texts"
        lists.append(value)
    return WordsEntry(name, digest, clean_phrases(lists[0]), clean_phrases(lists[1]))


_FILES: Memo[tuple[str, int, int], ToolWords] = Memo(
    8, room=FILE_LIMIT, size=lambda words: 512 * len(words.by_name)
)
_TOLD: Memo[tuple[str, str], bool] = Memo(64)


def load_words(setting: str) -> ToolWords | None:
    """Return the words of the file that a setting names, read once per content.

    `off` and `auto` name none: where a configuration is read, `auto` becomes the file beside it.
    A file that cannot be read is said once and passed over, and so are lines that cannot.
    """
    if setting in NO_FILE:
        return None
    path = Path(setting).expanduser()
    try:
        status = path.stat()
        if not path.is_file():
            raise OSError(0, "it is no file")
        if status.st_size > FILE_LIMIT:
            raise OSError(0, f"it has more than {FILE_LIMIT // 1024 // 1024} MiB")
        key = (str(path), status.st_mtime_ns, status.st_size)
        return _FILES.get_or(key, lambda: _read(path))
    except OSError as error:
        _tell(setting, f"the words in {path} are not used: {error.strerror}")
        return None


def _read(path: Path) -> ToolWords:
    words = read_words(path.read_bytes(), str(path))
    if words.bad_lines:
        first = words.bad_lines[0]
        count = len(words.bad_lines)
        about = f"line {first.number}: {first.problem}"
        _tell(str(path), f"{path}: {count} line{'s' * (count > 1)} left out; {about}")
    return words


def _tell(where: str, text: str) -> None:
    if _TOLD.get((where, text)) is None:
        _TOLD.put((where, text), True)
        _log.warning("%s", text)
