"""The strategies by name, and what a fold can be asked whatever its strategy."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, get_args

import pytest

from toolfold import Answer, Reranker, Session, Settings, Tool, fold
from toolfold.search import Searcher
from toolfold.search.keyword import Keyword
from toolfold.settings.model import StrategyName
from toolfold.strategy import STRATEGIES, strategy_of

EVERY = pytest.mark.parametrize("strategy", STRATEGIES)


def tools(mark: str, count: int = 20) -> list[Tool]:
    """Tools that no other test has, so that nothing about them is known yet."""
    takes = {"type": "object", "properties": {"what": {"type": "string"}}}
    return [
        Tool(f"{mark}_{i}", f"Does thing {i} of {mark}.", takes, source=mark) for i in range(count)
    ]


def folded_with(strategy: str, own: list[Tool], **more: Any) -> Any:
    chosen = Settings(enabled="on", strategy=strategy, **more)  # type: ignore[arg-type]
    return fold(own, settings=chosen, shape="plain")


def test_every_strategy_that_the_settings_take_is_made_under_its_name() -> None:
    assert [strategy.name for strategy in STRATEGIES.values()] == list(STRATEGIES)
    for name in get_args(StrategyName):
        made = strategy_of(Settings(strategy=name), "anthropic-messages")
        assert made.name == ("bridge" if name == "auto" else name)
        assert strategy_of(Settings(strategy=name)) in STRATEGIES.values()


@EVERY
def test_the_bridges_tools_that_are_listed_are_answered(strategy: StrategyName) -> None:
    own = tools(f"listed_{strategy}")
    folded = folded_with(strategy, own)
    bridge = [tool["name"] for tool in folded.tools if folded.catalog.find(tool["name"]) is None]

    assert set(bridge) <= STRATEGIES[strategy].answers
    for name in bridge:
        answer = folded.resolve(name, {"query": own[0].name, "name": own[0].name})
        assert "is not available" not in getattr(answer, "text", "")


@EVERY
def test_every_tool_is_hidden_at_first_and_callable(strategy: StrategyName) -> None:
    own = tools(f"hidden_{strategy}", 5)
    folded = folded_with(strategy, own)

    assert folded.hidden == tuple(tool.name for tool in own)
    assert folded.report.deferred == len(folded.hidden)
    assert [folded.resolve(tool.name, {}).tool for tool in own] == own


@EVERY
def test_the_list_changes_with_a_conversation_only_where_the_strategy_says_so(
    strategy: StrategyName,
) -> None:
    own = tools(f"changes_{strategy}", 5)
    folded = folded_with(strategy, own)
    session = Session((own[1].name,))

    after = folded.for_session(session)

    assert after.session == session
    assert (after.tools != folded.tools) == STRATEGIES[strategy].reveals
    anew = fold(own, settings=folded.bridge.settings, shape="plain", session=session)
    assert (after.tools, after.report, after.guidance) == (anew.tools, anew.report, anew.guidance)


def test_an_unfolded_list_is_the_same_for_every_session() -> None:
    folded = fold([Tool("a")], settings=Settings(enabled="off"))

    assert folded.for_session(Session(("a",))).tools is folded.tools
    assert folded.hidden == ()


# ---- what may block an event loop


@EVERY
def test_the_first_search_may_block_and_the_next_does_not(strategy: StrategyName) -> None:
    own = tools(f"cold_{strategy}")
    folded = folded_with(strategy, own, cache_dir="off")

    assert folded.may_block("tool_search")
    assert folded.may_block(" tool_search ")
    assert isinstance(folded.resolve("tool_search", {"query": f"cold_{strategy}_3"}), Answer)
    assert not folded.may_block("tool_search")
    assert not folded_with(strategy, own, cache_dir="off").may_block("tool_search")


@EVERY
def test_a_call_by_a_tools_name_never_blocks(strategy: StrategyName) -> None:
    folded = folded_with(strategy, tools(f"named_{strategy}"))

    assert not folded.may_block(f"named_{strategy}_0", {})
    if "tool_call" in STRATEGIES[strategy].answers:
        asked = {"name": f"named_{strategy}_0", "arguments": {}}
        assert not folded.may_block("tool_call", asked)
        assert not folded.may_block("tool_call", json.dumps(asked))
        assert not folded.may_block("tool_describe", asked)


@EVERY
def test_a_name_that_has_to_be_guessed_at_may_block(strategy: StrategyName) -> None:
    folded = folded_with(strategy, tools(f"guessed_{strategy}"))
    meant = f"Guessed {strategy} 3"

    assert folded.may_block(meant)
    assert folded.resolve(meant, {}).tool.name == f"guessed_{strategy}_3"
    assert not folded.may_block(meant)
    assert folded.may_block("nobody", {})
    for arguments in ({"name": "nobody"}, "{", None, {"name": 5}):
        assert folded.may_block("tool_call", arguments)


def test_a_search_that_asks_an_endpoint_may_always_block() -> None:
    # Nobody listens there: the order stands as it is.
    settings = Settings(
        enabled="on", reranker=Reranker(enabled=True, endpoint="http://127.0.0.1:9/", timeout=0.05)
    )
    folded = fold(tools("asking"), settings=settings)

    folded.resolve("tool_search", {"query": "thing 3"})

    assert folded.may_block("tool_search")


def test_a_ranker_that_does_not_say_that_it_only_computes_may_always_block() -> None:
    class Own:
        name, calibrated = "own", False

        def searcher(self, tools: Sequence[Tool]) -> Searcher:
            return Keyword().searcher(tools)

    for ranker, blocks in ((Own(), True), (Keyword(), False)):
        folded = fold(tools("own"), settings=Settings(enabled="on"), ranker=ranker)
        folded.resolve("tool_search", {"query": "thing 3"})
        assert folded.may_block("tool_search") is blocks


def test_a_list_that_is_not_folded_blocks_for_unknown_names_alone() -> None:
    folded = fold(tools("flat"), settings=Settings(enabled="off"))

    assert not folded.may_block("flat_0")
    assert folded.may_block("tool_search")
