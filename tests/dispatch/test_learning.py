"""What a memory learns from calls and searches, through the doors that have one."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from support.gateways import client, gateway, run
from toolfold import Settings
from toolfold.dispatch.learning import Learning
from toolfold.memory import Memory, MemoryRecord
from toolfold.proxy.loop import FoldedExchange
from toolfold.proxy.opening import open_exchange
from toolfold.runtime import Agent, Registry, ScriptedModel, calls, says
from toolfold.store.entries import MemoryEntries

ON = Settings(enabled="on", cache_dir="off")


def mail() -> Registry:
    registry = Registry()

    @registry.tool(toolset="mail")
    def send_email(to: str) -> str:
        """Send an email to somebody."""
        if to == "nobody":
            raise ValueError("there is nobody")
        return f"sent to {to}"

    @registry.tool(toolset="mail", read_only=True)
    def find_contact(name: str) -> str:
        """Find the address of a contact."""
        return f"{name}@example.com"

    return registry


def kept(memory: Memory) -> list[tuple[str, str, int, int]]:
    return sorted((r.request, r.tool, r.worked, r.failed) for r in memory.records())


def call(tool: str, /, **arguments: object) -> tuple[str, dict[str, object]]:
    return "tool_call", {"name": tool, "arguments": arguments}


def test_an_agent_learns_what_its_searches_led_to() -> None:
    memory = Memory()
    model = ScriptedModel(
        [
            calls(("tool_search", {"query": "mail somebody"})),
            calls(call("send_email", to="ann")),
            says("Done."),
        ]
    )

    asyncio.run(Agent(model, mail(), settings=ON, memory=memory, name="bot").run("Write to Ann."))

    assert kept(memory) == [("mail somebody", "send_email", 1, 0)]
    (record,) = memory.records()
    assert record.principal == "bot"
    assert record.digest
    assert record.ranked


def test_what_was_named_before_the_model_asked_is_learnt_with_the_users_own_words() -> None:
    memory = Memory()
    model = ScriptedModel([calls(call("send_email", to="ann")), says("Done.")])
    agent = Agent(model, mail(), settings=ON, memory=memory, prefetch="always")

    asyncio.run(agent.run("Send an email to Ann."))

    ((request, tool, worked, failed),) = kept(memory)
    assert "email" in request
    assert (tool, worked, failed) == ("send_email", 1, 0)


def test_an_agent_without_a_memory_learns_nothing_and_one_that_fails_is_no_evidence() -> None:
    memory = Memory()
    model = ScriptedModel(
        [
            calls(("tool_search", {"query": "mail somebody"})),
            calls(call("send_email", to="nobody")),
            says("It failed."),
        ]
    )

    asyncio.run(Agent(model, mail(), settings=ON, memory=memory).run("Write."))

    assert [(worked, failed) for *_, worked, failed in kept(memory)] in ([], [(0, 1)])


def test_each_need_is_learnt_with_its_own_tool_and_both_as_used_together() -> None:
    memory = Memory()
    task = (
        calls(("tool_search", {"query": "find the address of a contact | send an email"})),
        calls(call("find_contact", name="ann"), call("send_email", to="ann")),
        says("Done."),
    )
    agent = Agent(ScriptedModel((*task, *task)), mail(), settings=ON, memory=memory)
    asyncio.run(agent.run("Write to Ann."))
    asyncio.run(agent.run("Write to Ann again."))
    memory.flush()

    pairs = {(request, tool) for request, tool, *_ in kept(memory)}
    assert ("find the address of a contact", "find_contact") in pairs
    assert ("send an email", "send_email") in pairs
    folded = agent.assemble()
    beside = memory.beside(folded.catalog["send_email"], folded.catalog)
    assert [tool.name for tool in beside] == ["find_contact"]


def test_a_search_in_vain_belongs_to_what_the_next_one_led_to() -> None:
    learning = Learning(Memory())
    learning.asked("ann", "s", "shoot a note over", [])
    learning.asked("ann", "s", "send an email", [("send an email", "send_email")])
    learning.used("ann", "s", ("send_email", "d"), worked=True)

    assert {r.request for r in learning.memory.records()} == {"shoot a note over", "send an email"}


def test_a_call_belongs_to_no_search_of_another_session_or_principal() -> None:
    learning = Learning(Memory())
    learning.asked("ann", "s", "send an email", [("send an email", "send_email")])
    learning.used("ben", "s", ("send_email", "d"), worked=True)
    learning.used("ann", "t", ("send_email", "d"), worked=True)
    learning.used("ann", "s", ("other_tool", "d"), worked=True)

    assert not list(learning.memory.records())


def test_sessions_without_end_take_no_room_without_end() -> None:
    learning = Learning(Memory())
    for number in range(3_000):
        learning.asked("ann", str(number), "x", [("x", "tool")])

    assert len(learning._courses) <= 1_024  # pyright: ignore[reportPrivateUsage]


def test_the_gateway_learns_and_ranks_for_its_callers() -> None:
    memory = Memory(share="principal")

    async def main() -> None:
        settings = {"enabled": "on"}
        async with (
            gateway(sources=[mail()], settings=settings, memory=memory) as made,
            client(made) as c,
        ):
            await c.call_tool("tool_search", {"query": "mail somebody"})
            await c.call_tool("tool_call", {"name": "send_email", "arguments": {"to": "ann"}})

    run(main)

    assert [(request, worked) for request, _, worked, _ in kept(memory)] == [("mail somebody", 1)]


# ---- the proxy

TOOLS = [
    {
        "name": name,
        "description": name.replace("_", " ").capitalize() + ".",
        "input_schema": {"type": "object", "properties": {"to": {"type": "string"}}},
    }
    for name in ("send_email", "read_file", "list_issues", "translate_text")
]


def asks(*messages: dict[str, Any], said: str = "mail a@b.c") -> bytes:
    first = {"role": "user", "content": said}
    body = {"model": "m", "max_tokens": 9, "tools": TOOLS, "messages": [first, *messages]}
    return json.dumps(body).encode()


def says_call(name: str, arguments: dict[str, Any], call_id: str) -> bytes:
    block = {"type": "tool_use", "id": call_id, "name": name, "input": arguments}
    return json.dumps(
        {
            "id": "msg_1", "type": "message", "role": "assistant", "model": "m",
            "content": [block], "stop_reason": "tool_use",
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
    ).encode()  # fmt: skip


@pytest.mark.parametrize("is_error", [False, True])
def test_the_proxy_learns_from_the_clients_next_request(is_error: bool) -> None:
    learning, store = Learning(Memory()), MemoryEntries()

    def opened(body: bytes) -> Any:
        return open_exchange(
            "anthropic-messages", body, {}, settings=ON, store=store, owner="ann", learning=learning
        )

    exchange = opened(asks())
    exchange.end(says_call("tool_search", {"query": "send an email"}, "toolu_000001aaaaaaa"))
    wanted = {"name": "send_email", "arguments": {"to": "a@b.c"}}
    exchange.end(says_call("tool_call", wanted, "toolu_000002aaaaaaa"))
    assert not list(learning.memory.records())

    called = {"type": "tool_use", "id": "toolu_000002aaaaaaa", "name": "send_email", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "toolu_000002aaaaaaa", "content": "x"}
    result |= {"is_error": True} if is_error else {}
    opened(asks({"role": "assistant", "content": [called]}, {"role": "user", "content": [result]}))

    assert kept(learning.memory) == [
        ("send an email", "send_email", int(not is_error), int(is_error))
    ]
    (record,) = learning.memory.records()
    assert isinstance(record, MemoryRecord)
    assert record.principal == "ann"


def test_behind_the_proxy_a_note_is_learnt_as_a_search_is() -> None:
    learning, store = Learning(Memory()), MemoryEntries()
    settings, said = replace(ON, prefetch="always"), "Send an email to Ann."

    exchange = open_exchange(
        "anthropic-messages", asks(said=said), {}, settings=settings, store=store, owner="ann",
        learning=learning,
    )  # fmt: skip
    assert isinstance(exchange, FoldedExchange)
    wanted = {"name": "send_email", "arguments": {"to": "a@b.c"}}
    exchange.end(says_call("tool_call", wanted, "toolu_000002aaaaaaa"))
    called = {"type": "tool_use", "id": "toolu_000002aaaaaaa", "name": "send_email", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "toolu_000002aaaaaaa", "content": "x"}
    open_exchange(
        "anthropic-messages",
        asks(
            {"role": "assistant", "content": [called]},
            {"role": "user", "content": [result]},
            said=said,
        ),
        {}, settings=settings, store=store, owner="ann", learning=learning,
    )  # fmt: skip

    ((request, tool, worked, failed),) = kept(learning.memory)
    assert "email" in request
    assert (tool, worked, failed) == ("send_email", 1, 0)
