"""The strategies by name, and what a fold can be asked whatever its strategy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import pytest

from toolfold import Answer, Reranker, Session, Settings, Tool, fold
from toolfold.search import Searcher
from toolfold.search.keyword import Keyword
from toolfold.settings.model import StrategyName
from toolfold.strategy import STRATEGIES

EVERY = pytest.mark.parametrize("strategy", get_args(StrategyName))


def tools(mark: str, count: int = 20) -> list[Tool]:
    """Tools that no other test has, so that nothing about them is known yet."""
    return [Tool(f"{mark}_{i}", f"Does thing {i} of {mark}.", source=mark) for i in range(count)]


def folded_with(strategy: str, own: list[Tool], **more: Any) -> Any:
    chosen = Settings(enabled="on", strategy=strategy, **more)  # type: ignore[arg-type]
    return fold(own, settings=chosen, shape="plain")


def test_the_table_has_the_strategies_that_the_settings_take() -> None:
    assert tuple(STRATEGIES) == get_args(StrategyName)
    assert [strategy.name for strategy in STRATEGIES.values()] == list(STRATEGIES)


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
    assert isinstance(folded.resolve("tool_search", {"query": "thing 3"}), Answer)
    assert not folded.may_block("tool_search")
    assert not folded_with(strategy, own, cache_dir="off").may_block("tool_search")


@EVERY
@pytest.mark.parametrize("name", ["tool_describe", "tool_call", "cold_0", "nobody"])
def test_only_a_search_may_block(strategy: StrategyName, name: str) -> None:
    assert not folded_with(strategy, tools("cold")).may_block(name)


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


def test_a_list_that_is_not_folded_never_blocks() -> None:
    folded = fold(tools("flat"), settings=Settings(enabled="off"))

    assert not folded.may_block("tool_search")
