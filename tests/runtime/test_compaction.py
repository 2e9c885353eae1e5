"""`toolfold.runtime.compacted`: what was found long ago shrinks to a line."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from support.running import wait
from toolfold import Settings, estimate
from toolfold.runtime import (
    Agent,
    Call,
    Limits,
    Message,
    ModelMessage,
    Registry,
    ResultMessage,
    ScriptedModel,
    UserMessage,
    calls,
    compacted,
    says,
)


def search(n: int, size: int = 400) -> list[Message]:
    call = Call("tool_search", f'{{"query": "{n}"}}', f"c{n}")
    found = (f"tool_{n}", f"other_{n}")
    return [
        UserMessage(f"request {n}"),
        ModelMessage("", (call,)),
        ResultMessage("x" * size, call.id, call.name, found=found),
        ModelMessage(f"answer {n}"),
    ]


def test_within_the_budget_nothing_changes() -> None:
    messages = [m for n in range(4) for m in search(n)]

    assert compacted(messages, discovery_tokens=1_000) == messages


def test_beyond_the_budget_older_discoveries_shrink_to_a_line_that_names_what_was_found() -> None:
    messages = [m for n in range(12) for m in search(n)]

    sent = compacted(messages, discovery_tokens=400)
    texts = [m.text for m in sent if isinstance(m, ResultMessage)]

    assert texts[0] == "(Found earlier, still there: tool_0, other_0.)"
    assert texts[-1] == "x" * 400
    assert sum(text.startswith("x") for text in texts) <= 4


def test_the_newest_discovery_stays_whole_even_where_it_fills_the_budget_alone() -> None:
    sent = compacted(search(1, 4_000), discovery_tokens=100)

    (result,) = [m for m in sent if isinstance(m, ResultMessage)]
    assert result.text == "x" * 4_000


def test_results_of_real_tools_have_a_budget_of_their_own() -> None:
    real: list[Message] = [ResultMessage("y" * 4_000, f"r{n}", "read_file") for n in range(5)]

    whole = compacted(real, discovery_tokens=10)
    cut = compacted(real, discovery_tokens=10, result_tokens=2_500)

    assert whole == real
    assert cut[-1] == real[-1]
    assert cut[0].text == (
        "(An earlier result of 4,000 characters, left out. Call the tool again if needed.)"
    )


@settings(deadline=None)
@given(st.lists(st.integers(20, 2_000), max_size=30), st.integers(50, 2_000))
def test_the_whole_discoveries_never_exceed_the_budget_but_for_the_newest(
    sizes: list[int], budget: int
) -> None:
    messages = [m for n, size in enumerate(sizes) for m in search(n, size)]

    sent = compacted(messages, discovery_tokens=budget)

    texts = [m.text for m in sent if isinstance(m, ResultMessage) and m.text != "(Left out.)"]
    assert len(sent) == len(messages)
    assert sum(map(estimate, texts[:-1])) <= budget


@settings(deadline=None)
@given(st.lists(st.integers(20, 2_000), min_size=1, max_size=30), st.integers(50, 2_000))
def test_between_two_steps_the_prompt_only_grows_at_its_end(sizes: list[int], budget: int) -> None:
    messages: list[Message] = []
    before: list[Message] = []
    steps = 0
    for n, size in enumerate(sizes):
        messages += search(n, size)
        now = compacted(messages, discovery_tokens=budget)
        assert now == compacted(messages, discovery_tokens=budget)
        steps += now[: len(before)] != before
        before = now

    # Each step frees at least half the budget, so there are few.
    assert steps <= 1 + 2 * sum(map(estimate, ("x" * size for size in sizes))) // budget


def test_a_tool_found_or_used_once_stays_callable_after_any_compaction() -> None:
    registry = Registry()
    for n in range(40):
        registry.tool(lambda n=n: f"ran {n}", name=f"tool_{n}")
    script = [
        step
        for n in range(40)
        for step in (calls(("tool_search", {"query": f"tool_{n}"})), says("ok"))
    ]
    script += [
        calls(("tool_call", {"name": "tool_0", "arguments": {}}), ("tool_1", {})),
        says("done"),
    ]
    model = ScriptedModel(script)
    agent = Agent(
        model, registry, settings=Settings(enabled="on"), limits=Limits(discovery_tokens=60)
    )
    conversation = agent.conversation()
    for n in range(40):
        wait(conversation.ask(f"look {n}"))
    wait(conversation.ask("use the first ones"))

    results = [m for m in conversation.messages if isinstance(m, ResultMessage)]
    shrunk = [m for m in conversation.prompt() if isinstance(m, ResultMessage)]
    assert [m.text for m in results[-2:]] == ["ran 0", "ran 1"]
    assert shrunk[0].text == "(Left out.)"
