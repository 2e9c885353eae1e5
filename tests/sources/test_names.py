"""`toolfold.sources.mcp._exposed_names`: the names under which servers' tools are served."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolfold.sources.mcp._exposed_names import exposed_name, exposed_names

ALLOWED = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
words = st.text(alphabet="ab_-. é/", min_size=1, max_size=50)
pairs = st.lists(st.tuples(words, words), max_size=20, unique=True)


@pytest.mark.parametrize(
    ("server", "tool", "name"),
    [
        ("github", "create_issue", "github__create_issue"),
        ("my-fs", "read-file", "my-fs__read-file"),
        ("a", "_private", "a___private"),
        ("a", "b__c", "a__b__c"),
    ],
)
def test_what_fits_keeps_its_letters(server: str, tool: str, name: str) -> None:
    assert exposed_name(server, tool) == name


@pytest.mark.parametrize(
    ("server", "tool", "name"),
    [
        ("a__b", "c", "a_b__c_c3951aa1"),
        ("github.com", "get", "github_com__get_7ce16f35"),
        ("fs", "lies nach/größe", "fs__lies_nach_gr__e_3a2c2b81"),
    ],
)
def test_what_does_not_fit_ends_in_its_digest(server: str, tool: str, name: str) -> None:
    found = exposed_name(server, tool)

    assert found[:-8] == name[:-8]
    assert re.fullmatch("[0-9a-f]{8}", found[-8:])


def test_a_long_name_is_cut_and_stays_its_own() -> None:
    one = exposed_name("server", "x" * 100)
    other = exposed_name("server", "x" * 101)

    assert len(one) == len(other) == 64
    assert one != other


@given(pairs)
def test_every_name_is_allowed_and_leads_back(found: list[tuple[str, str]]) -> None:
    names = exposed_names(found)

    assert sorted(names.values()) == sorted(found)
    assert all(ALLOWED.match(name) for name in names)


@given(pairs, st.randoms(use_true_random=False))
def test_the_order_of_arrival_makes_no_difference(
    found: list[tuple[str, str]], random: object
) -> None:
    shuffled = list(found)
    random.shuffle(shuffled)  # type: ignore[attr-defined]

    assert exposed_names(shuffled) == exposed_names(found)


def test_no_server_can_spell_out_the_name_of_another_ones_tool() -> None:
    digested = exposed_name("a b", "c")
    server, _, tool = digested.partition("__")

    assert exposed_name(server, tool) != digested
