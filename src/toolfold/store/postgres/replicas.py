"""The replicas of one deployment: who is there, and what they tell and ask each other.

A replica says every second that it is there; one that has not said so for a while is gone. What
one tells another is a row, read by nobody else and deleted as it is read, with an announcement
so that it is read at once. A question is told, and its answer is told back. Nothing is told
twice, and nothing that is told to a replica that is gone is heard by anybody.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, NamedTuple, Self

from toolfold._json_values import compact_bytes, parse
from toolfold.errors import ToolfoldError
from toolfold.store.postgres.database import Database
from toolfold.store.store import StoreAwayError
from toolfold.tool import Json, is_object

__all__ = ["CHANNEL", "HEARTBEAT", "SILENCE", "Handler", "Replica", "ReplicaGoneError", "Replicas"]

_log = logging.getLogger(__name__)

CHANNEL = "toolfold_mail"
"""Where mail is announced; the payload is the receiver."""

HEARTBEAT = 1.0
"""How often a replica says that it is there, in seconds."""

SILENCE = 5.0
"""How long a replica is silent before it counts as gone, in seconds."""

Handler = Callable[[Json], Awaitable[Json]]
"""Answers a question of another replica. What it raises is told as the answer."""

_ANSWER = "answer"
_NOTHING = 0
"""What is told answers nothing and wants no answer; no mail has this number."""
_KEPT = 60.0


class ReplicaGoneError(ToolfoldError):
    """A replica that was asked something is gone, or what it was asked failed there."""

    is_unheard = False
    """Whether it has certainly not heard what it was asked."""


class Replica(NamedTuple):
    """A replica that is there."""

    id: uuid.UUID
    name: str


class Replicas:
    """This replica among the others. Open it with `async with`; it belongs to one event loop.

    Whoever listens to the database's news calls `mail_has_come` for `CHANNEL`.

    Args:
        database: Where they meet.
        name: What people call this one.
    """

    def __init__(self, database: Database, name: str) -> None:
        self.id = uuid.uuid4()
        self.name = name
        self._database = database
        self._handlers: dict[str, Handler] = {}
        self._questions: dict[int, asyncio.Future[Json]] = {}
        self._asking = 0
        self._early: dict[int, Json] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._mail = asyncio.Event()
        self._last_beat = 0.0

    @property
    def is_heard(self) -> bool:
        """Whether the others know by now that this one is there."""
        loop = self._loop
        return loop is not None and loop.time() - self._last_beat < SILENCE

    def on(self, verb: str, handler: Handler) -> None:
        """Answer a kind of question."""
        self._handlers[verb] = handler

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        await asyncio.to_thread(self._beat)
        self._last_beat = self._loop.time()
        self._start(self._beating())
        self._start(self._reading())
        return self

    async def __aexit__(self, *_: object) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        with suppress(StoreAwayError):
            await asyncio.to_thread(self._leave)

    def mail_has_come(self, receiver: str | None) -> None:
        """Read the mail, soon; safe to call from any thread."""
        if self._loop is not None and receiver in (None, str(self.id)):
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._mail.set)

    async def is_there(self, replica: uuid.UUID) -> bool:
        """Whether a replica is there, as far as anybody knows.

        Raises:
            StoreAwayError: The database is away.
        """
        return any(each.id == replica for each in await self.others())

    async def others(self) -> list[Replica]:
        """Return the other replicas that are there.

        Raises:
            StoreAwayError: The database is away.
        """
        return [each for each in await asyncio.to_thread(self._present) if each.id != self.id]

    async def tell(self, receiver: uuid.UUID, verb: str, content: Json) -> None:
        """Tell another replica something, and wait for nothing.

        Raises:
            StoreAwayError: The database is away.
        """
        await asyncio.to_thread(self._post, receiver, verb, content, _NOTHING)

    async def ask(self, receiver: uuid.UUID, verb: str, content: Json) -> Json:
        """Ask another replica something, and return what it answers, as long as it is there.

        Args:
            receiver: Whom.
            verb: The kind of question.
            content: What is asked, as JSON.

        Raises:
            ReplicaGoneError: It is gone, or could not answer.
            StoreAwayError: The database is away, so that nothing was asked.
        """
        self._asking += 1
        try:
            number = await asyncio.to_thread(self._post, receiver, verb, content, None)
            future = self._questions[number] = asyncio.get_running_loop().create_future()
            if number in self._early:
                future.set_result(self._early.pop(number))
        finally:
            self._asking -= 1
            if not self._asking:
                self._early.clear()
        try:
            while True:
                done, _ = await asyncio.wait({future}, timeout=HEARTBEAT)
                if done:
                    return _said(future.result())
                await self._check(receiver, number)
        finally:
            self._questions.pop(number, None)

    # ---- at the loop

    def _start(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _check(self, receiver: uuid.UUID, number: int) -> None:
        with suppress(StoreAwayError):  # nobody can tell: it may well answer when that is back
            present = await asyncio.to_thread(self._present)
            if all(each.id != receiver for each in present):
                gone = ReplicaGoneError("the replica that was asked is gone")
                gone.is_unheard = await asyncio.to_thread(self._take_back, number)
                raise gone

    async def _beating(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(HEARTBEAT)
            began = loop.time()
            with suppress(StoreAwayError):
                await asyncio.to_thread(self._beat)
                self._last_beat = began

    async def _reading(self) -> None:
        while True:
            # Looked for now and then without an announcement, too: one may have been missed.
            with suppress(TimeoutError):
                async with asyncio.timeout(HEARTBEAT):
                    await self._mail.wait()
            self._mail.clear()
            with suppress(StoreAwayError):
                for number, sender, verb, answers, content in await asyncio.to_thread(self._fetch):
                    self._heard(number, sender, verb, answers, content)

    def _heard(
        self, number: int, sender: uuid.UUID, verb: str, answers: int | None, content: bytes
    ) -> None:
        told = parse(content)
        if verb == _ANSWER and answers is not None:
            future = self._questions.get(answers)
            if future is None:
                # It came before the asker knew the number, or whoever asked has given up.
                if self._asking:
                    self._early[answers] = told
                while len(self._early) > 1_000:
                    del self._early[next(iter(self._early))]
            elif not future.done():
                future.set_result(told)
            return
        self._start(self._answer(None if answers == _NOTHING else number, sender, verb, told))

    async def _answer(self, number: int | None, sender: uuid.UUID, verb: str, told: Json) -> None:
        handler = self._handlers.get(verb)
        try:
            if handler is None:
                raise ReplicaGoneError(f"this replica knows no {verb!r}")
            answer: dict[str, Json] = {"answer": await handler(told)}
        except ToolfoldError as error:
            answer = {"error": error.message}
        except Exception as error:
            _log.exception("a question of another replica failed")
            answer = {"error": f"it failed there: {type(error).__name__}"}
        if number is None:
            if "error" in answer:
                _log.warning("what another replica told is not taken up: %s", answer["error"])
            return
        # Whoever asked waits for it: where the database is away for a moment, it is told after.
        deadline = asyncio.get_running_loop().time() + _KEPT
        while True:
            try:
                await asyncio.to_thread(self._post, sender, _ANSWER, answer, number)
                return
            except StoreAwayError as error:
                if asyncio.get_running_loop().time() > deadline:
                    _log.warning("an answer for another replica is lost: %s", error)
                    return
                await asyncio.sleep(HEARTBEAT)
            except ToolfoldError as error:
                answer = {"error": f"the answer {error.message}"}

    # ---- at the database

    def _beat(self) -> None:
        with self._database.transaction() as connection:
            connection.execute(
                "insert into toolfold.replicas (tenant, id, name) values (%s, %s, %s)"
                " on conflict (tenant, id) do update set seen = clock_timestamp()",
                (self._database.tenant, self.id, self.name),
            )
            connection.execute(
                "delete from toolfold.replicas where tenant = %s"
                " and seen < clock_timestamp() - make_interval(secs => %s)",
                (self._database.tenant, _KEPT),
            )
            connection.execute(
                "delete from toolfold.mail where tenant = %s"
                " and sent < clock_timestamp() - make_interval(secs => %s)",
                (self._database.tenant, 10 * _KEPT),
            )

    def _leave(self) -> None:
        with self._database.transaction() as connection:
            connection.execute(
                "delete from toolfold.replicas where tenant = %s and id = %s",
                (self._database.tenant, self.id),
            )

    def _present(self) -> list[Replica]:
        with self._database.transaction(reads_only=True) as connection:
            rows = connection.execute(
                "select id, name from toolfold.replicas where tenant = %s"
                " and seen >= clock_timestamp() - make_interval(secs => %s) order by id",
                (self._database.tenant, SILENCE),
            ).fetchall()
        return [Replica(*row) for row in rows]

    def _post(self, receiver: uuid.UUID, verb: str, content: Json, answers: int | None) -> int:
        with self._database.transaction() as connection:
            row = connection.execute(
                "insert into toolfold.mail (tenant, sender, receiver, verb, answers, content)"
                " values (%s, %s, %s, %s, %s, %s) returning id",
                (
                    self._database.tenant,
                    self.id,
                    receiver,
                    verb,
                    answers,
                    compact_bytes(content),
                ),
            ).fetchone()
            connection.execute("select pg_notify(%s, %s)", (CHANNEL, str(receiver)))
        assert row is not None
        return int(row[0])

    def _take_back(self, number: int) -> bool:
        """Take back what nobody has read, and say whether that was so."""
        with self._database.transaction() as connection:
            found = connection.execute(
                "delete from toolfold.mail where tenant = %s and id = %s returning id",
                (self._database.tenant, number),
            ).fetchone()
        return found is not None

    def _fetch(self) -> list[tuple[int, uuid.UUID, str, int | None, bytes]]:
        with self._database.transaction() as connection:
            return sorted(
                connection.execute(
                    "delete from toolfold.mail where tenant = %s and receiver = %s"
                    " returning id, sender, verb, answers, content",
                    (self._database.tenant, self.id),
                ).fetchall()
            )


def _said(told: Json) -> Json:
    if is_object(told) and "answer" in told:
        return told["answer"]
    reason = told.get("error") if is_object(told) else None
    raise ReplicaGoneError(str(reason or "another replica could not answer"))
