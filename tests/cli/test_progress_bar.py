"""How far a long command is: one line on a terminal, few elsewhere, none for a short one."""

from __future__ import annotations

import io
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import count

import pytest

from support.terminals import terminal_stream, visible_lines
from toolfold._terminal import columns
from toolfold.cli.progress_bar import ProgressBar, progress


@pytest.fixture(autouse=True)
def _on_a_usual_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("COLUMNS", raising=False)


def ticking(seconds: float) -> Iterator[float]:
    """Yield a clock's readings, so many seconds apart."""
    return (place * seconds for place in count())


def test_a_terminal_has_one_line_which_is_gone_at_the_end() -> None:
    clock = ticking(0.5)
    with terminal_stream(60) as shown:
        bar = ProgressBar(8, "runs", shown.stream, lambda: next(clock))
        bar.start()
        for _ in range(7):
            bar.update(1, "near_duplicates folded")
        bar.clear()

    assert shown.text.split("\r\x1b[K")[-2:] == [
        "runs  █████████████████████░░░  7 of 8, 1 s left  near_dup…",
        "",
    ]
    assert "\n" not in shown.text
    assert visible_lines(shown.text) == [""]


def test_a_line_of_the_log_has_a_line_of_its_own_above_the_bar(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with terminal_stream(60) as shown:
        monkeypatch.setattr(sys, "stderr", shown.stream)
        handler = logging.StreamHandler(shown.stream)
        logging.getLogger().addHandler(handler)
        try:
            with progress(8, "runs") as bar:
                logging.getLogger("toolfold").warning("a server is slow")
                bar.update()
        finally:
            logging.getLogger().removeHandler(handler)
            monkeypatch.undo()

    assert visible_lines(shown.text) == ["a server is slow", ""]
    assert "1 of 8" in shown.text.partition("a server is slow")[2]
    assert handler.filters == []


def test_a_bar_is_drawn_ten_times_a_second_at_most() -> None:
    clock = ticking(0.001)
    with terminal_stream(80) as shown:
        bar = ProgressBar(10_000, "tools", shown.stream, lambda: next(clock))
        for _ in range(10_000):
            bar.update()

    assert 90 < shown.text.count("\r") < 110


@pytest.mark.parametrize("width", [12, 30, 50, 200])
def test_a_bar_is_never_wider_than_the_terminal(width: int) -> None:
    clock = ticking(1)
    with terminal_stream(width) as shown:
        bar = ProgressBar(3, "searching for every tool", shown.stream, lambda: next(clock))
        for _ in range(3):
            bar.update(1, "日本語" * 30)

    drawn = shown.text.split("\r\x1b[K")
    assert max(map(columns, drawn)) < width


def test_a_window_that_is_made_narrower_leaves_no_rest_of_the_line() -> None:
    clock = ticking(1)
    with terminal_stream(100) as shown:
        bar = ProgressBar(4, "searching for every tool", shown.stream, lambda: next(clock))
        bar.update(1, "x" * 100)
        shown.resize(40)
        bar.update()
        bar.clear()

    # 99 columns take three rows of 40: two up, then all below is cleared.
    assert "\r\x1b[2A\x1b[Jsearching for every tool  2 of 4, 2 s…" in shown.text


def test_what_is_no_terminal_is_told_at_each_quarter_of_a_long_command() -> None:
    stream, clock = io.StringIO(), ticking(1)
    bar = ProgressBar(100, "runs", stream, lambda: next(clock))
    bar.start()
    for _ in range(100):
        bar.update()
    bar.clear()

    assert stream.getvalue() == (
        "runs: 25 of 100, 1 min left\nruns: 50 of 100, 50 s left\nruns: 75 of 100, 25 s left\n"
    )


def test_a_short_command_tells_a_pipe_nothing() -> None:
    stream, clock = io.StringIO(), ticking(0.01)
    bar = ProgressBar(100, "runs", stream, lambda: next(clock))
    for _ in range(100):
        bar.update()

    assert stream.getvalue() == ""


def test_a_dumb_terminal_is_told_as_a_pipe_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    clock = ticking(10)
    with terminal_stream(80) as shown:
        bar = ProgressBar(2, "runs", shown.stream, lambda: next(clock))
        bar.start()
        bar.update()
        bar.clear()

    assert shown.text == "runs: 1 of 2, 10 s left\r\n"


@pytest.mark.slow
def test_ctrl_c_takes_the_bar_away_and_ends_with_130() -> None:
    with terminal_stream(60) as shown:
        process = subprocess.Popen(
            [sys.executable, "-m", "toolfold", "eval"],
            stdout=subprocess.DEVNULL, stderr=shown.descriptor, stdin=subprocess.DEVNULL,
            env={**os.environ, "TERM": "xterm"},
        )  # fmt: skip
        shown.until(" of ")
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 130

    assert visible_lines(shown.text)[-1] == ""
