"""What clients do to a conversation between two requests, and what the model sees all the same."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from support.proxying import Between, Call, Say, Think, items_of, mcp_tools, texts_of
from support.sdk_agents import AGENTS, MessagesAgent, ResponsesAgent
from toolfold import Settings

RENAME, COPY = "mcp__files__rename_file", "mcp__files__copy_file"
SEARCH = Call("tool_search", {"query": "rename a file"})


def wrapped(name: str, path: str = "a") -> Call:
    return Call("tool_call", {"name": name, "arguments": {"path": path}})


def playing(*replies: Any) -> Between:
    left = iter(replies)
    return Between(lambda asked: next(left, [Say("Done.")]))


def test_a_mark_for_the_cache_moves_on_and_nothing_else_does() -> None:
    wire = playing([Say("Looking."), SEARCH], [Say("There is one.")], [SEARCH], [Say("Yes.")])

    class Marking(MessagesAgent):
        def ask(self) -> Any:
            unmarked = self.items
            self.items = marked = copy.deepcopy(unmarked)
            last = marked[-1]
            if isinstance(last["content"], str):
                last["content"] = [{"type": "text", "text": last["content"]}]
            last["content"][-1]["cache_control"] = {"type": "ephemeral"}
            made = super().ask()
            self.items = [*unmarked, self.items[-1]]
            return made

    agent = Marking(wire, True)
    agent.talk("is there one?")
    agent.talk("sure?")
    last = items_of(wire.asked[-1].body)
    assert [item["role"] for item in last] == ["user", "assistant"] * 3 + ["user"]
    assert [call.name for call in wire.asked[-1].calls] == ["tool_search", "tool_search"]


def test_results_between_parallel_calls_are_put_behind_them() -> None:
    wire = playing([SEARCH], [Say("Both."), wrapped(RENAME), wrapped(COPY)])
    agent = ResponsesAgent(wire, False)
    agent.say("do both")
    one, other = agent.ask()
    calls = agent.items[-2:]
    agent.items[-2:] = []
    for call, handed in zip(calls, (one, other), strict=True):
        agent.items.append(call)
        agent.results([handed])
    agent.ask()
    kinds = [item.get("type", item.get("role")) for item in items_of(wire.asked[-1].body)]
    assert kinds == [
        "user", "function_call", "function_call_output", "message", "function_call",
        "function_call", "function_call_output", "function_call_output",
    ]  # fmt: skip
    assert texts_of(wire.asked[-1].body)[:3] == texts_of(wire.asked[1].body)


@pytest.mark.parametrize("dialect", list(AGENTS))
def test_a_client_that_drops_a_call_gets_direct_calls(dialect: str) -> None:
    wire = playing([SEARCH], [wrapped(RENAME), wrapped(COPY)])
    agent = AGENTS[dialect](wire, False)
    agent.say("do both")
    one, _ = agent.ask()
    last = agent.items[-1]
    if dialect == "openai-chat":
        last["tool_calls"].pop()
    elif dialect == "anthropic-messages":
        last["content"].pop()
    else:
        agent.items.pop()
    agent.results([one])
    agent.ask()
    asked = wire.asked[-1]
    assert [call.name for call in asked.calls] == [RENAME]
    assert [result.call_id for result in asked.results] == [one.id]


@pytest.mark.parametrize("dialect", list(AGENTS))
def test_a_client_that_changes_arguments_gets_what_it_ran(dialect: str) -> None:
    wire = playing([wrapped(RENAME)])
    agent = AGENTS[dialect](wire, False)
    agent.say("go")
    calls = agent.ask()
    changed = json.loads(
        json.dumps(agent.items[-1]).replace('\\"a\\"', '\\"b\\"').replace('"a"}', '"b"}')
    )
    agent.items[-1] = changed
    agent.results(calls)
    agent.ask()
    [made] = wire.asked[-1].calls
    assert made.name == RENAME


@pytest.mark.parametrize("dialect", list(AGENTS))
def test_signed_thinking_survives_where_nothing_was_hidden(dialect: str) -> None:
    wire = playing([Think("Signed."), Call("shell", {"path": "a"})])
    agent = AGENTS[dialect](wire, True)
    agent.talk("go")
    given, sent = texts_of(wire.given[-1]), texts_of(wire.asked[-1].body)
    assert sent == given


def test_the_clients_own_tools_keep_place_and_bytes() -> None:
    tools = mcp_tools("openai-chat", own=("read",)) + mcp_tools(
        "openai-chat", own=("write",), verbs=()
    )
    body = json.dumps(
        {"tools": tools, "model": "m", "messages": [{"role": "user", "content": "hi"}]}, indent=1
    )
    wire = Between(lambda asked: [Say("Hi.")], settings=Settings(enabled="on"))
    wire.answer("/v1/chat/completions", body.encode())
    sent = wire.asked[0].body.decode()
    names = [tool.name for tool in wire.asked[0].tools]
    assert names == ["read", "write", "tool_search", "tool_describe", "tool_call"]
    for tool in (tools[0], tools[-1]):
        text = json.dumps(tool, indent=1).replace("\n", "\n  ")
        assert text in body
        assert text in sent
    at = body.index('"model"')
    assert sent.endswith(body[at:])


@pytest.mark.parametrize("dialect", list(AGENTS))
def test_a_cancelled_turn_leaves_no_trace(dialect: str) -> None:
    wire = playing([SEARCH], [wrapped(RENAME)], [Say("Done.")])
    agent = AGENTS[dialect](wire, True)
    agent.say("rename it")
    agent.ask()
    # The client was stopped before it kept the answer.
    while agent.items[-1].get("role") != "user":
        agent.items.pop()
    agent.say("stop, something else")
    agent.ask()
    assert texts_of(wire.asked[-1].body) == texts_of(wire.given[-1])
