"""What an answer to a search is made of: signatures, names, companions, and their laws."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.outcomes import answered
from toolfold import Answer, Folded, Scope, Session, Settings, Tool, estimate, fold
from toolfold.search import Match


class Ranked:
    """Ranks tools as it is told, with probabilities."""

    name = "ranked"
    calibrated = True
    waits = False

    def __init__(self, *scores: float) -> None:
        self._scores = scores

    def searcher(self, tools: object) -> Ranked:
        return self

    def search(self, query: str, limit: int) -> list[Match]:
        matches = [Match(place, score) for place, score in enumerate(self._scores)]
        return sorted(matches, key=lambda match: -match.score)[:limit]

    def explain(self, query: str, position: int) -> str:
        return "told so"


def letters(count: int, source: str | None = "post") -> list[Tool]:
    takes = {
        "type": "object",
        "properties": {"recipient": {"type": "string"}, "paper": {"type": "string"}},
        "required": ["recipient"],
    }
    return [
        Tool(f"letter_{i}", f"Write a long letter number {i} by hand.", takes, source=source)
        for i in range(count)
    ]


def folded(tools: list[Tool], *scores: float, **settings: object) -> Folded:
    chosen = Settings(**{"enabled": "on", **settings})  # type: ignore[arg-type]
    return fold(tools, settings=chosen, ranker=Ranked(*scores))


def search(made: Folded, query: object = "write something", **more: object) -> Answer:
    return answered(made.resolve("tool_search", {"query": query, **more}))


def shown(answer: Answer) -> dict[str, list[str]]:
    kinds = ("signature", "name", "companion")
    return {kind: [h.name for h in answer.hits if h.shown == kind] for kind in kinds}


def test_likely_hits_have_signatures_others_a_few_words_and_siblings_their_names() -> None:
    answer = search(folded(letters(6), 0.9, 0.5, 0.005, 0.001, 0.0005))

    assert answer.text == (
        '3 of 6 tools for "write something":\n'
        "- letter_0(recipient: string, paper?: string) [post]: "
        "Write a long letter number 0 by hand.\n"
        "- letter_1(recipient: string, paper?: string) [post]: "
        "Write a long letter number 1 by hand.\n"
        "Also (tool_describe first): letter_2 (Write a long letter number 2)\n"
        "May be needed too: letter_3, letter_4, letter_5\n"
        "Run one with tool_call(name, arguments)."
    )
    assert shown(answer) == {
        "signature": ["letter_0", "letter_1"],
        "name": ["letter_2"],
        "companion": ["letter_3", "letter_4", "letter_5"],
    }
    assert answer.session.revealed == ("letter_0", "letter_1")
    assert [tool.name for tool in answer.found] == ["letter_0", "letter_1"]


def test_a_weak_match_is_called_one_and_has_no_companions() -> None:
    answer = search(folded(letters(3), 0.3, 0.2, 0.0001))

    assert answer.text.startswith('No close match for "write something"; nearest:\n- letter_0(')
    assert shown(answer)["companion"] == []


def test_what_is_next_to_impossible_is_left_out_where_it_is_no_sibling() -> None:
    tools = [*letters(2), *letters(1, "other")]
    tools[2] = Tool("parcel", "Send a parcel.", source="other")

    assert "parcel" not in search(folded(tools, 0.9, 0.5, 0.0019)).text


def test_one_hit_that_is_asked_for_is_one_and_no_names_follow() -> None:
    answer = search(folded(letters(9), *[0.9] * 9), limit=1)

    assert [(hit.name, hit.shown) for hit in answer.hits] == [("letter_0", "signature")]
    assert answer.text.count("letter_") == 1


def test_a_default_of_one_signature_still_lets_names_follow() -> None:
    answer = search(folded(letters(9), *[0.9] * 9, search_default_limit=1))

    assert shown(answer)["signature"] == ["letter_0"]
    assert shown(answer)["name"]


def test_a_tool_that_gives_what_a_hit_requires_is_named_beside_it() -> None:
    def takes(name: str, text: str = "") -> dict[str, object]:
        properties = {name: {"type": "string", "description": text}}
        return {"type": "object", "properties": properties, "required": [name]}

    tools = [
        Tool("buy_ticket", "Buy a ticket.", takes("station_code"), source="rail"),
        Tool("track", "Track a train.", takes("train", "As list_all_trains says."), source="rail"),
        Tool("weather", "Tell the weather.", takes("latitude"), source="sky"),
        Tool("plan", "Plan a meeting.", takes("date"), source="office"),
        Tool("get_station", "Look a station up.", source="rail"),
        Tool("list_all_trains", "List trains.", source="rail"),
        Tool("geocode_address", "Find a place.", source="sky"),
        Tool("get_current_date", "Tell the date.", source="clock"),
        Tool("delete_station", "Close a station.", source="rail"),
    ]
    for place, name in enumerate(
        ("get_station", "list_all_trains", "geocode_address", "get_current_date")
    ):
        answer = search(folded(tools, *(0.9 if i == place else 0.0 for i in range(4))))

        assert shown(answer)["companion"][0] == name


def test_companions_say_what_returns_a_property_of_that_name() -> None:
    source = {
        "name": "whois",
        "inputSchema": {"type": "object"},
        "outputSchema": {"type": "object", "properties": {"handle": {"type": "string"}}},
    }
    needs = {"type": "object", "properties": {"handle": {}}, "required": ["handle"]}
    target = {"name": "greet", "inputSchema": needs}
    made = fold([target, source], settings=Settings(enabled="on"), ranker=Ranked(0.9, 0.0))  # type: ignore[arg-type]

    assert shown(search(made))["companion"] == ["whois"]


def test_a_revealing_strategy_lists_hits_with_signatures_and_says_so_of_the_names() -> None:
    made = folded(letters(4), 0.9, 0.005, 0.004, strategy="reveal")
    answer = search(made)

    assert "\nAlso, not listed (search for the name): letter_1" in answer.text
    listed = [tool["function"]["name"] for tool in made.for_session(answer.session).tools]
    assert [name for name in listed if name.startswith("letter")] == ["letter_0"]


def test_stubs_are_all_loaded_and_no_name_follows() -> None:
    answer = search(folded(letters(20), *[0.9] * 20, strategy="stub"))

    assert {hit.shown for hit in answer.hits} == {"signature"}
    assert "Also" not in answer.text


SCORES = st.lists(st.floats(0, 1), min_size=1, max_size=14)


@given(SCORES, st.integers(100, 900), st.sampled_from([None, 1, 2, 7, 20]), st.booleans())
def test_laws_of_an_answer(
    scores: list[float], budget: int, limit: int | None, two_sources: bool
) -> None:
    tools = [*letters(7), *(Tool(f"parcel_{i}", "Send it.", source="b") for i in range(7))]
    own = tools if two_sources else letters(14)
    made = folded(own, *scores, search_max_tokens=budget, relevance_floor=0.0)
    arguments: dict[str, object] = {} if limit is None else {"limit": limit}

    answer = search(made, "one | two", **arguments)
    again = search(made, "one | two", **arguments)

    kinds = shown(answer)
    assert answer == again
    assert estimate(answer.text) <= budget
    assert set(answer.session.revealed) == set(kinds["signature"])
    assert all(hit.name in answer.text for hit in answer.hits)
    assert len(kinds["companion"]) <= 6
    for need in ("one", "two"):
        signed = [h for h in answer.hits if h.need == need and h.shown == "signature"]
        assert len(signed) <= (limit or 5)
    if limit == 1:
        assert kinds["companion"] == [] and len(answer.hits) <= 2


@given(SCORES, st.sets(st.integers(0, 13)))
def test_no_name_outside_the_scope_stands_in_an_answer(
    scores: list[float], denied: set[int]
) -> None:
    tools = letters(14)
    scope = Scope(deny=tuple(f"letter_{i}" for i in denied))
    inside = [tool.name for tool in tools if tool in scope]
    made = fold(
        tools,
        scope=scope,
        settings=Settings(enabled="on", relevance_floor=0.0),
        ranker=Ranked(*scores[: len(inside)]),  # type: ignore[arg-type]
    )
    if not inside:
        return
    answer = answered(made.resolve("tool_search", {"query": "anything"}))

    assert {hit.name for hit in answer.hits} <= set(inside)
    words = answer.text.replace("(", " ").replace(",", " ").split()
    assert not [word for word in words if word in {f"letter_{i}" for i in denied}]


@given(SCORES)
def test_companions_never_push_a_hit_out(scores: list[float]) -> None:
    made = folded(letters(14), *scores, search_max_tokens=200, relevance_floor=0.0)
    answer = search(made)

    left_out = "left out" in answer.text
    assert not (left_out and shown(answer)["companion"])


@pytest.mark.parametrize("word", ["an", "ran", "anch"])
def test_letters_inside_a_word_are_no_match_for_keyword_unless_nothing_else_is(word: str) -> None:
    tools = [Tool("merge_branch", "Join two lines."), Tool("plot", f"Draw {word} axis.")]
    settings = Settings(enabled="on", ranker="keyword")

    both = answered(fold(tools, settings=settings).resolve("tool_search", {"query": word}))
    alone = answered(fold(tools[:1], settings=settings).resolve("tool_search", {"query": word}))

    assert [hit.name for hit in both.hits] == ["plot"]
    assert [hit.name for hit in alone.hits] == ["merge_branch"]


def test_a_session_forgets_nothing_that_had_its_signature() -> None:
    made = folded(letters(4), 0.9, 0.8, 0.004)
    first = answered(
        made.resolve("tool_search", {"query": "write"}, session=Session(revealed=("letter_3",)))
    )

    assert first.session.revealed == ("letter_3", "letter_0", "letter_1")
