"""A turn as a reader wants it: what was said, the real calls, the bridge's between them."""

from __future__ import annotations

from toolfold.evaluation.ab.turn_reading import ReadCall, ReadText, found_in, steps_of
from toolfold.runtime.messages import Call, Message, ModelMessage, ResultMessage, UserMessage

SEARCH = Call("tool_search", '{"query": "send mail | read mail"}')
SENT = Call("tool_call", '{"name": "mail__send", "arguments": {"to": "Sam"}}')
TURN: list[Message] = [
    UserMessage("Write to Sam.", note="mail__send(to: string)"),
    ModelMessage(" ", (SEARCH,)),
    ResultMessage("- mail__send(to: string)", found=("mail__send", "mail__read", "mail__send")),
    ModelMessage("I will.", (SENT, Call("mail__read"))),
    ResultMessage("no such person", is_error=True),
]


def test_steps_come_in_the_order_in_which_they_were_taken() -> None:
    steps = list(steps_of(TURN))

    texts = [(step.by, step.text) for step in steps if isinstance(step, ReadText)]
    assert texts == [
        ("user", "Write to Sam."),
        ("note", "mail__send(to: string)"),
        ("model", "I will."),
    ]
    assert [isinstance(step, ReadCall) for step in steps] == [False, False, True, False, True, True]


def test_a_call_by_way_of_the_bridge_is_the_real_tools() -> None:
    search, sent, read = (step for step in steps_of(TURN) if isinstance(step, ReadCall))

    assert (search.real, search.name, search.needs) == (
        None,
        "tool_search",
        ("send mail", "read mail"),
    )
    assert (sent.real, sent.via) == (("mail__send", {"to": "Sam"}), "tool_call")
    assert (sent.is_error, sent.result) == (True, "no such person")
    assert (read.name, read.via, read.result, read.found, read.tokens) == (
        "mail__read",
        None,
        None,
        None,
        0,
    )


def test_what_was_found_is_named_once() -> None:
    assert found_in(TURN) == ["mail__send", "mail__read"]
