"""The audit of several replicas: lines in a table, in the file while the database is away."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner

from cluster.postgres import Postgres
from toolfold.cli.main import main
from toolfold.dispatch.records import CallRecord, RequestRecord
from toolfold.serve.observe import shared_audit
from toolfold.serve.observe.audit import AuditLog
from toolfold.serve.observe.shared_audit import SharedAudit
from toolfold.store.postgres.audit import AuditLine, PostgresAudit
from toolfold.store.postgres.database import Database

Opener = Callable[..., Database]


def _call(tool: str, at: float = 0.0, tenant: str = "default", error: str = "") -> CallRecord:
    return CallRecord(
        at or time.time(), "ada", "s", "m", tool, "direct", "ok", 0.1, error=error, tenant=tenant
    )


def _tools(lines: Any) -> list[str]:
    return [json.loads(line)["tool"] for line in lines]


def test_lines_of_all_replicas_are_in_one_table_each_with_its_tenant(
    address: str, open_database: Opener, tmp_path: Path
) -> None:
    database = open_database(address)
    logs = [
        AuditLog(tmp_path / f"{i}.jsonl", shared=SharedAudit(PostgresAudit(database, f"r{i}")))
        for i in range(2)
    ]
    for number in range(600):
        logs[number % 2].called(_call(f"t{number}", at=1_000.0 + number))
    logs[0].called(_call("odd \x00 \ud800 name", tenant="acme", error="\x00"))
    logs[0].requested(
        RequestRecord(1.0, "eve", "u", "openai-chat", "m", "folded", 200, 0.1, tenant="acme")
    )
    for log in logs:
        log.close()

    audit = PostgresAudit(database)
    assert _tools(audit.lines()) == [f"t{number}" for number in range(600)]
    assert _tools(audit.lines(since=1_598.0)) == ["t598", "t599"]
    assert _tools(audit.lines(until=1_002.0)) == ["t0", "t1"]
    own = [json.loads(line) for line in audit.lines("acme")]
    assert [(line["tenant"], line["principal"]) for line in own] == [
        ("acme", "eve"),
        ("acme", "ada"),
    ]
    assert "tenant" not in json.loads(next(audit.lines()))
    assert not list(tmp_path.iterdir())


def test_while_the_database_is_away_lines_go_to_the_file_and_that_is_said_once(
    postgres_alone: tuple[Postgres, str],
    open_database: Opener,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    server, address = postgres_alone
    database = open_database(address)
    shared = SharedAudit(PostgresAudit(database))
    log, file = AuditLog(tmp_path / "audit.jsonl", shared=shared), tmp_path / "audit.jsonl"
    with caplog.at_level(logging.INFO, "toolfold.serve.observe"):
        log.called(_call("before"))
        assert shared.flush()
        server.stop("immediate")
        for number in range(5):
            log.called(_call(f"away{number}"))
            assert shared.flush()
        assert _tools(file.read_text().splitlines()) == [f"away{n}" for n in range(5)]
        server.start()
        while not any("again" in record.message for record in caplog.records):
            log.called(_call("after"))
            assert shared.flush()
            time.sleep(0.05)
        log.close()
    said = [record.message for record in caplog.records if record.name.startswith("toolfold")]
    assert ["for now" in text for text in said] == [True, False]
    kept = [*_tools(PostgresAudit(database).lines()), *_tools(file.read_text().splitlines())]
    assert kept[0] == "before"
    assert {f"away{n}" for n in range(5)} | {"after"} <= set(kept)


def test_what_has_no_room_in_the_queue_goes_to_the_file(
    address: str, open_database: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_audit, "WAITING", 3)
    database = open_database(address)
    file = tmp_path / "audit.jsonl"
    log = AuditLog(file, shared=SharedAudit(PostgresAudit(database)))
    for number in range(500):
        log.called(_call(f"t{number}"))
    log.close()
    log.called(_call("late"))  # a call that ends after all is over
    here = _tools(file.read_text().splitlines())
    assert here[-1] == "late"
    assert sorted([*here, *_tools(PostgresAudit(database).lines())]) == sorted(
        ["late", *(f"t{number}" for number in range(500))]
    )


def test_old_lines_are_deleted_and_no_line_of_today_can_be(
    address: str, open_database: Opener
) -> None:
    audit = PostgresAudit(open_database(address))
    now = time.time()
    for days in (100, 40, 0):
        audit.add("default", [AuditLine(now - days * 86_400, json.dumps({"tool": f"{days}"}))])
    audit.add("acme", [AuditLine(0.0, '{"tool":"x"}')])
    assert audit.prune("default", 90) == 1
    assert audit.prune("default", 0) == 1
    assert _tools(audit.lines()) == ["0"]
    assert _tools(audit.lines("acme")) == ["x"]
    with psycopg.connect(address) as connection:
        connection.execute("select set_config('toolfold.tenant', 'default', false)")
        assert connection.execute("delete from toolfold.audit").rowcount == 0
        assert connection.execute("update toolfold.audit set line = '{}'").rowcount == 0


def test_old_lines_of_a_tenant_that_never_comes_again_are_deleted_too(
    address: str, open_database: Opener, tmp_path: Path
) -> None:
    audit = PostgresAudit(open_database(address))
    audit.add("gone", [AuditLine(0.0, '{"tool":"old"}'), AuditLine(time.time(), '{"tool":"new"}')])
    log = AuditLog(tmp_path / "audit.jsonl", shared=SharedAudit(audit, days=90))
    log.called(_call("of-another-tenant"))
    log.close()

    assert _tools(audit.lines("gone")) == ["new"]


def test_the_audit_is_printed_as_a_file_would_have_it(address: str, open_database: Opener) -> None:
    audit = PostgresAudit(open_database(address))
    audit.add("acme", [AuditLine(time.time() - 86_400 * 3, '{"tool":"old"}')])
    audit.add("acme", [AuditLine(time.time(), '{"tool":"new"}')])
    asked = ["store", "audit", "--store", address, "--tenant", "acme"]
    assert CliRunner().invoke(main, asked).output == '{"tool":"old"}\n{"tool":"new"}\n'
    assert CliRunner().invoke(main, [*asked, "--days", "1"]).output == '{"tool":"new"}\n'
    assert CliRunner().invoke(main, asked[:-2]).output == ""
