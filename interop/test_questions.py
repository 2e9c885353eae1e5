"""What a server asks in the middle of a call reaches the client of that call, and back again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from clients import Answers, Target, Way, connected, text
from gateways import Gateway, configured
from mcp.shared.exceptions import MCPError
from servers import everything_entry, tapped
from ways import python_way

from conftest import run, until
from wire import NEW, over_stdio


@pytest.fixture
def everything(tmp_path: Path) -> Gateway:
    """A gateway of the test's own: what a server knows of roots stays in its process."""
    return configured(tmp_path, {"everything": everything_entry()})


@contextmanager
def reached(gateway: Gateway, way: Way) -> Generator[Target]:
    if way.over == "stdio":
        yield Target(command=gateway.command)
    else:
        with gateway.listening() as url:
            yield Target(url=url)


def texts(result: dict[str, Any]) -> str:
    return "\n".join(block["text"] for block in result["content"])


@python_way
def test_a_person_accepts_declines_and_cancels_what_a_server_asks(
    way: Way, everything: Gateway
) -> None:
    filled = {"name": "Ada", "check": True, "integer": 7}
    replies = iter(
        [{"action": "accept", "content": filled}, {"action": "decline"}, {"action": "cancel"}]
    )

    async def main(target: Target) -> None:
        answers = Answers(elicit=lambda params: next(replies))
        async with connected(way, target, answers) as client:
            accepted = texts(await client.through("everything__trigger-elicitation-request"))
            declined = texts(await client.through("everything__trigger-elicitation-request"))
            cancelled = texts(await client.through("everything__trigger-elicitation-request"))

        assert "- Name: Ada\n- Agreed to terms: true\n- Favorite Integer: 7" in accepted
        assert json.loads(accepted.partition("Raw result: ")[2])["content"] == filled
        assert "User declined" in declined
        assert "User cancelled" in cancelled
        [first, *_] = answers.asked
        assert first["message"] == (
            "The server 'everything' asks: Please provide inputs for the following fields:"
        )
        asked = first["requestedSchema"]["properties"]
        assert asked["legacyTitledEnum"]["enumNames"][0] == "Cats"

    with reached(everything, way) as target:
        run(lambda: main(target))


@python_way
def test_a_person_is_sent_to_an_address(way: Way, everything: Gateway) -> None:
    async def main(target: Target) -> None:
        answers = Answers(elicit=lambda params: {"action": "accept"})
        async with connected(way, target, answers) as client:
            given = {"url": "https://example.com/sign-in", "elicitationId": "one"}
            done = texts(await client.through("everything__trigger-url-elicitation", given))

        assert "URL: https://example.com/sign-in" in done
        [asked] = answers.asked
        assert (asked["mode"], asked["url"]) == ("url", "https://example.com/sign-in")

    with reached(everything, way) as target:
        run(lambda: main(target))


@python_way
def test_a_server_samples_the_clients_model(way: Way, everything: Gateway) -> None:
    async def main(target: Target) -> None:
        answers = Answers(sample=lambda params: "forty-two")
        async with connected(way, target, answers) as client:
            given = {"prompt": "six times seven?", "maxTokens": 5}
            said = texts(await client.through("everything__trigger-sampling-request", given))

        result = json.loads(said.partition("\n")[2])
        assert result["content"]["text"] == "forty-two"
        assert result["model"] == "a-model"
        [asked] = answers.asked
        assert asked["maxTokens"] == 5
        assert asked["systemPrompt"] == "You are a helpful test server."
        assert asked["messages"][0]["content"]["text"].endswith("six times seven?")

    with reached(everything, way) as target:
        run(lambda: main(target))


@python_way
def test_a_server_learns_the_clients_roots(way: Way, everything: Gateway) -> None:
    async def main(target: Target) -> None:
        answers = Answers(roots=["file:///home/ada/work"])
        async with connected(way, target, answers) as client:
            listed = text(await client.through("everything__get-roots-list"))

        assert "URI: file:///home/ada/work" in listed

    with reached(everything, way) as target:
        run(lambda: main(target))


@python_way
def test_a_question_that_the_client_cannot_take_fails_the_call_and_nothing_else(
    way: Way, everything: Gateway
) -> None:
    async def main(target: Target) -> None:
        async with connected(way, target) as client:
            try:
                result = await client.through("everything__trigger-elicitation-request")
            except MCPError as error:
                assert "elicitation" in str(error)
            else:
                assert result["isError"] is True
                assert "elicitation" in texts(result)
            echoed = await client.through("everything__echo", {"message": "still here"})

        assert text(echoed) == "Echo: still here"

    with reached(everything, way) as target:
        run(lambda: main(target))


@pytest.mark.parametrize("per_session", [False, True])
def test_among_five_clients_at_once_each_is_asked_only_its_own_question(
    per_session: bool, tmp_path: Path
) -> None:
    entry = {**everything_entry(), "per_session": per_session}
    made = configured(tmp_path, {"everything": entry})
    ways = [
        Way("official", "old", "http"),
        Way("fastmcp", "new", "http"),
        Way("fastmcp", "old", "http"),
        Way("official", "new", "http"),
        Way("official", "old", "http"),
    ]

    async def main(url: str) -> None:
        async def one(number: int, way: Way) -> str:
            mine = {"action": "accept", "content": {"name": f"client {number}"}}
            answers = Answers(elicit=lambda params: mine)
            async with connected(way, Target(url=url), answers) as client:
                try:
                    return texts(await client.through("everything__trigger-elicitation-request"))
                except MCPError as error:
                    return str(error)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(n, way)) for n, way in enumerate(ways)]
        said = [task.result() for task in tasks]
        for number, (way, answer) in enumerate(zip(ways, said, strict=True)):
            named = {f"client {n}" for n in range(5) if f"Name: client {n}" in answer}
            assert named <= {f"client {number}"}, said
            # With a server process of its own, no client's question is ever in doubt. One of
            # 2026-07-28 over HTTP has no session that could have its own.
            if per_session and way.era == "old":
                assert named, said
            assert named or "which client" in answer, said

    with made.listening() as url:
        run(lambda: main(url))


def test_a_second_question_does_not_lose_the_first(tmp_path: Path) -> None:
    """Soon after its start this server asks for roots, whatever else it is waiting for."""
    log = tmp_path / "given.jsonl"
    made = configured(tmp_path, {"everything": tapped(everything_entry(), log)})
    can = {"elicitation": {"form": {}}, "roots": {}}
    wrapped = {"name": "everything__trigger-elicitation-request", "arguments": {}}
    call: dict[str, Any] = {"name": "tool_call", "arguments": wrapped}
    replies = {
        "elicitation/create": {"action": "accept", "content": {"name": "Ada"}},
        "roots/list": {"roots": []},
    }

    def has_asked_for_roots() -> bool:
        return '"roots/list"' in Path(f"{log}.said").read_text()

    with over_stdio(made.command, NEW, capabilities=can) as wire:
        result = wire.ask("tools/call", call)
        run(lambda: until(has_asked_for_roots))
        asked: list[str] = []
        while result["resultType"] == "input_required":
            [(key, question)] = result["inputRequests"].items()
            asked.append(question["method"])
            answer = {key: replies[question["method"]]}
            state = result["requestState"]
            result = wire.ask(
                "tools/call", {**call, "inputResponses": answer, "requestState": state}
            )

    assert sorted(asked) == ["elicitation/create", "roots/list"]
    assert "- Name: Ada" in texts(result)


@python_way
def test_log_messages_of_a_server_reach_the_client(way: Way, everything: Gateway) -> None:
    async def main(target: Target) -> None:
        answers = Answers(level="debug")
        async with connected(way, target, answers) as client:
            await client.through("everything__toggle-simulated-logging")
            await until(lambda: answers.logs)
            await client.through("everything__toggle-simulated-logging")

        for log in answers.logs:
            assert "essage" in log["data"]

    with reached(everything, way) as target:
        run(lambda: main(target))
