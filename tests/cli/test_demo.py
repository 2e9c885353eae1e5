"""`toolfold demo` on a terminal: one screen at a time, whatever its width, the headline last."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.terminals import OnTerminal, terminal_stream, visible_lines

pytestmark = pytest.mark.slow

PROMPT = "Enter: next   a: all   q: end"
HEADLINE = "   207 tools for 286 tokens, not 30,506: -99.1 %"
SCREENS = 10


class Show:
    """The demo, on a terminal of its own."""

    def __init__(self, shown: OnTerminal, **environment: str) -> None:
        self.shown = shown
        self.prompts = 0
        self.process = subprocess.Popen(
            [sys.executable, "-m", "toolfold", "demo"],
            stdin=shown.descriptor, stdout=shown.descriptor, stderr=shown.descriptor,
            env={**_ENVIRONMENT, "TERM": "xterm", **environment},
        )  # fmt: skip

    def press(self, key: str) -> None:
        """Wait for the next question and press a key."""
        self.prompts += 1
        self.shown.until(PROMPT, self.prompts)
        self.shown.type(key)

    def end(self) -> int:
        """Wait for its end, and return its exit code."""
        return self.process.wait(timeout=30)


_ENVIRONMENT = {k: v for k, v in os.environ.items() if k not in ("CI", "COLUMNS", "NO_COLOR")}


@pytest.mark.parametrize("width", [50, 80, 200])
def test_each_screen_fits_the_window_and_the_headline_is_last(width: int) -> None:
    with terminal_stream(width) as shown:
        show = Show(shown)
        for _ in range(SCREENS):
            show.press("\n")
        assert show.end() == 0

    screens = shown.text.split(PROMPT)
    assert len(screens) == SCREENS + 1
    assert max(len(visible_lines(screen)) for screen in screens) <= 24
    assert shown.too_wide(width) == []
    assert visible_lines(shown.text)[-2:] == [HEADLINE, ""]


def test_a_shows_the_rest_at_once_and_q_goes_to_the_headline() -> None:
    with terminal_stream() as everything:
        show = Show(everything)
        show.press("a")
        assert show.end() == 0
    with terminal_stream() as left:
        show = Show(left)
        show.press("\n")
        show.press("q")
        assert show.end() == 0

    assert "7. An agent does all that" in everything.text
    assert "3. It asks for one tool's full schema" not in left.text
    assert visible_lines(left.text)[-2:] == visible_lines(everything.text)[-2:] == [HEADLINE, ""]


@pytest.mark.parametrize("environment", [{"CI": "true"}, {"TERM": "dumb"}])
def test_nobody_is_waited_for_in_a_build_and_on_a_dumb_terminal(
    environment: dict[str, str],
) -> None:
    with terminal_stream() as shown:
        assert Show(shown, **environment).end() == 0

    assert PROMPT not in shown.text
    assert visible_lines(shown.text)[-2:] == [HEADLINE, ""]


def test_ctrl_c_leaves_the_terminal_as_it_was() -> None:
    termios = pytest.importorskip("termios", reason="needs a terminal of the POSIX kind")
    with terminal_stream() as shown:
        before = termios.tcgetattr(shown.descriptor)
        show = Show(shown)
        show.press("")
        show.process.send_signal(signal.SIGINT)
        assert show.end() == 130
        assert termios.tcgetattr(shown.descriptor) == before


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_locale_without_our_signs_gets_others(encoding: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "toolfold", "demo"],
        capture_output=True, env={**_ENVIRONMENT, "PYTHONIOENCODING": encoding}, timeout=30,
    )  # fmt: skip

    assert (ran.returncode, ran.stderr) == (0, b"")
    assert b'? "remind me tonight" -> create_calendar_event' in ran.stdout


def test_it_takes_less_than_two_seconds_of_a_processor(tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-m", "toolfold", "demo"],
        stdout=subprocess.DEVNULL, check=True, env={**_ENVIRONMENT, "HOME": str(tmp_path)},
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)

    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 2
