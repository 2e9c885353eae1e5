"""The numbers the product is held to, on the corpora that lie beside the repository."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bench.tokens import exact_counter, why_not_exact

from support.outcomes import answered
from toolfold import Settings, estimate, fold

CORPORA = Path(
    os.environ.get("TOOLFOLD_CORPORA") or Path(__file__).parents[2] / "shared" / "corpora"
)
DEPLOY = CORPORA / "deploy-226" / "tools.jsonl"

pytestmark = pytest.mark.skipif(
    not DEPLOY.is_file(),
    reason=f"the corpus deploy-226 is not at {DEPLOY}; point TOOLFOLD_CORPORA at the corpora",
)


def deploy() -> list[dict[str, Any]]:
    return [json.loads(line) for line in DEPLOY.read_text("utf-8").splitlines()]


def exact() -> Callable[[str], int]:
    reason = why_not_exact()
    if reason:
        pytest.skip(reason)
    counter = exact_counter()
    assert counter is not None
    return counter


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def test_the_open_list_costs_what_it_is_said_to_cost() -> None:
    keys = ("name", "description", "parameters")
    flat = [{key: tool[key] for key in keys} for tool in deploy()]
    chat = [{"type": "function", "function": tool} for tool in flat]
    off = Settings(enabled="off")

    # The figure is that of the bare records; OpenAI chat's wrapping adds six each.
    assert fold(flat, settings=off, count=exact()).report.tokens_before == 53_687
    assert fold(chat, settings=off, count=exact()).report.tokens_before == 55_044


@pytest.mark.parametrize(("listing", "most"), [("off", 330), ("sources", 400), ("names", 1_400)])
def test_the_bridge_over_226_tools_costs_at_most(listing: Any, most: int) -> None:
    folded = fold(
        deploy(), context_length=131_072, settings=Settings(listing=listing), shape="openai-chat"
    )
    text = compact(folded.tools)
    tokens = exact()(text)
    figures = f"{tokens} tokens exactly, {estimate(text)} by characters over four"
    print(f"listing {listing}: {figures}")  # noqa: T201

    assert folded.active
    assert len(folded.tools) == 3
    assert tokens <= most


def test_226_stubs_cost_at_most_and_none_more_than_what_it_stands_for() -> None:
    tools = deploy()
    shape, off, on = "openai-chat", Settings(enabled="off"), Settings(enabled="on", strategy="stub")
    whole = fold(tools, shape=shape, settings=off).tools
    stubs = fold(tools, shape=shape, settings=on).tools
    tokens = exact()(compact(stubs))
    print(f"stubs: {tokens} tokens exactly, {estimate(compact(stubs))} by characters over four")  # noqa: T201

    assert tokens <= 14_000
    assert len(stubs) == len(whole) + 1
    assert all(
        len(compact(stub)) <= len(compact(tool)) for stub, tool in zip(stubs, whole, strict=False)
    )


def test_the_list_of_names_holds_all_226() -> None:
    folded = fold(deploy(), context_length=131_072, settings=Settings(listing="names"))

    listed = folded.tools[0]["description"].split(", by source, called source__tool:\n")[1]
    by_source = dict(line.split(": ") for line in listed.splitlines())
    called = [f"{source}__{name}" for source, names in by_source.items() for name in names.split()]
    assert len(folded.catalog) == 226
    assert {folded.catalog.find(name) for name in called} == set(folded.catalog)


def test_at_10_per_cent_of_a_1m_window_the_list_stays_open_and_at_a_half_it_folds() -> None:
    tools = deploy()

    open_ = fold(tools, context_length=1_000_000)
    folded = fold(tools, context_length=1_000_000, settings=Settings(threshold_pct=0.5))

    assert not open_.active
    assert all(out is tool for out, tool in zip(open_.tools, tools, strict=True))
    assert open_.report.reason.endswith("less than 100,000 (10 % of 1,000,000)")
    assert folded.active
    assert folded.report.reason.endswith("at least 5,000 (0.5 % of 1,000,000)")


def test_every_one_of_the_226_is_found_first_by_its_exact_name() -> None:
    folded = fold(deploy(), context_length=131_072)

    for name in folded.catalog.names:
        assert answered(folded.resolve("tool_search", {"query": name})).hits[0].name == name


def test_an_unknown_argument_is_refused_by_the_186_of_221_tools_that_say_nothing_of_it() -> None:
    tools = [tool for tool in deploy() if tool["parameters"].get("properties")]
    silent = [tool for tool in tools if "additionalProperties" not in tool["parameters"]]
    optional = [{**tool, "parameters": {**tool["parameters"], "required": []}} for tool in silent]
    folded = fold(optional, settings=Settings(enabled="on", ranker="bm25"))

    refused = [
        answered(folded.resolve("tool_call", {"name": tool["name"], "arguments": {"brightnes": 1}}))
        for tool in optional
    ]

    assert (len(tools), len(silent)) == (221, 186)
    assert [answer.text for answer in refused if "brightnes" not in answer.text] == []
    assert all(answer.is_error for answer in refused)
