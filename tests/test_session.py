"""`Session`: what steps of a conversation that run side by side leave of each other."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from toolfold import Session

NAMES = st.lists(st.sampled_from("abcdefgh"), max_size=3)
STEPS = st.lists(st.one_of(st.none(), NAMES), max_size=6)
"""Searches: what each found; None where it found nothing."""


def step(session: Session, found: list[str] | None) -> Session:
    return session.searched_in_vain() if found is None else session.reveal(found)


@given(STEPS)
def test_steps_one_after_the_other_join_to_what_they_came_to(steps: list[list[str] | None]) -> None:
    session = Session()
    for found in steps:
        after = step(session, found)
        assert session.joined(session, after) == after
        session = after


@given(NAMES, STEPS)
def test_of_steps_side_by_side_every_find_stays_in_the_order_in_which_they_end(
    known: list[str], steps: list[list[str] | None]
) -> None:
    began = Session().reveal(known)
    session = began
    for found in steps:
        session = session.joined(began, step(began, found))

    expected = dict.fromkeys([*known, *(name for found in steps for name in found or ())])
    assert session.revealed == tuple(expected)
    assert session.fruitless >= 0
