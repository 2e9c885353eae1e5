"""What can be seen of a running gateway: audit, metrics, spans, logs and status."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, get_args
from unicodedata import east_asian_width

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.running import wait
from support.strategies import JSON_VALUES
from toolfold.dispatch.records import (
    OUTCOMES,
    CallRecord,
    FoldRecord,
    Observers,
    SearchRecord,
    Silent,
    Via,
)
from toolfold.dispatch.spans import Spans, start_spans
from toolfold.invisible import shown
from toolfold.redact import Redactor
from toolfold.serve.observe.audit import AuditLog, audit_line
from toolfold.serve.observe.logs import start_logs
from toolfold.serve.observe.metrics import Metrics
from toolfold.serve.observe.status_screen import Board, LiveStatus, StatusLog
from toolfold.sources.mcp.server_status import ServerStatus

FIRST = 1_700_000_000.25


def call(**changes: Any) -> CallRecord:
    fields: dict[str, Any] = {
        "at": FIRST,
        "principal": "laptop",
        "session": "c0ffee",
        "server": "github",
        "tool": "github__get",
        "via": "tool_call",
        "outcome": "ok",
        "seconds": 0.0123456789,
        "request_size": 12,
        "result_size": 345,
        "arguments": {"path": "/a"},
    }
    return CallRecord(**{**fields, **changes})


def search(hits: int = 3, seconds: float = 0.001) -> SearchRecord:
    return SearchRecord(FIRST, "laptop", None, "open an issue", hits, seconds)


# ---- observers


def test_an_observer_that_fails_breaks_neither_the_others_nor_the_call(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Broken(Silent):
        def called(self, record: CallRecord) -> None:
            raise RuntimeError("no")

    board = Board()
    observers = Observers([Broken(), board])

    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            observers.called(call())
    observers.searched(search())
    observers.server_changed(ServerStatus("a", "stdio", "ready"))
    observers.folded(FoldRecord(True, 1, 10, 2))

    assert (board.calls, board.searches, len(board.servers)) == (3, 1, 1)
    assert [record.getMessage() for record in caplog.records] == [
        "observer Broken failed and is passed over: RuntimeError('no')"
    ]


# ---- the audit log


def test_a_line_of_the_audit_log() -> None:
    assert audit_line(call(error="half\ud800 \x1b[1m"), Redactor()) == (
        '{"at":"2023-11-14T22:13:20.250Z","principal":"laptop","session":"'
        'fb0288872031","server":"github","tool":"github__get","via":"tool_call",'
        '"outcome":"ok","seconds":0.012346,"request_size":12,"result_size":345,'
        '"arguments":"{\\"path\\":\\"/a\\"}","error":"half\\ud800 \\u001b[1m"}'
    )


def test_a_session_is_written_as_a_digest_that_keeps_its_lines_together() -> None:
    lines = [json.loads(audit_line(call(session=s), Redactor())) for s in ("a", "a", "b", None)]

    digests = [line["session"] for line in lines]
    assert digests[0] == digests[1] != digests[2]
    assert digests[3] is None
    assert len(digests[0]) == 12


def test_arguments_are_redacted_and_cut() -> None:
    redactor = Redactor(["correct horse battery"])
    arguments = {
        "password": "hunter2",
        "note": "it is correct horse battery, you know",
        "header": "Authorization: Bearer abcdefghijklmnop1234",
        "long": "x" * 400,
        "rest": "y" * 300,
    }

    text = json.loads(audit_line(call(arguments=arguments), redactor))["arguments"]

    assert len(text) == 500
    assert text.startswith(
        '{"password":"[redacted]","note":"it is [redacted], you know",'
        '"header":"Authorization: Bearer [redacted]","long":"xxx'
    )


def test_only_a_part_of_large_arguments_is_looked_at() -> None:
    class Counted(Redactor):
        seen = 0

        def redact(self, text: str) -> str:
            Counted.seen += len(text)
            return super().redact(text)

    arguments = {"many": [{"a": "b" * 100}] * 10_000, "more": list(range(10_000))}

    line = audit_line(call(arguments=arguments), Counted())

    assert Counted.seen < 1_100
    assert len(json.loads(line)["arguments"]) == 500


def test_a_text_too_long_to_be_looked_at_is_counted() -> None:
    arguments = {"key": "s" * 20_000, "deep": [[[[[[[[["secret"]]]]]]]]]}

    text = json.loads(audit_line(call(arguments=arguments), Redactor()))["arguments"]

    assert text == '{"key":"(20,000 characters)","deep":[[[[[[["(…)"]]]]]]]}'


SECRETS = st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=12, max_size=20).map(
    lambda text: f"Z{text}Z"
)


@st.composite
def with_secret(draw: st.DrawFn) -> tuple[str, dict[str, Any], str]:
    """A secret, arguments that hold it somewhere, and an error that does."""
    secret = draw(SECRETS)
    around = draw(st.text(max_size=600)), draw(st.text(max_size=10))
    text = f"{around[0]}{secret}{around[1]}"
    value: Any = text
    for kind in draw(st.lists(st.sampled_from("[{k"), max_size=4)):
        value = [value] if kind == "[" else {secret if kind == "k" else "a": value}
    return secret, {"other": draw(JSON_VALUES), "value": value}, text


@given(parts=with_secret(), outcome=st.sampled_from(OUTCOMES), via=st.sampled_from(get_args(Via)))
def test_audit_lines_always_parse_and_never_hold_a_known_secret(
    parts: tuple[str, dict[str, Any], str], outcome: Any, via: Any
) -> None:
    secret, arguments, error = parts

    line = audit_line(
        call(arguments=arguments, error=error, session=error, outcome=outcome, via=via),
        Redactor([secret]),
    )

    assert line.isascii() and "\n" not in line
    assert json.loads(line)["outcome"] == outcome
    assert secret not in line
    assert len(line) < 12_000


def test_the_log_is_appended_to_and_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "state" / "audit.jsonl"
    for tool in ("a", "b"):
        log = AuditLog(path)
        log.called(call(tool=tool))
        log.close()

    assert [json.loads(line)["tool"] for line in path.read_text("utf-8").splitlines()] == ["a", "b"]
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_full_file_is_put_aside_and_the_oldest_goes(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    log = AuditLog(path, max_bytes=1_000, keep=2)

    for number in range(20):
        log.called(call(tool=f"t{number:02}"))

    kept = [path.with_name("audit.jsonl.2"), path.with_name("audit.jsonl.1"), path]
    tools = [json.loads(line)["tool"] for p in kept for line in p.read_text("utf-8").splitlines()]
    assert all(p.stat().st_size <= 1_000 for p in kept)
    assert tools == [f"t{number:02}" for number in range(20 - len(tools), 20)]
    assert not path.with_name("audit.jsonl.3").exists()


def test_a_file_that_was_moved_away_is_started_anew(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    log = AuditLog(path)
    log.called(call(tool="a"))
    path.rename(tmp_path / "old")
    log.called(call(tool="b"))

    assert json.loads(path.read_text("utf-8"))["tool"] == "b"


def test_a_log_that_cannot_be_written_is_reported_once_and_taken_up_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "audit.jsonl"
    path.mkdir()
    log = AuditLog(path)

    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            log.called(call())
    path.rmdir()
    log.called(call())

    assert [record.getMessage() for record in caplog.records] == [
        f"the audit log `{path}` cannot be written: Is a directory"
    ]
    assert json.loads(path.read_text("utf-8"))["tool"] == "github__get"


def test_after_a_torn_line_the_next_one_starts_afresh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "audit.jsonl"
    log = AuditLog(path)
    real = os.write
    monkeypatch.setattr(os, "write", lambda file, data: real(file, data[:10]))  # a full disk
    log.called(call())
    monkeypatch.undo()
    log.called(call(tool="next"))

    lines = path.read_text("utf-8").splitlines()
    assert (len(lines), json.loads(lines[1])["tool"]) == (2, "next")
    assert "cannot be written" in caplog.text


WRITER = """
import sys
from pathlib import Path
from toolfold.serve.observe.audit import AuditLog
from toolfold.dispatch.records import CallRecord

log = AuditLog(Path(sys.argv[1]), max_bytes=20_000, keep=50)
for i in range(300):
    log.called(CallRecord(1.0, "p", None, "s", f"{sys.argv[2]}{i}", "direct", "ok", 0.1))
"""


def test_processes_that_share_the_log_lose_and_tear_no_line(tmp_path: Path) -> None:
    running = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path / "audit.jsonl"), name])
        for name in ("a", "b")
    ]

    assert [process.wait(50) for process in running] == [0, 0]
    texts = [p.read_text("utf-8") for p in tmp_path.iterdir() if not p.name.endswith("lock")]
    tools = [json.loads(line)["tool"] for text in texts for line in text.splitlines()]
    assert sorted(tools) == sorted(f"{name}{i}" for name in ("a", "b") for i in range(300))
    assert len(texts) > 2


# ---- metrics


def parsed(metrics: Metrics) -> dict[tuple[str, ...], float]:
    """All samples, by name and label values, as Prometheus' own parser reads them."""
    from prometheus_client.parser import text_string_to_metric_families

    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(metrics.text())
        for sample in family.samples
    }


def test_metrics_count_calls_searches_servers_and_what_is_saved() -> None:
    metrics = Metrics("1.2.3", sessions=lambda: 4, in_flight=lambda: 2)
    for outcome, seconds in (("ok", 0.004), ("ok", 0.2), ("timeout", 400.0)):
        metrics.called(call(outcome=outcome, seconds=seconds))
    metrics.searched(search(3))
    metrics.searched(search(0))
    metrics.server_changed(ServerStatus("github", "stdio", "ready", tools=26, restarts=2))
    metrics.server_changed(ServerStatus("mail", "http", "failed", quarantined=3))
    metrics.folded(FoldRecord(True, 226, 53_994, 398))
    metrics.refused("token")

    found = parsed(metrics)

    expected = {
        ("toolfold_info", "1.2.3"): 1,
        ("toolfold_calls_total", "github", "github__get", "ok"): 2,
        ("toolfold_calls_total", "github", "github__get", "timeout"): 1,
        ("toolfold_call_seconds_bucket", "github", "0.005"): 1,
        ("toolfold_call_seconds_bucket", "github", "0.25"): 2,
        ("toolfold_call_seconds_bucket", "github", "300"): 2,
        ("toolfold_call_seconds_bucket", "github", "+Inf"): 3,
        ("toolfold_call_seconds_count", "github"): 3,
        ("toolfold_call_seconds_sum", "github"): pytest.approx(400.204),
        ("toolfold_searches_total",): 2,
        ("toolfold_searches_empty_total",): 1,
        ("toolfold_search_hits_total",): 3,
        ("toolfold_search_seconds_count",): 2,
        ("toolfold_server_up", "github"): 1,
        ("toolfold_server_up", "mail"): 0,
        ("toolfold_server_tools", "github"): 26,
        ("toolfold_server_quarantined", "mail"): 3,
        ("toolfold_server_restarts_total", "github"): 2,
        ("toolfold_folding",): 1,
        ("toolfold_tools",): 226,
        ("toolfold_tokens",): 53_994,
        ("toolfold_tokens_saved",): 53_596,
        ("toolfold_requests_refused_total", "token"): 1,
        ("toolfold_sessions",): 4,
        ("toolfold_calls_in_flight",): 2,
    }
    assert {key: found.get(key) for key in expected} == expected


def test_fresh_metrics_are_a_valid_text() -> None:
    assert parsed(Metrics())[("toolfold_searches_total",)] == 0
    assert Metrics().text().endswith("\n")


@given(name=st.text(min_size=1, max_size=30))
def test_any_name_survives_as_a_label(name: str) -> None:
    metrics = Metrics()
    metrics.called(call(server="s", tool=name))

    whole = name.encode("utf-8", "replace").decode()
    assert parsed(metrics)["toolfold_calls_total", "s", whole, "ok"] == 1


def test_labels_are_bounded() -> None:
    metrics = Metrics()
    for number in range(3_000):
        metrics.called(call(tool=f"t{number}"))
    for number in range(500):
        metrics.called(call(server=f"s{number}"))
        metrics.server_changed(ServerStatus(f"s{number}", "stdio", "ready"))

    found = parsed(metrics)

    assert found["toolfold_calls_total", "github", "other", "ok"] == 2_000
    assert len({key[1] for key in found if key[0] == "toolfold_calls_total"}) == 201
    assert len(metrics.text()) < 400_000


# ---- spans


def exported() -> tuple[Spans, Any]:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return Spans(provider.get_tracer("toolfold")), exporter


def test_a_call_and_a_search_are_spans_after_the_conventions_without_arguments() -> None:
    spans, exporter = exported()

    with spans.call("github__get", "github") as ended:
        ended(call(arguments={"password": "hunter2"}))
    with spans.call("github__get", "github") as ended:
        ended(call(outcome="tool_error", error="hunter2"))
    with spans.search() as ended:
        ended(search())

    good, bad, found = exporter.get_finished_spans()
    assert (good.name, dict(good.attributes)) == (
        "execute_tool github__get",
        {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "github__get",
            "gen_ai.tool.type": "extension",
            "toolfold.server": "github",
            "toolfold.principal": "laptop",
            "mcp.session.id": "fb0288872031",
            "toolfold.via": "tool_call",
            "toolfold.outcome": "ok",
        },
    )
    assert (bad.attributes["error.type"], bad.status.is_ok) == ("tool_error", False)
    assert (found.name, dict(found.attributes)) == (
        "retrieval toolfold",
        {
            "gen_ai.operation.name": "retrieval",
            "gen_ai.data_source.id": "toolfold",
            "toolfold.principal": "laptop",
            "toolfold.hits": 3,
        },
    )
    written = "".join(span.to_json() for span in (good, bad, found))
    assert "hunter2" not in written
    # A session's id is a key.
    assert "c0ffee" not in written


def test_what_happens_within_a_call_is_its_child_and_an_exception_leaves_only_its_kind() -> None:
    from opentelemetry import trace

    spans, exporter = exported()
    current = trace.INVALID_SPAN_CONTEXT

    with pytest.raises(ValueError), spans.call("t", "s"):
        current = trace.get_current_span().get_span_context()
        raise ValueError("hunter2")

    (span,) = exporter.get_finished_spans()
    assert span.context.span_id == current.span_id
    assert span.attributes["error.type"] == "ValueError"
    assert "hunter2" not in span.to_json()


def test_without_anybody_who_collects_there_are_no_spans_and_nothing_is_loaded() -> None:
    code = (
        "import sys; from toolfold.dispatch.spans import start_spans\n"
        "spans = start_spans({})\n"
        "with spans.call('t', 's') as ended: ended(None)\n"
        "spans.close()\n"
        "print([m for m in sys.modules if m.startswith('opentelemetry.sdk')])"
    )

    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)

    assert (ran.stdout, ran.stderr) == ("[]\n", "")


def test_where_the_environment_asks_for_spans_they_are_sent() -> None:
    posted: list[tuple[str, bytes]] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            posted.append((self.path, body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    code = (
        "from toolfold.dispatch.spans import start_spans\n"
        "spans = start_spans()\n"
        "with spans.call('github__get', 'github'): pass\n"
        "spans.close()\n"
    )
    where = f"http://127.0.0.1:{server.server_port}"
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": where, "no_proxy": "127.0.0.1"},
        capture_output=True, text=True, timeout=50,
    )  # fmt: skip
    server.shutdown()
    server.server_close()

    assert (ran.returncode, ran.stdout) == (0, "")
    assert [path for path, _ in posted] == ["/v1/traces"]


def test_a_missing_extra_is_a_warning_with_the_command(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)

    with caplog.at_level(logging.WARNING):
        start_spans({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"})

    assert "pip install 'toolfold[otel]'" in caplog.text


# ---- logs


@pytest.fixture
def logs() -> Iterator[io.StringIO]:
    """A stream, with whatever a test does to the loggers undone afterwards."""
    root = logging.getLogger()
    before = root.handlers[:], root.level
    levels = {name: logging.getLogger(name).level for name in logging.root.manager.loggerDict}
    stream = io.StringIO()
    yield stream
    root.handlers[:], root.level = before[0], before[1]
    root.setLevel(before[1])
    for name in list(logging.root.manager.loggerDict):
        logging.getLogger(name).setLevel(levels.get(name, logging.NOTSET))


def test_logs_are_redacted_tracebacks_and_arguments_included(logs: io.StringIO) -> None:
    start_logs(redactor=Redactor(["correct horse battery"]), stream=logs)
    log = logging.getLogger("toolfold.serve.test")

    log.info("started with %s and %s", "correct horse battery", {"password": "hunter22"})
    try:
        raise ValueError("no correct horse battery")
    except ValueError:
        log.exception("it failed")

    text = logs.getvalue()
    assert "correct horse" not in text and "hunter22" not in text
    first, second, *trace = text.splitlines()
    assert first[8:] == " info    started with [redacted] and {'password': '[redacted]'}"
    assert second[8:] == " error   it failed"
    assert trace[0] == "    Traceback (most recent call last):"
    assert trace[-1] == "    ValueError: no [redacted]"


def test_an_event_cannot_break_out_of_its_line_nor_reach_the_terminal(logs: io.StringIO) -> None:
    start_logs(stream=logs)

    logging.getLogger("toolfold.x").warning("bad %s", "name\n12:00:00 error forged \x1b[2J\u202e")

    (line,) = logs.getvalue().splitlines()
    assert line[8:] == " warning bad name\\n12:00:00 error forged [U+001B][2J[U+202E]"


def test_logs_in_json_are_one_object_a_line(logs: io.StringIO) -> None:
    start_logs("json", stream=logs)
    log = logging.getLogger("toolfold.x")

    log.warning("half %s", "\ud800\n")
    log.info("%d %s", "these arguments do not fit")

    first, second = map(json.loads, logs.getvalue().splitlines())
    assert {**first, "at": ""} == {
        "at": "", "level": "warning", "logger": "toolfold.x", "message": "half [U+D800]\\n",
    }  # fmt: skip
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", first["at"])
    assert second["message"] == "%d %s"


def test_the_libraries_underneath_are_quiet_unless_asked(logs: io.StringIO) -> None:
    noisy = ("mcp.client.stdio", "client", "uvicorn.access", "httpx2", "mcp.server.lowlevel.server")

    start_logs(stream=logs)
    for name in noisy:
        logging.getLogger(name).info("noise")
    logging.getLogger("mcp.client.stdio").error("a traceback for every line of rubbish")
    logging.getLogger("toolfold.serve").info("ours")
    assert [line[8:] for line in logs.getvalue().splitlines()] == [" info    ours"]

    start_logs(stream=logs, verbose=True)
    for name in noisy:
        logging.getLogger(name).info("noise")
    assert logs.getvalue().count("noise") == len(noisy)


def test_a_library_that_set_up_its_own_logs_is_heard_in_ours_and_nowhere_else(
    logs: io.StringIO,
) -> None:
    its_own = io.StringIO()
    library = logging.getLogger("uvicorn.access")
    library.addHandler(logging.StreamHandler(its_own))
    library.propagate = False

    start_logs(stream=logs, verbose=True)
    library.info("a request")

    assert logs.getvalue().count("a request") == 1
    assert its_own.getvalue() == ""


def test_nothing_is_logged_to_standard_output() -> None:
    code = (
        "import logging; logging.basicConfig()\n"
        "from toolfold.serve.observe.logs import start_logs; start_logs()\n"
        "logging.getLogger('toolfold').info('hello')"
    )

    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)

    assert ran.stdout == ""
    assert ran.stderr.count("hello") == 1


@given(secret=SECRETS, before=st.text(max_size=50), after=st.text(max_size=50))
@example("a\u200bsecret\u202ewith\x1bhidden", "", "")
def test_no_log_line_holds_a_known_secret(secret: str, before: str, after: str) -> None:
    handler = start_logs_alone(Redactor([secret]))
    record = logging.LogRecord(
        "toolfold", logging.INFO, "", 0, "%s", (f"{before}{secret}{after}",), None
    )

    line = handler.format(record)

    assert secret not in line and shown(secret) not in line
    assert len(line.splitlines()) == 1


def start_logs_alone(redactor: Redactor) -> logging.Handler:
    """The handler that `start_logs` makes, with the loggers left as they were."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        return start_logs(redactor=redactor, stream=io.StringIO())
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)


# ---- status


def busy_board() -> Board:
    board = Board("http://127.0.0.1:8000/mcp")
    board.server_changed(ServerStatus("github", "stdio", "ready", tools=26, restarts=1))
    board.server_changed(ServerStatus("mail", "http", "failed", error="refused\n\x1b[2J"))
    board.server_changed(ServerStatus("time", "stdio", "waiting", tools=2, quarantined=1))
    board.folded(FoldRecord(True, 28, 9_000, 400))
    for outcome in ("ok", "tool_error", "cancelled"):
        board.called(call(outcome=outcome))
    board.searched(search())
    return board


def test_the_board_shows_servers_in_trouble_first_and_the_totals() -> None:
    assert busy_board().lines(100) == [
        "toolfold  http://127.0.0.1:8000/mcp",
        "  ✗ mail    failed, refused [U+001B][2J",
        "  ● github  ready, 26 tools, restarted 1×",
        "  ○ time    waiting, 2 tools, 1 wait for approval",
        "1 of 3 servers ready · tools 28 · calls 3 (1 failed) · searches 1 · tokens saved 8,600",
    ]


def test_the_board_fits_the_screen() -> None:
    board = busy_board()
    board.server_changed(ServerStatus("wide", "stdio", "failed", error="失敗しました" * 10))
    for number in range(50):
        board.server_changed(ServerStatus(f"server-{number}", "stdio", "ready"))

    lines = board.lines(30, 10)

    assert len(lines) == 10
    columns = [sum(2 if east_asian_width(c) in "WF" else 1 for c in line) for line in lines]
    assert max(columns) <= 30
    assert lines[-2] == "  … and 47 more servers"


class Terminal(io.StringIO):
    """A terminal that obeys what the picture is drawn with, and shows what it holds."""

    def screen(self) -> list[str]:
        rows, row = [""], 0
        for part in re.split(r"(\x1b\[\d*[A-Za-z]|\r|\n)", self.getvalue()):
            if part == "\n":
                row += 1
                rows += [""] * (row + 1 - len(rows))
            elif part.endswith("A") and part.startswith("\x1b"):
                row -= int(part[2:-1])
            elif part == "\x1b[J":
                rows = [*rows[:row], ""]
            elif part and part != "\r" and not part.startswith("\x1b"):
                rows[row] += part
        return rows


def live(stream: io.StringIO) -> LiveStatus:
    return LiveStatus(stream, "here", size=lambda: (60, 24))


def test_the_picture_is_drawn_over_in_place_and_stays_at_the_end() -> None:
    terminal = Terminal()

    async def main() -> None:
        status = live(terminal)
        for state in ("starting", "ready"):
            status.server_changed(ServerStatus("github", "stdio", state, tools=3))  # pyright: ignore[reportArgumentType]
            status.draw()
        for _ in range(100):
            status.called(call())
        status.close()
        status.called(call())
        status.close()
        status.write("good bye\n")

    wait(main())

    assert terminal.screen() == [
        "toolfold  here",
        "  ● github  ready, 3 tools",
        "1 of 1 server ready · tools 3 · calls 100 · searches 0",
        "good bye",
        "",
    ]


def test_logs_go_above_the_picture(logs: io.StringIO) -> None:
    terminal = Terminal()

    async def main() -> None:
        status = live(terminal)
        start_logs(stream=status)
        status.server_changed(ServerStatus("github", "stdio", "ready"))
        status.draw()
        logging.getLogger("toolfold").info("one")
        logging.getLogger("toolfold").info("two")
        status.close()

    wait(main())

    assert [line[-3:] for line in terminal.screen()[:2]] == ["one", "two"]
    assert terminal.screen()[2] == "toolfold  here"


def test_the_picture_draws_itself_soon_after_a_change() -> None:
    terminal = Terminal()

    async def main() -> None:
        drawn = asyncio.Event()

        class Watched(LiveStatus):
            def draw(self) -> None:
                super().draw()
                drawn.set()

        status = Watched(terminal, size=lambda: (60, 24))
        for _ in range(50):
            status.searched(search())
        await asyncio.wait_for(drawn.wait(), 5)
        status.close()

    wait(main(), 10)

    assert terminal.getvalue().count("searches 50") == 2


def test_the_log_says_one_tool_and_not_one_tools(caplog: pytest.LogCaptureFixture) -> None:
    log = StatusLog()

    with caplog.at_level(logging.INFO):
        log.server_changed(ServerStatus("time", "stdio", "ready", tools=1))
        log.folded(FoldRecord(False, 1, 40, 40, "folding is off"))

    assert [record.getMessage() for record in caplog.records] == [
        "server time: ready, 1 tool",
        "not folding 1 tool: folding is off",
    ]


def test_without_a_terminal_each_change_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    log = StatusLog()

    with caplog.at_level(logging.INFO):
        log.server_changed(ServerStatus("github", "stdio", "starting"))
        for since in (1.0, 2.0):
            log.server_changed(ServerStatus("github", "stdio", "ready", tools=26, since=since))
        log.server_changed(ServerStatus("mail", "http", "failed", error="refused"))
        for tools in (226, 226, 20):
            log.folded(FoldRecord(tools > 100, tools, 53_994, 398, "folding is off"))
        log.folded(FoldRecord(True, 4_076, 0, 261, ""))

    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("INFO", "server github: starting"),
        ("INFO", "server github: ready, 26 tools"),
        ("WARNING", "server mail: failed, refused"),
        ("INFO", "folding 226 tools: 53,994 tokens of definitions become 398"),
        ("INFO", "not folding 20 tools: folding is off"),
        ("INFO", "folding 4,076 tools into 261 tokens"),
    ]
