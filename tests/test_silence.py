"""Nothing is passed over without a word: what a fold is given, what it leaves out, what it cuts."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolfold import ConfigError, Scope, Settings, Tool, fold
from toolfold.invisible import shown_tool

TOOLS: list[Any] = [{"name": f"tool_{i}", "description": "Does something."} for i in range(3)]


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        ({"shape": "openai"}, "`shape` is 'openai'", "did you mean `openai-chat`?"),
        ({"context_length": "128k"}, "`context_length` is '128k'", "write a number of tokens"),
        ({"context_length": True}, "`context_length` is True", "write a number of tokens"),
        ({"context_length": -1}, "`context_length` is -1", "write a number of tokens"),
        ({"settings": {"enabled": "on"}}, "`settings` is a dict", "write `Settings("),
        ({"settings": {}}, "`settings` is a dict", "write `Settings("),
        ({"scope": "tool_*"}, "`scope` is 'tool_*'", "write `Scope("),
    ],
)
def test_a_fold_that_is_given_what_it_cannot_use_says_what_and_how_to_write_it(
    arguments: dict[str, Any], message: str, hint: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        fold(TOOLS, **arguments)

    assert caught.value.message == message
    assert (caught.value.hint or "").startswith(hint)


def test_the_text_of_a_config_error_holds_the_hint() -> None:
    assert str(ConfigError("`a` is 3", hint="write a text")) == "`a` is 3; write a text"
    assert str(ConfigError("`a` is 3")) == "`a` is 3"
    with pytest.raises(ConfigError, match=r"`enabled` is 'maybe'; write auto \| on \| off"):
        Settings(enabled="maybe")  # pyright: ignore[reportArgumentType]


@given(
    lengths=st.lists(st.integers(0, 30), min_size=1, max_size=60),
    shape=st.sampled_from([None, "openai-chat", "openai-responses", "anthropic", "mcp", "gemini"]),
    enabled=st.sampled_from(["on", "off", "auto"]),
    window=st.sampled_from([None, 500, 100_000]),
)
def test_what_may_be_folded_never_costs_more_than_the_whole_list(
    lengths: list[int], shape: Any, enabled: Any, window: int | None
) -> None:
    tools = [Tool(f"t{i}", "a" * length) for i, length in enumerate(lengths)]

    report = fold(
        tools, shape=shape, settings=Settings(enabled=enabled), context_length=window
    ).report

    assert report.deferrable_tokens <= report.tokens_before
    assert report.kept + report.deferred == report.tools_before


def test_a_core_pattern_that_matches_nothing_is_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings = Settings(core=("tool_0", "tol_1", "preset:hermes"), never_defer=("nothing_*",))

    with caplog.at_level(logging.WARNING):
        fold([], settings=settings)
        fold(TOOLS, settings=settings, scope=Scope(("tool_0",)))
        assert caplog.messages == []
        for _ in range(2):
            fold(TOOLS, settings=settings)

    assert caplog.messages == [
        "`core` names 'tol_1', which is none of the tools (3)",
        "`never_defer` names 'nothing_*', which is none of the tools (3)",
    ]


def test_tools_that_are_not_folded_go_out_as_they_came() -> None:
    long = {"name": "long", "description": "word " * 5_000, "cache_control": {"type": "ephemeral"}}
    group = {
        "functionDeclarations": [{"name": "a", "x": [1, None]}, {"name": "b", "y": "z" * 9_000}]
    }

    folded = fold([long, *TOOLS], settings=Settings(enabled="on", core=("long",)))
    grouped = fold([group], settings=Settings(enabled="on", core=("b",)))

    assert folded.tools[0] is long
    assert grouped.tools[0]["functionDeclarations"][0] == group["functionDeclarations"][1]


@given(text=st.text(max_size=400), limit=st.integers(100, 200))
def test_a_description_that_is_cut_says_so_within_the_limit(text: str, limit: int) -> None:
    once = shown_tool(Tool("a", text), limit)

    assert len(once.description) <= limit
    assert shown_tool(once, limit) == once
    if len(text) > limit:
        assert once.description.endswith(f"… (Cut: the whole text has {len(text):,} characters.)")
