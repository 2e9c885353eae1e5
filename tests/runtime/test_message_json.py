"""`toolfold.runtime.message_json`: messages written as JSON, and read again."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolfold.runtime import Call, ModelMessage, ResultMessage, UserMessage
from toolfold.runtime.message_json import message_from_json, message_to_json
from toolfold.runtime.messages import Message

texts = st.text(max_size=20)
blocks = st.dictionaries(texts, texts | st.integers() | st.none(), max_size=3)
calls = st.builds(Call, texts, texts, texts, st.booleans())
messages: st.SearchStrategy[Message] = st.one_of(
    st.builds(UserMessage, texts, texts),
    st.builds(
        ModelMessage,
        texts,
        st.lists(calls, max_size=3).map(tuple),
        st.lists(blocks, max_size=2).map(tuple),
        texts,
    ),
    st.builds(
        ResultMessage,
        texts,
        texts,
        texts,
        st.booleans(),
        st.none() | st.lists(texts, max_size=3).map(tuple),
        texts,
    ),
)


@given(messages)
def test_a_message_that_was_written_and_read_is_the_same(message: Message) -> None:
    assert message_from_json(json.loads(json.dumps(message_to_json(message)))) == message


def test_what_is_empty_is_left_out_but_for_role_and_text() -> None:
    written = [
        message_to_json(message)
        for message in (
            UserMessage(""),
            ModelMessage("", (Call("look"),)),
            ResultMessage("seen", "a", "look"),
            ResultMessage("", found=()),
        )
    ]

    assert written == [
        {"role": "user", "text": ""},
        {"role": "model", "text": "", "calls": [{"name": "look", "arguments": "{}"}]},
        {"role": "result", "name": "look", "call_id": "a", "text": "seen"},
        {"role": "result", "text": "", "found": []},
    ]


NO_MESSAGES: list[tuple[Any, str]] = [
    (3, "a message is 3"),
    ({}, "a message has the role None"),
    ({"role": "system"}, "a message has the role 'system'"),
    ({"role": "user", "text": 3}, "`text` of a message is 3"),
    ({"role": "model", "calls": {}}, "`calls` of a message is {}"),
    ({"role": "model", "calls": ["look"]}, "a call is 'look'"),
    ({"role": "model", "calls": [{}]}, "a call is {}"),
    ({"role": "result", "is_error": "no"}, "`is_error` of a message is 'no'"),
    ({"role": "result", "found": "x"}, "`found` of a message is 'x'"),
]


@pytest.mark.parametrize(("value", "error"), NO_MESSAGES)
def test_what_is_no_message_is_refused_with_what_is_wrong(value: Any, error: str) -> None:
    with pytest.raises(ValueError) as caught:
        message_from_json(value)

    assert str(caught.value) == error
