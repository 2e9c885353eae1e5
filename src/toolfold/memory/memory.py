"""A memory: what searches led to, kept in a file and weighed in later searches.

Learning never makes anybody wait: it is written down by a thread of its own. Whatever happens to
the file, searches go on without it, and that is said once.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from toolfold._bounds import one_line
from toolfold._memo import Memo
from toolfold.memory._evidence import SAME, Weight, believed
from toolfold.memory._forgetting import forget_part, tidy
from toolfold.memory._index import RequestIndex
from toolfold.memory._pairs import Pairs
from toolfold.memory._store import MemoryFile, Ranked, StoreError, ToolKey
from toolfold.memory._weighing import Weighing, embedded, packed
from toolfold.memory._writer import MemoryWriter
from toolfold.memory.principal_memory import PrincipalMemory
from toolfold.memory.records import (
    NAME_LIMIT,
    RANKED_AT_MOST,
    TEXT_LIMIT,
    MemoryRecord,
    records_of,
)
from toolfold.redact import Redactor
from toolfold.search import Match
from toolfold.search.memory import SearchedTools, Use, Weighed
from toolfold.tool import Tool

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Memory", "Share"]

Share = Literal["principal", "all"]
"""Whose searches count: everybody's own, or all of them."""

DAY = 86_400.0
PER_TOOL = 200
"""How many requests of one principal are kept for one tool; more are added to the nearest."""

_ASKED_KEPT = 512
_READ_AT_MOST = 4_000
_LOOK_EVERY = 1.0
_TIDY_EVERY = 256
_log = logging.getLogger(__name__)
T = TypeVar("T")


class Memory:
    """What searches led to. Safe to share between threads; the file, between processes.

    Example:
        memory = Memory(Path("memory.sqlite"))
        memory.learn(Use("open a pull request", tool.name, tool.digest))
        folded = fold(tools, memory=memory)

    Args:
        path: The file; None keeps everything in this process.
        share: Whose searches count.
        bound: How many requests are kept; the oldest leave first.
        age_days: For how many days.
        redactor: Takes secrets out of what is kept.
        tell: Told once, at the first write, where it goes; by default the log.
    """

    def __init__(
        self,
        path: Path | None = None,
        *,
        share: Share = "all",
        bound: int = 20_000,
        age_days: float = 180,
        redactor: Redactor | None = None,
        tell: Callable[[str], None] = _log.info,
    ) -> None:
        self._tell = tell
        self.share: Share = share
        self._path = path
        self._bound = bound
        self._age = age_days * DAY
        self._redactor = redactor or Redactor()
        self._lock = threading.RLock()
        self._writing = threading.Lock()
        self._kept: MemoryFile | None = None
        self._index: RequestIndex | None = None
        self._pairs = Pairs()
        self._seen_changes: tuple[int, int, int] = (-1, -1, -1)
        self._seen_writes = -1
        self._looked = 0.0
        self._asked: OrderedDict[tuple[str | None, str], Ranked] = OrderedDict()
        self._weighs: Weighing | None = None
        self._catalogs: Memo[str, float] = Memo(64)
        self._said: set[str] = set()
        self._has_written = False
        self._writes = 0
        self._writer = MemoryWriter()

    # ---- as searches see it

    def of(self, principal: str) -> PrincipalMemory:
        """Return the memory as a principal's searches see it."""
        return PrincipalMemory(self, principal)

    def weighed(self, need: str, found: Sequence[Match], catalog: SearchedTools) -> Weighed:
        """Return a need's matches, weighed with everybody's searches."""
        return self.weighed_for(None, need, found, catalog)

    def beside(self, tool: Tool, catalog: SearchedTools) -> Sequence[Tool]:
        """Return tools of a catalog that were used together with one."""
        return self.beside_for(None, tool, catalog)

    def is_ready(self, catalog: SearchedTools) -> bool:
        """Whether `weighed` answers at once for a catalog."""
        return self.is_ready_for(None, catalog)

    def weighed_for(
        self, principal: str | None, need: str, found: Sequence[Match], catalog: SearchedTools
    ) -> Weighed:
        """Return a need's matches, weighed; see `SearchMemory.weighed`.

        Args:
            principal: Whose searches count; None is everybody's.
            need: What was asked for.
            found: What the ranker found, best first.
            catalog: The tools that were searched.
        """
        with self._lock:
            self._note_asked(principal, need, found, catalog)
            return self._guarded(
                lambda: self._weighed(principal, need, found, catalog), Weighed(found)
            )

    def _weighed(
        self, principal: str | None, need: str, found: Sequence[Match], catalog: SearchedTools
    ) -> Weighed:
        weighing = self._weighing()
        if not weighing.index.size or not found:
            return Weighed(found)
        self._note_seen(catalog)
        return weighing.weighed(principal, embedded(need), found, catalog)

    def beside_for(
        self, principal: str | None, tool: Tool, catalog: SearchedTools
    ) -> Sequence[Tool]:
        """Return tools that were used together with one; see `SearchMemory.beside`."""
        with self._lock:
            self._guarded(self._look, None)
            keys = self._pairs.beside(principal, (tool.name, tool.digest))
        return [
            catalog[name] for name, digest in keys
            if name in catalog and catalog[name].digest == digest
        ]  # fmt: skip

    def is_ready_for(self, principal: str | None, catalog: SearchedTools) -> bool:
        """Whether `weighed_for` answers at once."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            weighs = self._weighs
            return weighs is not None and weighs.is_ready(principal, catalog)
        finally:
            self._lock.release()

    # ---- learning

    def learn(self, use: Use) -> None:
        """Keep what a search led to, soon; nobody waits for it."""
        with self._lock:
            need = use.request[:_READ_AT_MOST]
            ranked = self._asked.get((use.principal, need)) or self._asked.get((None, need))
        self._later(lambda: self._learn(use, ranked))

    def together(self, principal: str, one: ToolKey, other: ToolKey, at: float = 0.0) -> None:
        """Keep that two tools were used in one task, soon."""
        if one != other:
            self._later(lambda: self._pair(principal, one, other, at or time.time()))

    def flush(self) -> None:
        """Wait until all that was learnt so far is kept, and counts."""
        self._writer.wait()
        with self._lock:
            self._guarded(lambda: self._look(at_once=True), None)

    def close(self) -> None:
        """Keep what was learnt, and close the file."""
        self._writer.close()
        with self._lock:
            if self._kept is not None:
                self._kept.close()
                self._kept = self._index = None

    # ---- what people do with it

    @property
    def path(self) -> Path | None:
        """The file, where there is one that can be used."""
        with self._lock:
            return self._store.path if self._store.is_lasting else None

    @property
    def problem(self) -> str:
        """Why its file is not used, where it is not."""
        with self._lock:
            return self._store.problem

    def weight_for(self, principal: str | None, catalog: SearchedTools) -> Weight:
        """Return how much the record counts for a catalog.

        Args:
            principal: Whose searches count; None is everybody's.
            catalog: The tools that are searched.

        Raises:
            StoreError: The file cannot be read.
        """
        with self._lock:
            return self._weighing().weight(principal, catalog)

    @property
    def nbytes(self) -> int:
        """What its arrays take in this process."""
        with self._lock:
            self._look(at_once=True)
            return 0 if self._index is None else self._index.nbytes

    @property
    def size(self) -> int:
        """How many requests it holds."""
        with self._lock:
            self._look(at_once=True)
            return 0 if self._index is None else self._index.size

    def records(self) -> Iterator[MemoryRecord]:
        """Yield all that is kept, the oldest first.

        Raises:
            StoreError: The file cannot be read.
        """
        self.flush()
        with self._lock:
            kept = list(self._store.requests())
        for request in kept:
            yield from records_of(request)

    def exported(self) -> Iterator[str]:
        """Yield all that is kept as lines of JSON, which `imported` takes."""
        for record in self.records():
            yield record.line()

    def imported(self, lines: Iterable[str], principal: str | None = None) -> int:
        """Keep what another memory exported; return how many records that were.

        Args:
            lines: Lines of JSON; blank ones are passed over.
            principal: Whose it is from now on; None leaves everything whose it was.

        Raises:
            MemoryRecordError: A line is no record. Nothing is kept then.
            StoreError: The file cannot be written.
        """
        records = [MemoryRecord.read(line) for line in lines if line.strip()]
        for record in records:
            owner = record.principal if principal is None else principal
            self._put(
                owner,
                record.request,
                ((record.tool, record.digest), record.worked, record.failed),
                record.ranked or None,
                record.at or time.time(),
            )
        return len(records)

    def forget(
        self, *, tool: str | None = None, principal: str | None = None, before: float | None = None
    ) -> int:
        """Forget a part for good, and return how many uses that were.

        Args:
            tool: The name of a tool.
            principal: Whose searches.
            before: All that was last used before this moment, in seconds since 1970.

        Raises:
            StoreError: The file cannot be written.
        """
        if tool is None and principal is None and before is None:
            return self.clear()
        self.flush()
        with self._writing, self._lock:
            self._asked.clear()
            gone = forget_part(self._store, tool, principal, before)
            self._look(at_once=True)
        return gone

    def forget_absent(self, catalog: SearchedTools) -> int:
        """Forget for good the tools that a catalog does not have, or has in another form.

        Raises:
            StoreError: The file cannot be written.
        """
        self.flush()
        with self._writing, self._lock:
            there = {(tool.name, tool.digest) for tool in catalog.tools}
            gone = [id_ for id_, key in self._store.tools().items() if key not in there]
            for id_ in gone:
                self._store.forget_tools("id = ?", (id_,))
            self._store.scrub()
            self._look(at_once=True)
        return len(gone)

    def clear(self) -> int:
        """Forget everything for good, and return how many uses that were.

        Raises:
            StoreError: The file cannot be written.
        """
        self.flush()
        with self._writing, self._lock:
            self._asked.clear()
            gone = self._store.clear()
            self._look(at_once=True)
        return gone

    # ---- weighing

    def _note_asked(
        self, principal: str | None, need: str, found: Sequence[Match], catalog: SearchedTools
    ) -> None:
        """Keep in mind how search by itself ranked tools: it is learnt with what comes of it."""
        tools, key = catalog.tools, (principal, need[:_READ_AT_MOST])
        self._asked[key] = tuple(
            ((tools[place].name, tools[place].digest), share)
            for place, share in believed(found)[:RANKED_AT_MOST]
        )
        self._asked.move_to_end(key)
        while len(self._asked) > _ASKED_KEPT:
            self._asked.popitem(last=False)

    def _weighing(self) -> Weighing:
        """Return what weighs with the record as it is now."""
        self._look()
        assert self._index is not None  # looked at above
        if self._weighs is None or self._weighs.index is not self._index:
            self._weighs = Weighing(self._index, self._ranked)
        return self._weighs

    def _ranked(self, requests: Sequence[int]) -> Mapping[int, Ranked]:
        return self._store.ranked(requests)

    def _note_seen(self, catalog: SearchedTools) -> None:
        """Write down, once a day for each catalog, that its tools are there."""
        now = time.time()
        if now - (self._catalogs.get(catalog.fingerprint) or 0.0) > DAY:
            self._catalogs.put(catalog.fingerprint, now)
            keys = [(tool.name, tool.digest) for tool in catalog.tools]
            self._later(lambda: self._store.seen(keys, now))

    # ---- keeping

    @property
    def _store(self) -> MemoryFile:
        if self._kept is None:
            self._kept = MemoryFile(self._path)
        return self._kept

    def _look(self, *, at_once: bool = False) -> None:
        """Take in what was written since the last look, by whomever."""
        if (
            self._index is not None
            and not at_once
            and time.monotonic() < self._looked + _LOOK_EVERY
        ):
            return
        self._looked = time.monotonic()
        if self._kept is None and self._path is not None and not self._path.exists():
            # Nobody has learnt anything yet: no file is made for a look.
            self._index = self._index or RequestIndex(_dimensions())
            return
        writes = self._store.writes()
        if writes == self._seen_writes:
            return
        if self._index is None or self._seen_writes < 0:
            self._store.renew_vectors(_table_version(), lambda text: packed(embedded(text)))
        generation, seq, pairs = self._store.changes()
        before = self._seen_changes
        if self._index is None or generation != before[0]:
            self._index, before = RequestIndex(_dimensions()), (generation, 0, -1)
        if seq != before[1]:
            for kept in self._store.requests(after=before[1]):
                self._index.put(kept)
        if pairs != before[2]:
            self._pairs = Pairs(self._store.pairs())
        self._seen_changes, self._seen_writes = (generation, seq, pairs), writes

    def _learn(self, use: Use, ranked: Ranked | None) -> None:
        key = (use.tool[:NAME_LIMIT], use.digest)
        worked = int(use.worked)
        self._put(
            use.principal, use.request, (key, worked, 1 - worked), ranked, use.at or time.time()
        )

    def _put(
        self,
        principal: str,
        request: str,
        use: tuple[ToolKey, int, int],
        ranked: Ranked | None,
        at: float,
    ) -> None:
        text = one_line(self._redactor.redact(request[:_READ_AT_MOST]), TEXT_LIMIT)
        principal = principal[:NAME_LIMIT]
        vector = embedded(text)
        if not vector.any():
            return  # no word of it is known: nothing will ever be near to it
        with self._writing:
            with self._lock:
                self._look(at_once=True)
                known = self._same(principal, vector, use[0])
            if known is not None and known != text:
                text, vector, ranked = known, embedded(known), None
            self._store.put(principal, text, packed(vector), ranked, (use,), at)
            self._say_first()
            self._writes += 1
            if self._writes % _TIDY_EVERY == 1:
                tidy(self._store, age=self._age, bound=self._bound)
            with self._lock:
                self._look(at_once=True)

    def _same(self, principal: str, vector: NDArray[np.float32], key: ToolKey) -> str | None:
        """Return the request to which a new one is added, if any.

        That is one that says the same and led to the same tool; or the nearest of those that led
        there, where there are as many as are kept.
        """
        index = self._index
        number = None if index is None else index.tools.get(key)
        if index is None or number is None:
            return None
        live = (index.used[: index.size] == number).any(axis=1)
        live &= index.principal[: index.size] == index.principal_of(principal)
        near = index.nearest(vector, live, at_most=1)
        if not near or (near[0].similarity < SAME and int(live.sum()) < PER_TOOL):
            return None
        return self._store.text(index.ids[near[0].row])

    def _pair(self, principal: str, one: ToolKey, other: ToolKey, at: float) -> None:
        with self._writing:
            self._store.pair(principal[:NAME_LIMIT], one, other, 1, at)

    def _say_first(self) -> None:
        if not self._has_written and self._store.is_lasting:
            self._has_written = True
            self._tell(
                f"what searches lead to is remembered in {self._store.path}; "
                "`memory.enabled: off` turns that off"
            )

    # ---- beside the caller

    def _later(self, job: Callable[[], None]) -> None:
        if not self._writer.put(lambda: self._guarded(job, None)):
            self._say("more is learnt than can be written: some of it is lost")

    def _guarded(self, work: Callable[[], T], otherwise: T) -> T:
        """Do something; whatever goes wrong with the file, say it once and go on without."""
        try:
            return work()
        except StoreError as error:
            self._say(str(error))
        except Exception as error:
            self._say(f"the memory failed and is passed over: {error!r}")
        return otherwise

    def _say(self, what: str) -> None:
        if what not in self._said and len(self._said) < 16:
            self._said.add(what)
            _log.warning("%s", what)


def _dimensions() -> int:
    from toolfold.search._dense import table

    return table().dimensions


def _table_version() -> str:
    from toolfold.search._dense import table

    return table().version
