"""The events of a session at one replica, asked for by another."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

from mcp.server.streamable_http import GET_STREAM_KEY, EventMessage
from mcp_types import (
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)

from support.running import wait
from toolfold.serve.http.events import EVENTS_AT_MOST, EventRoom
from toolfold.serve.replica.replica_events import ReplicaEvents
from toolfold.serve.replica.wire_ids import EventPlace, event_place

HERE, THERE = uuid.UUID(int=1), uuid.UUID(int=2)
LOG = JSONRPCNotification(jsonrpc="2.0", method="notifications/message", params={"data": 1})
CHANGED = JSONRPCNotification(jsonrpc="2.0", method="notifications/tools/list_changed")
QUESTION = JSONRPCRequest(jsonrpc="2.0", id=9, method="roots/list")
DONE = JSONRPCResponse(jsonrpc="2.0", id=5, result={})


class Others:
    """The other replicas, as far as events go."""

    def __init__(self) -> None:
        self.passed: list[JSONRPCMessage] = []
        self.asked: list[EventPlace] = []

    async def replayed(self, events: ReplicaEvents, place: EventPlace, send: Any) -> None:
        self.asked.append(place)
        await send(EventMessage(DONE))

    def pass_on(self, events: ReplicaEvents, message: JSONRPCMessage) -> None:
        self.passed.append(message)


def test_what_follows_an_event_of_another_replica_is_asked_for_there() -> None:
    async def main() -> None:
        others, sent = Others(), []
        events = ReplicaEvents(EventRoom(), HERE, others)
        first = await events.store_event("5", None)
        await events.store_event("6", LOG)
        await events.store_event("5", DONE)

        async def send(event: EventMessage) -> None:
            sent.append(event.message)

        assert await events.replay_events_after(first, send) == "5"
        assert (sent, others.asked) == ([DONE], [])
        place = EventPlace(THERE, 1, "5")
        assert await events.replay_events_after(place.id, send) is None
        assert (sent, others.asked) == ([DONE, DONE], [place])
        assert await events.replay_events_after("1", send) is None
        assert sent == [DONE, DONE]

    wait(main())


def test_whoever_asks_for_more_of_a_stream_gets_it_as_it_comes() -> None:
    async def main() -> None:
        events = ReplicaEvents(EventRoom(), HERE, Others())
        first = event_place(await events.store_event("5", None))
        assert first is not None
        nothing = await events.followed(first.number, 0)
        assert nothing is not None
        assert (nothing.events, nothing.last, nothing.is_over) == ([], first.number, False)

        waiting = asyncio.create_task(events.followed(first.number, 5))
        await asyncio.sleep(0)
        await events.store_event("6", DONE)
        await events.store_event("5", LOG)
        found = await waiting
        assert found is not None and [e.message for e in found.events] == [LOG]
        assert not found.is_over
        await events.store_event("5", DONE)
        rest = await events.followed(found.last, 5)
        assert rest is not None and [e.message for e in rest.events] == [DONE]
        assert rest.is_over

        for _ in range(EVENTS_AT_MOST):
            await events.store_event("7", LOG)
        assert await events.followed(first.number, 5) is None

    wait(main())


def test_what_only_this_replica_knows_is_passed_on_to_where_the_client_listens() -> None:
    async def main() -> None:
        others = Others()
        events = ReplicaEvents(EventRoom(), HERE, others)
        for message in (LOG, CHANGED, QUESTION):
            await events.store_event(GET_STREAM_KEY, message)
            await events.store_event("5", message)
        assert others.passed == [LOG, QUESTION]
        events.listens = lambda: True
        await events.store_event(GET_STREAM_KEY, LOG)
        assert others.passed == [LOG, QUESTION]

    wait(main())
