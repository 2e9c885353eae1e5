"""Requests read word by word: what a tool's name says, and what speaks against a tool."""

import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from toolfold import Tool
from toolfold.demo import demo_catalog
from toolfold.search._dense import table
from toolfold.search._each_word import EachWord, WordVectors
from toolfold.search.hybrid import Hybrid

TOOLS = list(demo_catalog())
REQUESTS = ("refund a customer", "list open pull requests", "what is on my calendar", "zzqx vvkk")


def scores(tools: list[Tool], query: str) -> dict[str, float]:
    found = Hybrid().searcher(tools).search(query, 10)
    return {tools[match.position].name: match.score for match in found}


def test_a_second_search_finds_what_the_first_did() -> None:
    searcher = Hybrid().searcher(TOOLS)
    cold = [searcher.search(query, 10) for query in REQUESTS]

    assert [searcher.search(query, 10) for query in REQUESTS] == cold


def test_what_was_searched_before_does_not_show() -> None:
    searcher = Hybrid().searcher(TOOLS)
    for query in REQUESTS:
        searcher.search(query, 10)

    assert searcher.search("send an invoice", 10) == Hybrid().searcher(TOOLS).search(
        "send an invoice", 10
    )


def test_a_search_that_another_thread_overtakes_at_the_start_gets_the_same_evidence() -> None:
    places, query = np.arange(2), table().query("send mail")
    tools = np.stack([query, query])

    class Overtaken:
        """Lets another search pass while the first one sets up."""

        def __init__(self) -> None:
            self.passing = EachWord(self, ["send_mail", "read_mail"])
            self.is_passed = False

        def words(self, text: str) -> WordVectors:
            return table().words(text)

        def names(self, names: Sequence[str]) -> NDArray[np.float32]:
            if not names and not self.is_passed:
                self.is_passed = True
                self.passing.evidence("send mail", query, tools, places)
            return table().names(names)

    overtaken = Overtaken()
    found = overtaken.passing.evidence("send mail", query, tools, places)

    assert overtaken.is_passed
    assert found.name_cosine.tolist() == pytest.approx(
        table().names(["send_mail", "read_mail"]) @ query
    )


def test_of_siblings_the_one_is_first_whose_name_is_meant() -> None:
    tools = [
        Tool("branch_switch", "Move to a branch of the repository; may create the branch first."),
        Tool("branch_create", "Start a new branch of the repository at a commit."),
        Tool("branch_delete", "Delete a branch of the repository."),
    ]

    assert next(iter(scores(tools, "create git branch"))) == "branch_create"


def test_names_without_a_known_word_are_no_hindrance() -> None:
    tools = [
        Tool("送信", "Send an e-mail to somebody."),
        Tool("--", "Delete a file."),
        Tool("x", "x"),
    ]

    assert next(iter(scores(tools, "send an email"))) == "送信"


@given(st.lists(st.text(max_size=30), max_size=8))
def test_the_vectors_of_names_do_not_depend_on_each_other(names: list[str]) -> None:
    together = table().names(names)

    assert together.shape == (len(names), table().dimensions)
    for name, vector in zip(names, together, strict=True):
        assert abs(table().names([name])[0] - vector).max(initial=0) < 1e-5


def test_the_order_of_the_tools_does_not_show() -> None:
    mixed = random.Random(3).sample(TOOLS, len(TOOLS))

    for query in REQUESTS:
        one, other = scores(TOOLS, query), scores(mixed, query)
        assert one.keys() == other.keys()
        assert all(abs(one[name] - other[name]) < 1e-4 for name in one)
