"""A memory: what searches led to, kept in a file or a database, and weighed in later searches.

Learning never makes anybody wait: it is written down by a thread of its own, which also looks
after what other processes wrote to a database. Whatever happens to the file or the database,
searches go on without it, and that is said once.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from toolfold._bounds import one_line
from toolfold._memo import Memo
from toolfold.memory._asked import READ_AT_MOST, AskedNeeds
from toolfold.memory._evidence import Weight
from toolfold.memory._forgetting import forget_part, tidy
from toolfold.memory._kept import KeptMemory, Ranked, ToolKey
from toolfold.memory._places import tenants_place
from toolfold.memory._store import MemoryFile
from toolfold.memory._tries import Tries
from toolfold.memory._view import RecordView, renew_vectors
from toolfold.memory._weighing import Weighing, embedded, packed
from toolfold.memory._writer import MemoryWriter
from toolfold.memory.principal_memory import PrincipalMemory
from toolfold.memory.records import (
    NAME_LIMIT,
    TEXT_LIMIT,
    MemoryRecord,
    records_of,
)
from toolfold.redact import Redactor
from toolfold.search import Match
from toolfold.search.memory import SearchedTools, Use, Weighed
from toolfold.store.store import DEFAULT_TENANT
from toolfold.tool import Tool

if TYPE_CHECKING:
    from toolfold.memory._database import PostgresMemory

__all__ = ["Memory", "Share"]

Share = Literal["principal", "all"]
"""Whose searches count: everybody's own, or all of them."""

DAY = 86_400.0
TENANTS_AT_MOST = 64
"""How many tenants' memories are open at once; the one not used for the longest time is closed."""

IN_USE = 600.0
"""How long after a search it is looked for what others wrote to a database, in seconds."""

_LOOK_EVERY = 1.0
_TIDY_EVERY = 256
_log = logging.getLogger(__name__)


class Memory:
    """What searches led to. Safe to share between threads; the file, between processes.

    Example:
        memory = Memory(Path("memory.sqlite"))
        memory.learn(Use("open a pull request", tool.name, tool.digest))
        folded = fold(tools, memory=memory)

    Args:
        path: The file, or the database that several processes share; None keeps everything in
            this process.
        share: Whose searches count.
        bound: How many requests are kept; the oldest leave first.
        age_days: For how many days.
        redactor: Takes secrets out of what is kept.
        tell: Told once, at the first write, where it goes; by default the log.
    """

    def __init__(
        self,
        path: Path | PostgresMemory | None = None,
        *,
        share: Share = "all",
        bound: int = 20_000,
        age_days: float = 180,
        redactor: Redactor | None = None,
        tell: Callable[[str], None] = _log.info,
    ) -> None:
        self._tell = tell
        self.share: Share = share
        if isinstance(path, Path):
            path = path.absolute()  # opened later, wherever the program is then
        self._place = path
        self._is_shared = path is not None and not isinstance(path, Path)
        self._bound = bound
        self._age = age_days * DAY
        self._redactor = redactor or Redactor()
        self._lock = threading.RLock()
        self._writing = threading.Lock()
        self._kept: KeptMemory | None = None
        self._view = RecordView(self._lock)
        self._tries = Tries()
        self._looked = 0.0
        self._searched = time.monotonic()
        self._asked = AskedNeeds()
        self._weighs: Weighing | None = None
        self._catalogs: Memo[str, float] = Memo(64)
        self._has_written = False
        self._writes = 0
        self._tenants: OrderedDict[str, Memory] = OrderedDict()
        self._writer = MemoryWriter(self._look_again if self._is_shared else None)

    # ---- as searches see it

    def of(self, principal: str, tenant: str = DEFAULT_TENANT) -> PrincipalMemory:
        """Return the memory as a principal's searches see it."""
        return PrincipalMemory(self.for_tenant(tenant), principal)

    def for_tenant(self, tenant: str) -> Memory:
        """Return what the searches of a tenant led to: a memory of its own."""
        if tenant == DEFAULT_TENANT:
            return self
        with self._lock:
            memory = self._tenants.get(tenant)
            if memory is None:
                memory = self._tenants[tenant] = Memory(
                    None if self._place is None else tenants_place(self._place, tenant),
                    share=self.share,
                    bound=self._bound,
                    age_days=self._age / DAY,
                    redactor=self._redactor,
                    tell=self._tell,
                )
            self._tenants.move_to_end(tenant)
            if len(self._tenants) > TENANTS_AT_MOST:
                _, idle = self._tenants.popitem(last=False)
                threading.Thread(target=idle.close, name="toolfold-memory-end").start()
            return memory

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
        self._tries.guarded(self._look, None)
        with self._lock:
            self._asked.note(principal, need, found, catalog)
            return self._tries.guarded(
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
        self._tries.guarded(self._look, None)
        with self._lock:
            keys = self._view.pairs.beside(principal, (tool.name, tool.digest))
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
            ranked = self._asked.ranked(use.principal, use.request)
        self._later(lambda: self._learn(use, ranked))

    def together(self, principal: str, one: ToolKey, other: ToolKey, at: float = 0.0) -> None:
        """Keep that two tools were used in one task, soon."""
        if one != other:
            self._later(lambda: self._pair(principal, one, other, at or time.time()))

    def flush(self) -> None:
        """Wait until all that was learnt so far is kept, and counts."""
        self._writer.wait()
        self._tries.guarded(self._refresh, None)

    def close(self) -> None:
        """Keep what was learnt, and close the file."""
        with self._lock:
            tenants = list(self._tenants.values())
            self._tenants.clear()
        for memory in tenants:
            memory.close()
        self._writer.close()
        self._tries.end()
        self._view.forget()
        with self._lock:
            if self._kept is not None:
                self._kept.close()
                self._kept = None

    def take_over(self, file: Path) -> None:
        """Have a database keep what a file holds, once, soon; the file stays."""
        self._later(lambda: self._take_over(file))

    def _take_over(self, path: Path) -> None:
        self._refresh()
        place = self._place
        if place is None or isinstance(place, Path) or not path.is_file():
            return
        with closing(MemoryFile(path)) as file:
            if file.problem:
                return
            renew_vectors(file)
            count = place.take_over(file)
        if count:
            self._tell(f"{count} requests of {path} are in {place.place} now; the file stays")
        self._refresh()

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
        self._look()
        with self._lock:
            return self._weighing().weight(principal, catalog)

    @property
    def nbytes(self) -> int:
        """What its arrays take in this process."""
        self._refresh()
        with self._lock:
            index = self._view.index
            return 0 if index is None else index.nbytes

    @property
    def size(self) -> int:
        """How many requests it holds."""
        self._refresh()
        with self._lock:
            index = self._view.index
            return 0 if index is None else index.size

    def records(self) -> Iterator[MemoryRecord]:
        """Yield all that is kept, the oldest first.

        Raises:
            StoreError: The file cannot be read.
        """
        self.flush()
        for request in list(self._store.requests()):
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
        with self._writing:
            self._forget_asked()
            gone = forget_part(self._store, tool, principal, before)
            self._refresh()
        return gone

    def forget_absent(self, catalog: SearchedTools) -> int:
        """Forget for good the tools that a catalog does not have, or has in another form.

        Raises:
            StoreError: The file cannot be written.
        """
        self.flush()
        with self._writing:
            there = {(tool.name, tool.digest) for tool in catalog.tools}
            gone = [id_ for id_, key in self._store.tools().items() if key not in there]
            self._store.forget_tools(ids=gone)
            self._store.scrub()
            self._refresh()
        return len(gone)

    def clear(self) -> int:
        """Forget everything for good, and return how many uses that were.

        Raises:
            StoreError: The file cannot be written.
        """
        self.flush()
        with self._writing:
            self._forget_asked()
            gone = self._store.clear()
            self._refresh()
        return gone

    def _forget_asked(self) -> None:
        with self._lock:
            self._asked.clear()

    # ---- weighing

    def _weighing(self) -> Weighing:
        """Return what weighs with the record as it is now."""
        index = self._view.index
        assert index is not None  # looked at before
        if self._weighs is None or self._weighs.index is not index:
            self._weighs = Weighing(index, lambda requests: self._store.ranked(requests))
        return self._weighs

    def _note_seen(self, catalog: SearchedTools) -> None:
        """Write down, once a day for each catalog, that its tools are there."""
        now = time.time()
        if now - (self._catalogs.get(catalog.fingerprint) or 0.0) > DAY:
            self._catalogs.put(catalog.fingerprint, now)
            keys = [(tool.name, tool.digest) for tool in catalog.tools]
            self._later(lambda: self._store.seen(keys, now))

    # ---- keeping

    @property
    def _store(self) -> KeptMemory:
        with self._lock:
            kept, place = self._kept, self._place
            if kept is not None:
                return kept
            if place is None or isinstance(place, Path):
                kept = self._kept = MemoryFile(place)
            else:
                kept = self._kept = place
            return kept

    def _look(self) -> None:
        """Take in what was written since the last look, by whomever, unless that was just now.

        Nobody waits for a database: there, whoever writes looks, too.
        """
        self._searched = time.monotonic()
        if self._view.index is not None and self._searched < self._looked + _LOOK_EVERY:
            return
        if not self._is_shared:
            self._refresh()
            return
        self._view.begin()
        self._looked = self._searched
        self._later(self._refresh, keeps=False)

    def _look_again(self) -> None:
        """Take in what others wrote to a database, as long as anybody searches."""
        if time.monotonic() < self._searched + IN_USE or self._tries.has_postponed:
            self._tries.attempt(self._refresh, keeps=False)

    def _refresh(self) -> None:
        """Take in what was written since the last look, by whomever."""
        self._looked = time.monotonic()
        if self._kept is None and isinstance(self._place, Path) and not self._place.exists():
            self._view.begin()  # nobody has learnt anything yet: no file is made for a look
        else:
            self._view.refresh(self._store)

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
        text = one_line(self._redactor.redact(request[:READ_AT_MOST]), TEXT_LIMIT)
        principal = principal[:NAME_LIMIT]
        vector = embedded(text)
        if not vector.any():
            return  # no word of it is known: nothing will ever be near to it
        with self._writing:
            self._refresh()
            same = self._view.same(principal, vector, use[0])
            known = None if same is None else self._store.text(same)
            if known is not None and known != text:
                text, vector, ranked = known, embedded(known), None
            self._store.put(principal, text, packed(vector), ranked, (use,), at)
            self._say_first()
            self._writes += 1
            if self._writes % _TIDY_EVERY == 1:
                tidy(self._store, age=self._age, bound=self._bound)
            self._refresh()

    def _pair(self, principal: str, one: ToolKey, other: ToolKey, at: float) -> None:
        with self._writing:
            self._store.pair(principal[:NAME_LIMIT], one, other, 1, at)

    def _say_first(self) -> None:
        if not self._has_written and self._store.is_lasting:
            self._has_written = True
            self._tell(
                f"what searches lead to is remembered in {self._store.place}; "
                "`memory.enabled: off` turns that off"
            )

    # ---- beside the caller

    def _later(self, job: Callable[[], None], *, keeps: bool = True) -> None:
        if not self._writer.put(lambda: self._tries.attempt(job, keeps=keeps)):
            self._tries.say("more is learnt than can be written: some of it is lost")
