"""A server over stdio that runs once, however many gateways there are."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest

from cluster.postgres import Postgres
from cluster.serving import Replica, book, soon

SERVER = str(Path(__file__).with_name("single_server.py"))


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """What the server writes down."""
    return tmp_path / "book"


@pytest.fixture
def replicas(tmp_path: Path, written: Path) -> Iterator[Callable[..., list[Replica]]]:
    """Starts gateways over one store."""
    with ExitStack() as stack:

        def started(store: str, count: int = 2, run: str = "once", **more: Any) -> list[Replica]:
            entry = {"command": sys.executable, "args": ["-S", "-E", SERVER, str(written)]}
            made = [
                Replica(tmp_path, f"r{n}", store, {"one": {**entry, "run": run}}, **more)
                for n in range(count)
            ]
            with ThreadPoolExecutor(count) as pool:
                list(pool.map(stack.enter_context, made))
            return made

        yield started


def starts(written: Path) -> list[int]:
    """The processes that were started; none ran beside another."""
    assert not [line for line in book(written) if line[0] == "overlap"]
    return [pid for what, _, pid in book(written) if what == "start"]


def ran(written: Path) -> Counter[str]:
    """How often each call ran."""
    return Counter(x for what, x, _ in book(written) if what == "call")


def keeps_lists(address: str) -> bool:
    """Whether what the server lists is kept."""
    with psycopg.connect(address) as connection:
        connection.execute("set toolfold.tenant = 'default'")
        found = connection.execute(
            "select 1 from toolfold.documents where name like 'manifests/%'"
        ).fetchone()
    return found is not None


def holder_first(made: list[Replica]) -> tuple[Replica, Replica]:
    """Return the replica that runs the server, and another."""
    soon(lambda: any(each.said("runs at this replica") for each in made))
    one = next(each for each in made if each.said("runs at this replica"))
    return one, next(each for each in made if each is not one)


def test_it_is_started_once_and_answers_at_both(
    address: str, replicas: Callable[..., list[Replica]], written: Path
) -> None:
    holder, other = holder_first(replicas(address))
    here, there = holder.session(), other.session()
    assert here.tools() == there.tools() == ["one__write", "one__slow", "one__grow", "one__huge"]
    for number, session in enumerate((here, there, there, here)):
        assert session.call("one__write", x=f"x{number}") == f"x{number}"
    with ThreadPoolExecutor(16) as pool:
        sessions = [holder.session() for _ in range(3)] + [other.session() for _ in range(3)]

        def call(n: int) -> str:
            return sessions[n % 6].call("one__write", x=f"y{n}")

        assert list(pool.map(call, range(60))) == [f"y{n}" for n in range(60)]
    assert set(ran(written).values()) == {1}
    assert len(starts(written)) == 1

    pid = starts(written)[0]
    read = there.result("resources/read", uri="book://one")
    assert read["contents"][0]["text"] == f"read by {pid}"
    [prompt] = there.result("prompts/list")["prompts"]
    got = there.result("prompts/get", name=prompt["name"], arguments={"who": "Ann"})
    assert got["messages"][0]["content"]["text"] == "Greet Ann."
    ref = {"type": "ref/prompt", "name": prompt["name"]}
    argument = {"name": "who", "value": "A"}
    found = there.result("completion/complete", ref=ref, argument=argument)
    assert found["completion"]["values"] == ["Ann", "Bob"]

    meta = {"progressToken": "p"}
    told = there.ask("tools/call", name="one__slow", arguments={"x": "p", "seconds": 1}, _meta=meta)
    assert told[0]["params"]["message"] == "half"

    assert there.call("one__grow", x="sing") == "sing"
    soon(lambda: "one__sing" in there.tools() and "one__sing" in here.tools())
    refused = there.ask("tools/call", name="one__huge", arguments={})[-1]
    assert "replicas pass on 16777216" in str(refused)


def test_a_call_that_is_given_up_is_given_up_where_it_runs(
    address: str, replicas: Callable[..., list[Replica]], written: Path
) -> None:
    _, other = holder_first(replicas(address))
    there = other.session()
    there.tools()
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(
            other.post,
            {"id": 77, "method": "tools/call",
             "params": {"name": "one__slow", "arguments": {"x": "s", "seconds": 30}}},
            there.headers,
        )  # fmt: skip
        soon(lambda: ran(written)["s"])
        params = {"requestId": 77, "reason": "enough"}
        other.post({"method": "notifications/cancelled", "params": params}, there.headers)
        soon(lambda: "given up" in [what for what, _, _ in book(written)])
        slow.cancel()
        other.process.kill()


def test_each_replica_runs_one_where_that_is_the_choice(
    address: str, replicas: Callable[..., list[Replica]], written: Path
) -> None:
    made = replicas(address, run="each")
    for each in made:
        assert each.session().call("one__write", x=each.name) == each.name
    assert len([line for line in book(written) if line[0] == "start"]) == 2


def test_when_its_replica_is_killed_under_load_another_takes_it_over(
    address: str, replicas: Callable[..., list[Replica]], written: Path
) -> None:
    holder, other = holder_first(replicas(address))
    there = [other.session() for _ in range(4)]
    there[0].tools()
    stopped = threading.Event()
    said: dict[str, str] = {}

    def load(number: int) -> None:
        count = 0
        while not stopped.is_set():
            x = f"{number}-{count}"
            said[x] = there[number].call("one__slow", x=x, seconds=0.2)
            count += 1

    with ThreadPoolExecutor(4) as pool:
        tasks = [pool.submit(load, number) for number in range(4)]
        soon(lambda: len(said) > 8)
        holder.process.kill()
        holder.process.wait(10)
        soon(lambda: len(starts(written)) == 2)
        first, second = starts(written)
        soon(lambda: [pid for what, _, pid in book(written) if what == "done"].count(second) > 8)
        stopped.set()
        for task in tasks:
            task.result()
    counted = ran(written)
    assert set(counted.values()) == {1}
    failed = {x: text for x, text in said.items() if text != x}
    # Those that were under way, and no others; each says that it may have run.
    assert len(failed) <= 4
    for text in failed.values():
        assert text.startswith("one__slow failed: the server 'one' died over it. It may have had")
    assert all(counted[x] for x in said if x not in failed)
    assert first != second
    holder.start()
    assert holder.session().call("one__write", x="back") == "back"
    assert len(starts(written)) == 2


def test_a_replica_that_starts_while_nobody_runs_it_has_its_tools_and_calls_wait(
    address: str, replicas: Callable[..., list[Replica]], written: Path
) -> None:
    holder, other = holder_first(replicas(address))
    soon(lambda: other.said("server one: ready"))
    soon(lambda: keeps_lists(address))
    for each in (other, holder):
        each.process.kill()
        each.process.wait(10)

    other.start()
    session = other.session()
    assert session.call("one__write", x="late") == "late"
    assert session.tools() == ["one__write", "one__slow", "one__grow", "one__huge"]
    assert len(starts(written)) == 2
    assert ran(written) == {"late": 1}


def test_when_its_replica_is_paused_it_ends_before_another_starts_it(
    address: str, replicas: Callable[..., list[Replica]], written: Path
) -> None:
    holder, other = holder_first(replicas(address))
    there, here = other.session(), holder.session()
    assert there.call("one__write", x="a") == "a"
    holder.signal(signal.SIGSTOP)
    # Nobody has heard it: it waits for the next replica, and runs there once.
    assert there.call("one__write", x="b") == "b"
    assert len(starts(written)) == 2
    holder.signal(signal.SIGCONT)
    assert here.call("one__write", x="c") == "c"
    assert there.call("one__write", x="d") == "d"
    assert set(ran(written).values()) == {1}
    assert len(starts(written)) == 2


def test_it_lives_through_a_restart_of_the_database(
    postgres_alone: tuple[Postgres, str],
    replicas: Callable[..., list[Replica]],
    written: Path,
) -> None:
    server, address = postgres_alone
    holder, other = holder_first(replicas(address))
    here, there = holder.session(), other.session()
    assert there.call("one__write", x="a") == "a"
    server.stop("fast")
    assert here.call("one__write", x="b") == "b"
    server.start()
    soon(lambda: there.call("one__write", x=f"c{os.urandom(4).hex()}").startswith("c"))
    assert set(ran(written).values()) == {1}
    assert len(starts(written)) == 1

    server.stop("fast")
    # Longer than the lease: it ends where it ran.
    first = starts(written)[0]
    soon(lambda: not Path(f"/proc/{first}").exists())
    server.start()
    assert there.call("one__write", x="d") == "d"
    assert here.call("one__write", x="e") == "e"
    assert len(starts(written)) == 2
    assert set(ran(written).values()) == {1}


def test_when_its_replica_is_stopped_in_order_nothing_is_lost(
    address: str, replicas: Callable[..., list[Replica]], written: Path
) -> None:
    holder, other = holder_first(replicas(address))
    there = [other.session() for _ in range(3)]
    there[0].tools()

    def load(number: int) -> list[str]:
        return [there[number].call("one__slow", x=f"{number}-{n}", seconds=0.1) for n in range(40)]

    with ThreadPoolExecutor(3) as pool:
        tasks = [pool.submit(load, number) for number in range(3)]
        soon(lambda: len(ran(written)) > 15)
        holder.signal(signal.SIGTERM)
        for number, task in enumerate(tasks):
            assert task.result() == [f"{number}-{n}" for n in range(40)]
    assert set(ran(written).values()) == {1}
    assert len(starts(written)) == 2
