"""The gate: whether to fold, decided anew on every assembly."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from toolfold import Settings, Tool, estimate, fold
from toolfold.tool import Policy


def tools_of(tokens: int, count: int = 10) -> list[dict[str, Any]]:
    """Plain records that cost just so many tokens by characters over four."""
    tools = [{"name": f"tool_{i:03}", "description": ""} for i in range(count)]
    size = len('{"name":"tool_000","description":""}')
    for tool in tools:
        tool["description"] = "x" * (4 * tokens // count - size)
    return tools


def test_off_folds_nothing() -> None:
    tools = tools_of(100_000)

    folded = fold(tools, context_length=1_000, settings=Settings(enabled="off"))

    assert not folded.active
    assert folded.report.reason == "folding is off"
    assert folded.guidance is None
    assert all(out is tool for out, tool in zip(folded.tools, tools, strict=True))


def test_on_folds_whenever_something_is_deferrable() -> None:
    chosen = Settings(enabled="on")

    one = fold([Tool("a")], settings=chosen)
    none = fold([Tool("a")], settings=chosen, core=["a"])
    empty = fold([], settings=chosen)

    assert (one.active, one.report.reason) == (True, "folding is on")
    assert (none.active, none.report.reason) == (False, "no tool is deferrable")
    assert (empty.active, empty.tools) == (False, [])


@pytest.mark.parametrize(
    ("tokens", "window", "pct", "active"),
    [
        (1_000, 10_000, 10, True),
        (990, 10_000, 10, False),
        (1_000, 10_010, 10, False),
        (5_250, 1_048_576, 0.5, True),
        (5_240, 1_048_576, 0.5, False),
        (50_000, 1_000_000, 10, False),
        (10_000, 10_000, 100, True),
    ],
)
def test_auto_folds_from_the_threshold_on(
    tokens: int, window: int, pct: float, active: bool
) -> None:
    folded = fold(tools_of(tokens), context_length=window, settings=Settings(threshold_pct=pct))

    assert folded.report.deferrable_tokens == tokens
    assert folded.report.threshold_tokens == int(window * pct / 100)
    assert folded.active == active


def test_auto_says_why() -> None:
    open_ = fold(tools_of(1_000), context_length=1_000_000)
    folded = fold(tools_of(1_000), context_length=8_192, settings=Settings(threshold_pct=0.5))

    assert open_.report.reason == (
        "deferrable tools take 1,000 tokens, less than 100,000 (10 % of 1,000,000)"
    )
    assert folded.report.reason == (
        "deferrable tools take 1,000 tokens, at least 40 (0.5 % of 8,192)"
    )
    assert str(open_.report) == (
        "not folded: deferrable tools take 1,000 tokens, less than 100,000 (10 % of 1,000,000). "
        "10 tools, 1,003 tokens -> 10 tools, 1,003 tokens"
    )


@pytest.mark.parametrize("window", [None, 262_144])
@pytest.mark.parametrize(("tokens", "active"), [(2_990, False), (3_000, True)])
def test_a_bound_in_tokens_holds_however_large_or_unknown_the_window_is(
    window: int | None, tokens: int, active: bool
) -> None:
    settings = Settings(threshold_tokens=3_000)
    folded = fold(tools_of(tokens), context_length=window, settings=settings)

    assert folded.active == active
    assert folded.report.threshold_tokens == 3_000
    assert folded.report.reason.endswith("3,000 (`threshold_tokens`)")


def test_the_share_of_a_window_holds_where_it_is_less_than_the_bound_in_tokens() -> None:
    report = fold(
        tools_of(1_000), context_length=8_192, settings=Settings(threshold_tokens=3_000)
    ).report

    assert report.active
    assert report.reason.endswith("at least 819 (10 % of 8,192)")


WINDOWS = {
    "qwen2.5-coder:1.5b": 32_768,
    "qwen/Qwen3-4B-Instruct-2507": 262_144,
    "/models/Qwen3-4B-Q4_K_M.gguf": 32_768,
    "C:\\models\\SmolLM2-1.7B-Instruct.gguf": 8_192,
    "meta-llama/Meta-Llama-3.1-8B-Instruct": 131_072,
    "llama3.2:3b": 131_072,
    "llama3": 8_192,
    "mistral:7b": 32_768,
    "Ministral-8B-Instruct-2410": 32_768,
    "mistralai/Mistral-7B-Instruct-v0.1": 8_192,
    "codellama/CodeLlama-70b-Instruct-hf": 4_096,
    "hf.co/somebody/gemma-3-4b-it-GGUF:Q4_K_M": 131_072,
    "gemma4:e4b": 131_072,
    "Qwen/Qwen3.5-9B": 262_144,
    "gemma2:9b": 8_192,
    "Phi-3-mini-4k-instruct": 4_096,
    "Phi-3-mini-128k-instruct": 131_072,
    "phi4-mini": 131_072,
    "phi4": 16_384,
    "granite3.3:8b": 131_072,
    "deepseek-r1:8b": 131_072,
    "deepseek-ai/DeepSeek-V2-Lite-Chat": 32_768,
    "THUDM/GLM-4-32B-0414": 32_768,
    "THUDM/glm-4-9b-chat": 131_072,
    "gpt-oss:20b": 131_072,
    "openai:gpt-4o-mini": 128_000,
    "anthropic/claude-opus-4-8:beta": 200_000,
}


@pytest.mark.parametrize("model", WINDOWS)
def test_the_window_of_a_common_model_is_known_by_any_of_its_names(model: str) -> None:
    assert fold([Tool("a")], model=model).report.context_length == WINDOWS[model]


@pytest.mark.parametrize(
    "model", ["somebody:7b", "7b", "", "mistral/new-thing", "my-qwen", "deepseek-new"]
)
def test_the_window_of_an_unknown_model_is_not_guessed(model: str) -> None:
    assert fold([Tool("a")], model=model).report.context_length is None


def test_a_threshold_of_zero_folds_whenever_something_is_deferrable() -> None:
    chosen = Settings(threshold_pct=0)

    assert fold([Tool("a")], context_length=1_000_000, settings=chosen).active
    assert fold([Tool("a")], settings=chosen).active
    assert not fold([Tool("a")], settings=chosen, core=["a"]).active


@pytest.mark.parametrize(("tokens", "active"), [(19_990, False), (20_000, True)])
@pytest.mark.parametrize("window", [None, 0])
def test_with_an_unknown_window_the_threshold_is_20_000_tokens(
    tokens: int, active: bool, window: int | None
) -> None:
    folded = fold(tools_of(tokens), context_length=window)

    assert folded.active == active
    assert folded.report.threshold_tokens == 20_000
    assert folded.report.reason.endswith(" 20,000 (the context window is not known)")


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("claude-sonnet-4-5", 200_000),
        ("anthropic/claude-opus-4", 200_000),
        ("openai:gpt-4o-mini", 128_000),
        ("gpt-4.1", 1_047_576),
        ("gemini-2.5-pro", 1_048_576),
        ("a-model-nobody-knows", None),
    ],
)
def test_the_window_is_looked_up_by_the_models_name(model: str, window: int | None) -> None:
    assert fold([Tool("a")], model=model).report.context_length == window


def test_a_given_window_wins_over_the_models() -> None:
    assert fold([Tool("a")], model="gpt-4o", context_length=9_999).report.context_length == 9_999


def test_core_never_defer_and_policy_never_keep_a_tool_open() -> None:
    tools = [
        Tool("a"),
        Tool("b"),
        Tool("c", policy="never"),
        Tool("d", source="s"),
        Tool("e"),
        Tool("f"),
    ]
    chosen = Settings(enabled="on", core=("a",), never_defer=("b*", "@s"), always_defer=("a",))

    folded = fold(tools, settings=chosen, core=["e"])

    assert [tool["function"]["name"] for tool in folded.tools][:5] == ["a", "b", "c", "d", "e"]
    assert (folded.report.kept, folded.report.deferred) == (5, 1)


@pytest.mark.parametrize("strategy", ["bridge", "stub"])
@pytest.mark.parametrize("by", ["policy", "settings"])
def test_a_tool_with_policy_always_is_folded_below_the_threshold_unless_off(
    strategy: Any, by: str
) -> None:
    schema = {"type": "object", "properties": {"x": {"type": "string"}}}
    policy: Policy = "always" if by == "policy" else "automatic"
    tools = [Tool("a", parameters=schema, policy=policy), Tool("b", parameters=schema)]
    always = ("a",) if by == "settings" else ()

    auto = fold(tools, settings=Settings(strategy=strategy, always_defer=always))
    off = fold(tools, settings=Settings(strategy=strategy, always_defer=always, enabled="off"))

    assert (auto.active, auto.report.deferred, auto.report.kept) == (True, 1, 1)
    assert auto.report.reason.endswith("; tools with policy `always` fold all the same")
    assert not off.active


def test_policies_are_read_from_plain_records() -> None:
    tools = [{"name": "a", "policy": "always"}, {"name": "b", "policy": "never"}, {"name": "c"}]

    assert fold(tools).report.deferred == 1
    assert fold(tools, settings=Settings(enabled="on")).report.deferred == 2


@pytest.mark.parametrize(("count", "active"), [(14, False), (15, True)])
def test_stubs_fold_from_a_number_of_tools_on(count: int, active: bool) -> None:
    tools = [Tool(f"t{i}") for i in range(count)]

    folded = fold(tools, context_length=1_000_000, settings=Settings(strategy="stub"))

    assert folded.active == active
    assert folded.report.reason == (
        "15 tools, at least the threshold of 15"
        if active
        else "14 tools, fewer than the threshold of 15"
    )


def test_the_number_of_tools_for_stubs_can_be_set() -> None:
    tools = [Tool(f"t{i}") for i in range(5)]

    assert fold(tools, settings=Settings(strategy="stub", threshold=5)).active
    assert not fold(tools, settings=Settings(strategy="stub", threshold=6)).active


def test_the_gate_decides_anew_on_every_assembly() -> None:
    tools = tools_of(20_000)

    many = fold(tools, context_length=100_000)
    few = fold(tools[:4], context_length=100_000, session=many.session)
    again = fold(tools, context_length=100_000, session=few.session)

    assert (many.active, few.active, again.active) == (True, False, True)
    assert few.tools == tools[:4]
    assert many.tools == again.tools


def test_one_line_is_logged_where_folding_is_active(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="toolfold.fold"):
        fold([*tools_of(6_000), Tool("core")], context_length=50_000, core=["core"])
        fold(tools_of(4_000), context_length=50_000)

    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("INFO", "folding is active: 1 kept, 10 deferred (~6000 tokens, threshold ~5000)")
    ]


def test_a_real_tokenizer_can_count() -> None:
    tools = tools_of(1_000)

    folded = fold(tools, context_length=100_000, count=lambda text: len(text))

    assert folded.report.deferrable_tokens == 4_000
    assert estimate("12345") == 2
    assert fold(tools, context_length=39_000, count=len).active


def test_the_report_counts_tools_and_tokens_before_and_after() -> None:
    folded = fold(tools_of(10_000), context_length=50_000, settings=Settings(listing="off"))
    report = folded.report

    assert (report.tools_before, report.tools_after, report.kept, report.deferred) == (10, 3, 0, 10)
    assert (report.tokens_before, report.deferrable_tokens) == (10_003, 10_000)
    assert 100 < report.tokens_after < 300
    assert (report.threshold_tokens, report.context_length) == (5_000, 50_000)
    assert (report.active, report.strategy) == (True, "bridge")
