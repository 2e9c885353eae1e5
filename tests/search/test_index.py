"""The index of a list of tools: shared by equal rankers, never by different ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolfold import Settings, Tool, fold
from toolfold.search import Match, Ranker, Searcher

TOOLS = [Tool(f"tool_{i}", f"Does thing {i}.") for i in range(6)]


class Fixed:
    """Finds one place, whatever is asked."""

    def __init__(self, place: int) -> None:
        self._place = place

    def search(self, query: str, limit: int) -> Sequence[Match]:
        return [Match(self._place, 1.0)]

    def explain(self, query: str, position: int) -> str:
        return "always"


@dataclass
class Mutable:
    """A ranker that cannot be hashed: it has a list, and says what it equals."""

    place: int
    built: list[int] = field(default_factory=list)
    name: str = "mutable"
    calibrated: bool = False

    def searcher(self, tools: Sequence[Tool]) -> Searcher:
        self.built.append(len(tools))
        return Fixed(self.place)


@dataclass(frozen=True)
class Frozen:
    place: int
    name: str = "frozen"
    calibrated: bool = False

    def searcher(self, tools: Sequence[Tool]) -> Searcher:
        BUILT.append(self.place)
        return Fixed(self.place)


class Lookalike(Frozen):
    """Equal to a `Frozen` by its own account, and ranks in another way."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Frozen) and other.place == self.place

    def __hash__(self) -> int:
        return hash((self.place, self.name, self.calibrated))

    def searcher(self, tools: Sequence[Tool]) -> Searcher:
        return Fixed(len(tools) - 1)


BUILT: list[int] = []


def found(ranker: Ranker, tools: Sequence[Any] = TOOLS) -> list[str]:
    folded = fold(tools, settings=Settings(enabled="on"), ranker=ranker)
    answer = folded.resolve("tool_search", {"query": "anything"})
    return [hit.name for hit in answer.hits]  # type: ignore[union-attr]


def test_a_ranker_need_not_be_hashable_and_its_index_is_built_once() -> None:
    ranker = Mutable(2)
    with pytest.raises(TypeError):
        hash(ranker)

    assert [found(ranker), found(ranker)] == [["tool_2"], ["tool_2"]]
    assert ranker.built == [6]


def test_rankers_that_cannot_be_hashed_share_nothing_though_they_are_equal() -> None:
    one, other = Mutable(1), Mutable(1)
    assert one == other

    found(one)
    found(other)

    assert (one.built, other.built) == ([6], [6])


@given(st.lists(st.integers(0, 5), min_size=2, max_size=40))
def test_short_lived_rankers_never_answer_for_each_other(places: list[int]) -> None:
    # Each is gone when the next is made, and may be given its address.
    assert [found(Mutable(place)) for place in places] == [[f"tool_{place}"] for place in places]


def test_equal_rankers_share_an_index_and_those_of_another_class_do_not() -> None:
    BUILT.clear()

    assert found(Frozen(3)) == found(Frozen(3)) == ["tool_3"]
    assert BUILT == [3]
    assert found(Lookalike(3)) == ["tool_5"]
    assert found(Frozen(3)) == ["tool_3"]


def test_what_is_found_is_the_tool_of_the_list_that_was_searched() -> None:
    ranker = Frozen(0)
    first = [Tool("a", "A."), Tool("b", "B.")]

    assert found(ranker, first) == ["a"]
    assert found(ranker, first[::-1]) == ["b"]
    assert found(ranker, [Tool("a", "A."), Tool("b", "B.")]) == ["a"]
