"""What `resolve` returns, held to be the one or the other."""

from __future__ import annotations

from toolfold import Answer, Invocation


def answered(outcome: Answer | Invocation) -> Answer:
    """The answer that a call came to."""
    assert isinstance(outcome, Answer)
    return outcome


def invoked(outcome: Answer | Invocation) -> Invocation:
    """The invocation that a call came to."""
    assert isinstance(outcome, Invocation)
    return outcome
