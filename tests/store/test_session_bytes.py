"""`toolfold.store.session_bytes`: a session as bytes, and back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from toolfold import Session
from toolfold.session import SentArray
from toolfold.store.session_bytes import dump_session, load_session

names = st.lists(st.text(), max_size=3).map(tuple)
pairs = st.lists(st.tuples(st.text(), st.text()), max_size=3).map(tuple)
sent = st.builds(
    SentArray, st.text(), st.text(), st.text(), pairs, st.frozensets(st.text()), st.text()
)
sessions = st.builds(
    Session,
    revealed=names,
    fruitless=st.integers(0, 9),
    sent=st.none() | sent,
    defined=pairs,
    bridged=st.booleans(),
    breaks=st.integers(0, 9),
    refused=names,
)


@given(sessions)
def test_a_session_comes_back_as_it_was(session: Session) -> None:
    assert load_session(dump_session(session)) == session


@given(st.binary() | st.sampled_from([b"[1]", b"[1,{}]", b"[2,{}]", b"{}", b"[1,[]]", b"[1,null]"]))
def test_what_cannot_be_read_is_no_session(kept: bytes) -> None:
    assert load_session(kept) is None
    assert load_session(None) is None
