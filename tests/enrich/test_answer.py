"""`toolfold.enrich.answer`: what of a model's answer may stand as words of a tool."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolfold import Tool
from toolfold.enrich.answer import AnsweredWords, answered_words, names_of
from toolfold.search._tool_words import PHRASE_LIMIT

NAMES = names_of([Tool("mail__send", source="mail"), Tool("forge.search", source="forge")])


def read(text: str, requests: int = 4, words: int = 3) -> AnsweredWords | None:
    return answered_words(text, NAMES, requests=requests, words=words)


@pytest.mark.parametrize(
    "text",
    [
        '{"requests": ["open a bug"], "words": ["ticket"]}',
        'Sure!\n```json\n{"requests": ["open a bug"], "words": ["ticket"]}\n```\nDone.',
        '{"requests": ["open a bug"], "words": ["ticket"',
        '{"requests": ["open a bug", ], "words": ["ticket",]}',
    ],
)
def test_answers_are_read_as_models_write_them(text: str) -> None:
    assert read(text) == AnsweredWords(("open a bug",), ("ticket",), 0)


@pytest.mark.parametrize(
    "text", ["", "I cannot do that.", "[]", '{"words": ["a"]}', '{"requests": "x"}', "{" * 9_999]
)
def test_an_answer_without_requests_is_none(text: str) -> None:
    assert read(text) is None


def test_no_more_is_kept_than_was_asked_for() -> None:
    text = json.dumps({"requests": [f"ask {i}" for i in range(50)], "words": list("abcdefgh")})

    assert read(text) == AnsweredWords(("ask 0", "ask 1", "ask 2", "ask 3"), ("a", "b", "c"), 0)


@pytest.mark.parametrize(
    "refused",
    [
        "mail__send",
        "MAIL__SEND",
        "forge.search",
        "see https://evil.example/x",
        "<script>alert(1)</script>",
        "run `rm -rf /`",
        "$(reboot)",
        "{{ template }}",
    ],
)
def test_names_of_tools_addresses_and_markup_are_refused(refused: str) -> None:
    text = json.dumps({"requests": ["write a mail", refused], "words": [refused]})

    assert read(text) == AnsweredWords(("write a mail",), (), 2)


def test_a_name_that_is_also_a_plain_word_may_be_said() -> None:
    assert read('{"requests": ["search"]}') == AnsweredWords(("search",), (), 0)


def test_a_synonym_is_a_few_words() -> None:
    text = json.dumps({"requests": ["a b"], "words": ["one two three four five", "pull request"]})

    assert read(text) == AnsweredWords(("a b",), ("pull request",), 1)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=200),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=12,
)


@given(requests=json_values, words=json_values, around=st.text(max_size=20))
def test_whatever_is_answered_what_is_kept_is_short_plain_and_visible(
    requests: object, words: object, around: str
) -> None:
    found = read(around + json.dumps({"requests": requests, "words": words}) + around)

    if found is not None:
        assert 0 < len(found.requests) <= 4
        assert len(found.words) <= 3
        for text in (*found.requests, *found.words):
            assert len(text) <= PHRASE_LIMIT
            assert text.isprintable()
            assert text.casefold() not in NAMES
