"""Replicas behind a balancer that keeps nobody with anybody: small versions of `cluster.chaos`."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult

from cluster import ground
from cluster.chaos import PHASES, Chaos
from cluster.ground import Ground, Plan, Replica
from cluster.judge import Verdict, judged, read_account, side_by_side
from cluster.wire import MODERN, OLDER, Fate, Speaker


def _is_here(module: str) -> bool:
    return find_spec(f"toolfold.serve.replica.{module}") is not None


NEEDS_STORE = pytest.mark.skipif(
    not ground.has_store(), reason="not here yet: `serve.store`, what replicas share"
)
SESSIONS = pytest.mark.skipif(
    not (_is_here("roaming_sessions") and _is_here("shared_sessions")),
    reason="not here yet: sessions that go on at another replica, with what they revealed",
)
JOURNAL = pytest.mark.skipif(
    not (_is_here("roaming_sessions") and _is_here("call_journal")),
    reason="not here yet: a journal of calls, asked by the same id",
)

ONCE = {"run": "once"}
"""What the entry of a server says that is to run once for all replicas."""

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def standing(tmp_path: Path) -> Iterator[Callable[..., Ground]]:
    """Sets up a proving ground; without hosts or a database, everything here is skipped."""
    if reason := ground.why_not():
        pytest.skip(reason)
    made: list[Ground] = []

    def set_up(**plan: Any) -> Ground:
        plan.setdefault("clients", 10)
        plan.setdefault("is_shared", ground.has_store())
        made.append(Ground(tmp_path, Plan(**plan)).__enter__())
        return made[-1]

    try:
        yield set_up
    finally:
        for one in made:
            one.__exit__()


def whole(verdicts: list[Verdict], least: int) -> Verdict:
    """What all phases came to together, with what went wrong in words."""
    found = verdicts[-1]
    assert not any(found.faults.values()), (found.row(), found.faults)
    assert found.answered >= least, found.row()
    return found


# ---- every call


@pytest.mark.parametrize("revision", [OLDER, MODERN])
def test_one_replica_answers_every_call_once(
    standing: Callable[..., Ground], revision: str
) -> None:
    chaos = Chaos(standing(replicas=1))

    whole(chaos.run([("calm", 200)], revision=revision), least=200)


@pytest.mark.parametrize("strategy", ["bridge", pytest.param("reveal", marks=SESSIONS)])
def test_two_replicas_answer_every_call_once_where_there_are_no_sessions(
    standing: Callable[..., Ground], strategy: str
) -> None:
    chaos = Chaos(standing(strategy=strategy))

    whole(chaos.run([("calm", 200)], revision=MODERN), least=200)


@SESSIONS
@NEEDS_STORE
@pytest.mark.parametrize("strategy", ["bridge", "reveal"])
def test_two_replicas_answer_every_call_of_every_session_once(
    standing: Callable[..., Ground], strategy: str
) -> None:
    chaos = Chaos(standing(strategy=strategy))

    whole(chaos.run([("calm", 200)]), least=200)


@JOURNAL
@NEEDS_STORE
@pytest.mark.parametrize(
    "phase", [name for name in PHASES if name not in ("warm-up", "calm", "everything")]
)
def test_whatever_breaks_no_call_is_lost_crossed_or_run_twice_and_no_scope_is_wider(
    standing: Callable[..., Ground], phase: str
) -> None:
    chaos = Chaos(standing(replicas=3))
    verdict = whole(chaos.run([(phase, 400)]), least=200)

    assert chaos.done, "nothing happened"
    assert verdict.calls == 400


@JOURNAL
@NEEDS_STORE
def test_a_replica_that_is_cut_off_runs_nothing_that_another_ran_meanwhile(
    standing: Callable[..., Ground],
) -> None:
    made = standing(servers=("stock",), clients=20)
    with made.loading() as loading:
        loading.begin("warm-up", 80)
        loading.end()
        loading.begin("cut off", 400)
        time.sleep(0.3)
        made.network.part("r2", "db1", "db2", "balancer")
        time.sleep(12)
        made.network.mend("r2", "db1", "db2", "balancer")
        loading.end()

    whole(judged(*read_account(loading.account), made.ledger), least=400)


def test_a_call_that_a_dying_replica_had_is_told_from_one_that_it_had_not(
    standing: Callable[..., Ground],
) -> None:
    """Without a journal a client cannot know what became of it; the judge sees it all the same."""
    chaos = Chaos(standing(servers=("ledger",)))
    verdicts = chaos.run([("replicas killed", 200)], revision=MODERN, tries_again=False)
    faults = {kind: found for kind, found in verdicts[-1].faults.items() if found}

    assert set(faults) <= {"lost"}, faults
    assert len(faults.get("lost", [])) <= 10 * len(chaos.done)  # one a client, at most


# ---- sessions


@SESSIONS
@NEEDS_STORE
def test_a_session_goes_on_whichever_replica_is_gone(
    standing: Callable[..., Ground],
) -> None:
    made = standing(strategy="reveal")

    async def main() -> list[str]:
        async with _connected(made.url, made.tokens[0]) as client:

            async def listed() -> list[str]:
                return sorted(tool.name for tool in (await client.list_tools()).tools)

            await client.call_tool("tool_search", {"query": "write a mark on page 0"})
            before = await listed()
            for replica in made.replicas:
                await asyncio.to_thread(replica.crash)
                for n in range(4):
                    assert await listed() == before
                    mark = f"moved-{replica.host.name}-{n}"
                    arguments = {"mark": mark, "who": "client0"}
                    result = await client.call_tool("ledger__write_0", arguments)
                    assert f"ledger write_0 client0 {mark}" in str(result.content)
                replica.start()
                await asyncio.to_thread(replica.until_ready)
                await asyncio.sleep(2)  # until the balancer knows
            return before

    names = made.network["clients"].run(lambda: asyncio.run(main()))

    assert "ledger__write_0" in names


@SESSIONS
@NEEDS_STORE
def test_a_session_is_nobody_elses_on_any_replica(standing: Callable[..., Ground]) -> None:
    made = standing()

    async def main() -> list[str]:
        async with httpx2.AsyncClient(trust_env=False) as http:
            own = Speaker(http, made.url, made.tokens[0], OLDER, "")
            await own.open()
            theirs = [_speaker(http, made, replica, 1) for replica in made.replicas]
            for speaker in theirs:
                speaker.join(own.session)
            replies = [await speaker.ask("tools/list", {}, 1) for speaker in theirs]
            return [reply.fate.value for reply in replies]

    assert made.network["clients"].run(lambda: asyncio.run(main())) == [
        Fate.NO_SESSION.value
    ] * len(made.replicas)


# ---- what is decided on one holds on all


@NEEDS_STORE
def test_what_is_approved_on_one_replica_can_be_used_on_all_within_a_second(
    standing: Callable[..., Ground],
) -> None:
    made = standing(serve={"trust": "all"}, servers=("ledger",))
    name = "ledger__write_0"
    assert _answers(made, name) == [False, False]
    (waiting,) = made.replicas[0].tell("trust.pending", {})["servers"]
    decided = time.monotonic()
    made.replicas[0].tell("trust.approve", {"server": "ledger", "digest": waiting["digest"]})

    _within_a_second(decided, lambda: _answers(made, name) == [True, True])


@NEEDS_STORE
def test_a_replica_that_was_away_knows_what_was_decided_when_it_is_back(
    standing: Callable[..., Ground],
) -> None:
    made = standing(serve={"trust": "all"}, servers=("ledger",))
    made.network.part("r2", "db1", "db2")
    (waiting,) = made.replicas[0].tell("trust.pending", {})["servers"]
    made.replicas[0].tell("trust.approve", {"server": "ledger", "digest": waiting["digest"]})
    assert _answers(made, "ledger__write_0") == [True, False]
    made.network.mend("r2", "db1", "db2")

    _until(lambda: _answers(made, "ledger__write_0") == [True, True], 20)


@NEEDS_STORE
def test_a_token_made_on_one_replica_opens_all_and_revoked_none_within_a_second(
    standing: Callable[..., Ground],
) -> None:
    made = standing(servers=("ledger",))
    first = made.replicas[0]
    token = json.loads(_command(first, "tokens", "create", "extra", "--json"))["token"]
    began = time.monotonic()
    _within_a_second(began, lambda: _answers(made, "ledger__write_3", token) == [True, True])
    _command(first, "tokens", "revoke", "extra")
    began = time.monotonic()

    _within_a_second(began, lambda: _answers(made, "ledger__write_3", token) == [False, False])


@NEEDS_STORE
def test_a_token_revoked_while_a_replica_was_away_opens_nothing_there_when_it_is_back(
    standing: Callable[..., Ground],
) -> None:
    made = standing(servers=("ledger",))
    token = json.loads(_command(made.replicas[0], "tokens", "create", "extra", "--json"))["token"]
    _until(lambda: _answers(made, "ledger__write_3", token) == [True, True], 10)
    made.network.part("r2", "db1", "db2")
    _command(made.replicas[0], "tokens", "revoke", "extra")
    _until(lambda: not _answers(made, "ledger__write_3", token)[0], 10)
    for _ in range(3):  # a connection that is lost and found is lost again
        made.primary.restart("immediate")
    made.network.mend("r2", "db1", "db2")

    _until(lambda: _answers(made, "ledger__write_3", token) == [False, False], 30)


@NEEDS_STORE
def test_calls_do_not_wait_for_a_database_that_is_away(standing: Callable[..., Ground]) -> None:
    made = standing(replicas=1, servers=("ledger",), clients=4)
    with made.loading(revision=MODERN) as loading:
        loading.begin("warm-up", 40)
        loading.end()
        for phase in ("first", "second", "third"):
            loading.begin(phase, 200)
            made.primary.restart("fast" if phase == "second" else "immediate")
            loading.end()
        made.primary.kill()
        loading.begin("away", 200)
        loading.end()
    verdicts = judged(*read_account(loading.account), made.ledger)[1:-1]

    assert [verdict.answered for verdict in verdicts] == [200] * 4
    assert max(verdict.longest for verdict in verdicts) < 2.5, [v.row() for v in verdicts]


@NEEDS_STORE
def test_a_rate_counts_across_replicas(standing: Callable[..., Ground]) -> None:
    made = standing(serve={"rate_limit": 60}, servers=("ledger",), clients=1)

    async def main() -> int:
        async with httpx2.AsyncClient(trust_env=False) as http:
            speaker = Speaker(http, made.url, made.tokens[0], MODERN, "the-only-conversation")
            replies = [await speaker.ask("tools/list", {}, n) for n in range(90)]
            return sum(reply.fate is Fate.ANSWERED for reply in replies)

    began = time.monotonic()
    admitted = made.network["clients"].run(lambda: asyncio.run(main()))

    # The burst of one replica, and what is admitted a second while it lasts.
    assert admitted <= 10 + (time.monotonic() - began) + 2, admitted


@SESSIONS
@NEEDS_STORE
def test_a_server_that_runs_once_runs_once_though_its_replica_dies(
    standing: Callable[..., Ground],
) -> None:
    made = standing(replicas=3, servers=("stock",), entries={"stock": ONCE})
    chaos = Chaos(made)
    whole(chaos.run([("calm", 100), ("replicas killed", 300), ("parted", 200)]), least=300)

    assert side_by_side(made.ledger, "stock") == []


@pytest.mark.parametrize("replicas", [1, pytest.param(2, marks=NEEDS_STORE)])
def test_a_server_that_runs_once_asks_the_client_whose_call_it_is_wherever_that_is(
    standing: Callable[..., Ground], replicas: int
) -> None:
    entries = {"stock": ONCE} if replicas > 1 else {}
    made = standing(replicas=replicas, servers=("stock",), entries=entries)

    async def main() -> list[str]:
        texts: list[str] = []
        for number, replica in enumerate(made.replicas):
            name = f"client{number}"

            async def answered(*_: Any, name: str = name) -> ElicitResult:
                return ElicitResult(action="accept", content={"name": name})

            async with _connected(
                replica.url, made.tokens[number], elicitation_callback=answered
            ) as client:
                arguments = {"mark": f"asked-{number}", "who": "?"}
                texts.append(str((await client.call_tool("stock__confirm", arguments)).content))
        return texts

    texts = made.network["clients"].run(lambda: asyncio.run(main()))

    assert len(texts) == replicas
    for number, text in enumerate(texts):
        assert f"stock confirm client{number} asked-{number}" in text


# ---- in words


def _speaker(http: httpx2.AsyncClient, made: Ground, replica: Replica, number: int) -> Speaker:
    return Speaker(http, replica.url, made.tokens[number], OLDER, "")


def _answers(made: Ground, tool: str, token: str = "") -> list[bool]:
    """Whether a tool can be used, on each replica."""

    async def main() -> list[bool]:
        async with httpx2.AsyncClient(trust_env=False, timeout=10) as http:
            found: list[bool] = []
            for replica in made.replicas:
                who = token or made.tokens[0]
                speaker = Speaker(http, replica.url, who, MODERN, "who-looks-at-all-replicas")
                arguments = {"mark": f"look-{time.monotonic()}", "who": "look"}
                reply = await speaker.call(tool, arguments, 1)
                found.append(reply.fate is Fate.ANSWERED and not reply.is_error)
            return found

    return made.network["clients"].run(lambda: asyncio.run(main()))


def _within_a_second(began: float, holds: Callable[[], bool]) -> None:
    _until(holds, 10)
    assert time.monotonic() - began < 1


def _until(holds: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come to hold in time"
        time.sleep(0.02)


def _command(replica: Replica, *arguments: str) -> str:
    """Run a command of toolfold's on a replica's host."""
    command = [sys.executable, "-m", "toolfold", *arguments, "--config", str(replica.config)]
    done = subprocess.run(
        replica.host.command(*command), check=True, capture_output=True, text=True
    )
    return done.stdout


@asynccontextmanager
async def _connected(url: str, token: str, **more: Any) -> AsyncGenerator[Client]:
    """The official client over HTTP, in a revision with sessions."""
    headers, timeout = {"Authorization": f"Bearer {token}"}, httpx2.Timeout(30, read=None)
    async with (
        httpx2.AsyncClient(headers=headers, timeout=timeout, trust_env=False) as http,
        Client(streamable_http_client(url, http_client=http), mode="legacy", **more) as client,
    ):
        yield client
