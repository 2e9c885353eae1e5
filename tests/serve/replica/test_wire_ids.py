"""Ids on the wire that say which replica they are of."""

from __future__ import annotations

import uuid

from hypothesis import given
from hypothesis import strategies as st

from toolfold.serve.replica.wire_ids import (
    EventPlace,
    event_place,
    first_request_id,
    is_asked_by,
)

replicas = st.uuids()


@given(replica=replicas, asked=st.integers(0, 1 << 20))
def test_a_question_is_known_by_its_number_and_every_client_counts_so_far(
    replica: uuid.UUID, asked: int
) -> None:
    number = first_request_id(replica) + asked

    assert number < 1 << 53  # exact in JavaScript
    assert is_asked_by(number, replica)
    assert is_asked_by(str(number), replica)  # some clients give ids back as texts


@given(one=replicas, other=replicas)
def test_replicas_tell_their_questions_apart(one: uuid.UUID, other: uuid.UUID) -> None:
    is_same = one.int & 0x7FFFFFFF == other.int & 0x7FFFFFFF
    assert is_asked_by(first_request_id(one), other) is is_same


@given(
    number=st.none()
    | st.booleans()
    | st.floats()
    | st.text()
    | st.lists(st.integers())
    | st.integers(max_value=0)
)
def test_what_is_no_number_of_ours_is_nobodys(number: object) -> None:
    assert not is_asked_by(number, uuid.UUID(int=(1 << 128) - 1))


@given(replica=replicas, number=st.integers(0, 10**15), stream=st.text(max_size=60))
def test_an_event_is_found_again_by_its_id(replica: uuid.UUID, number: int, stream: str) -> None:
    event = EventPlace(replica, number, stream).id
    found = event_place(event)

    assert event.isascii() and not any(char in event for char in "\r\n\0 ")
    assert found is not None
    assert (found.replica, found.number) == (replica, number)
    is_short = len(stream.encode("utf-8", "replace")) <= 66
    if is_short and stream.encode("utf-8", "replace").decode() == stream:
        assert found.stream == stream


def test_a_stream_with_a_long_name_is_still_found_by_its_event() -> None:
    event = EventPlace(uuid.UUID(int=1), 7, "x" * 10_000).id

    assert len(event) < 300
    assert event_place(event) == EventPlace(uuid.UUID(int=1), 7, "")


@given(event=st.text())
def test_what_is_no_event_of_ours_is_none(event: str) -> None:
    place = event_place(event)
    assert place is None or len(event) > 32


def test_ids_of_a_gateway_alone_are_none_of_several() -> None:
    assert event_place("12") is None
    assert event_place("") is None
    assert event_place(f"{'0' * 32}.{'9' * 30}.5") is None
