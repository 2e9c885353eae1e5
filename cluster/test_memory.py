"""A memory that several processes share: the same records, and what happens while it is away."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from cluster.postgres import Postgres
from support.memories import TOPICS, UNSEEN, found_first, opaque_tools, taught, teach
from toolfold import Catalog
from toolfold.cli.main import main
from toolfold.memory import Memory, PostgresMemory, Use, _tries, open_memory
from toolfold.settings import MemorySettings
from toolfold.store.postgres.database import Database

Opener = Callable[..., Database]
Made = Callable[..., Memory]


@pytest.fixture
def made(address: str, open_database: Opener) -> Iterator[Made]:
    """Makes memories of processes of their own."""
    opened: list[Memory] = []

    def make(**how: object) -> Memory:
        opened.append(Memory(PostgresMemory(open_database(address)), **how))  # type: ignore[arg-type]
        return opened[-1]

    yield make
    for memory in opened:
        memory.close()


def test_what_one_learns_counts_for_all(made: Made) -> None:
    here, there = made(), made()
    assert found_first(here) <= 1
    teach(there)
    here.flush()
    assert here.size == 30
    assert found_first(here) == len(UNSEEN)


def test_others_hear_of_it_without_being_asked_to_look(made: Made) -> None:
    here, there = made(), made()
    found_first(here)
    teach(there)
    _soon(lambda: found_first(here) == len(UNSEEN))


def test_it_holds_what_a_file_would(made: Made, tmp_path: Path) -> None:
    file, shared = taught(tmp_path / "m.sqlite"), made()
    teach(shared)
    for memory in (file, shared):
        memory.learn(Use(TOPICS["svc_01"][0], "svc_01", opaque_tools()[0].digest, worked=False))
        one, two, three = ((tool.name, tool.digest) for tool in opaque_tools()[:3])
        for at in (1.0, time.time(), time.time()):
            memory.together("ann", one, two, at)
            memory.together("ann", two, three, at)
        memory.flush()

    def lines(memory: Memory) -> list[object]:
        found = [json.loads(line) for line in memory.exported()]
        return sorted(({**line, "at": 0, "ranked": line["ranked"][:1]} for line in found), key=str)

    def same() -> bool:
        beside = [
            [tool.name for tool in memory.beside(opaque_tools()[1], Catalog(opaque_tools()))]
            for memory in (file, shared)
        ]
        return lines(file) == lines(shared) and beside[0] == beside[1]

    assert same()
    assert len(lines(file)) == 31
    forgotten = [
        (m.forget(tool="svc_03"), m.forget(principal="ann", before=10.0), m.forget(principal=""))
        for m in (file, shared)
    ]
    assert forgotten[0] == forgotten[1]
    assert same()
    left = Catalog(opaque_tools()[:5])
    assert file.forget_absent(left) == shared.forget_absent(left)
    assert same()
    assert file.clear() == shared.clear() > 0
    assert lines(file) == lines(shared) == []
    assert found_first(shared) <= 1


def test_the_oldest_leave_first_and_what_is_too_old(made: Made) -> None:
    memory = made(bound=10, age_days=2)
    tool = opaque_tools()[0]
    memory.learn(Use("a very old thing to ask", tool.name, tool.digest, at=1.0))
    teach(memory)
    later = made(bound=10, age_days=2)  # whoever writes first in a process tidies
    later.learn(Use("order flowers for my mother", tool.name, tool.digest))
    later.flush()
    assert later.size <= 10
    assert "a very old thing to ask" not in {record.request for record in later.records()}


def test_tenants_learn_for_themselves_whoever_shares(made: Made) -> None:
    memory, other = made(share="all"), made(share="all")
    teach(memory.for_tenant("acme"))
    shared = other.for_tenant("acme")
    shared.flush()
    assert found_first(shared.of("somebody else there")) == len(UNSEEN)
    for tenant in ("default", "acme ", "ACME", "rival", "' or ''='"):
        one = other.for_tenant(tenant)
        one.flush()
        assert (one.size, found_first(one)) <= (0, 1)
        assert one.clear() == 0
    assert len(list(shared.records())) == 30


def test_a_file_is_taken_over_once_and_stays(
    address: str, open_database: Opener, tmp_path: Path
) -> None:
    file = taught(tmp_path / "memory.sqlite")
    one, two = ((tool.name, tool.digest) for tool in opaque_tools()[:2])
    file.together("ann", one, two)
    file.together("ann", one, two)
    file.close()
    told: list[str] = []
    for start in ("first", "second"):
        memory = open_memory(
            MemorySettings(), tmp_path, database=open_database(address), tell=told.append
        )
        assert memory is not None
        memory.flush()
        assert memory.size == 30
        assert found_first(memory) == len(UNSEEN)
        catalog = Catalog(opaque_tools())
        assert [tool.name for tool in memory.beside(catalog.tools[0], catalog)] == ["svc_02"]
        if start == "second":
            memory.clear()
        memory.close()
    assert told == [
        f"30 requests of {tmp_path / 'memory.sqlite'} are in PostgreSQL now; the file stays"
    ]
    again = open_memory(MemorySettings(), tmp_path, database=open_database(address))
    assert again is not None
    again.flush()
    assert again.size == 0  # what was forgotten does not come back
    again.close()
    assert Memory(tmp_path / "memory.sqlite").size == 30


def test_with_the_database_away_searches_go_on_and_what_is_learnt_waits(
    postgres_alone: tuple[Postgres, str],
    open_database: Opener,
    caplog: pytest.LogCaptureFixture,
) -> None:
    server, address = postgres_alone
    memory = Memory(PostgresMemory(open_database(address)))
    teach(memory)
    assert found_first(memory) == len(UNSEEN)
    server.stop("immediate")
    tool = opaque_tools()[0]
    with caplog.at_level(logging.WARNING, "toolfold.memory"):
        began = time.monotonic()
        for number in range(20):
            memory.learn(Use(f"buy {number} airline seats to Rome", tool.name, tool.digest))
            assert found_first(memory) == len(UNSEEN)
        assert time.monotonic() - began < 2.5  # nobody waits
        memory.flush()
        said = [record.message for record in caplog.records if record.name.startswith("toolfold")]
    assert [text for text in said if "what is learnt waits here" in text] != []
    assert len(said) == len(set(said)) <= 2
    server.start()
    other = Memory(PostgresMemory(open_database(address)))
    _soon(lambda: _size(other) > 30)
    memory.close()
    other.close()


def test_what_waits_is_bounded(
    postgres_alone: tuple[Postgres, str], open_database: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_tries, "POSTPONED", 5)
    server, address = postgres_alone
    memory = Memory(PostgresMemory(open_database(address)))
    tool = opaque_tools()[0]
    server.stop("immediate")
    for topic in TOPICS.values():
        memory.learn(Use(topic[0], tool.name, tool.digest))
    memory.flush()
    server.start()
    _soon(lambda: _size(memory) == 5)
    assert {record.request for record in memory.records()} == {
        topic[0] for topic in list(TOPICS.values())[-5:]
    }
    memory.close()


def test_the_commands_know_it(
    made: Made, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    teach(made().for_tenant("acme"))
    monkeypatch.setenv("TOOLFOLD_STORE", address)
    config = tmp_path / "toolfold.yaml"
    config.write_text(f"serve:\n  store: TOOLFOLD_STORE\n  state_dir: {tmp_path}\n")

    def asked(*words: str) -> str:
        done = CliRunner().invoke(main, ["memory", *words, "--config", str(config)])
        assert done.exit_code == 0, done.output
        return done.output

    shown = json.loads(asked("show", "--json", "--tenant", "acme"))
    assert (shown["file"], shown["requests"]) == ("PostgreSQL", 30)
    assert json.loads(asked("show", "--json"))["requests"] == 0
    lines = tmp_path / "lines.jsonl"
    asked("export", "--tenant", "acme", "--out", str(lines))
    asked("import", str(lines))
    assert json.loads(asked("show", "--json"))["requests"] == 30
    gone = json.loads(asked("clear", "--yes", "--json", "--tenant", "acme"))
    assert gone["forgotten"] == 30
    assert json.loads(asked("show", "--json"))["requests"] == 30


def _size(memory: Memory) -> int:
    memory.flush()
    try:
        return memory.size
    except Exception:
        return -1


def _soon(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    pause = threading.Event()
    while not is_so():
        assert time.monotonic() < deadline
        pause.wait(0.05)
