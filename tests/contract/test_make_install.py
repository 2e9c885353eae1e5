"""The line that `make` shows while pip works: one that moves, two in a log, all where it fails."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from support.terminals import terminal_stream, visible_lines

SCRIPT = Path(__file__).parents[2] / "make" / "install.py"
PIP = """
print("Collecting click>=8.1 (from toolfold)")
print("  Downloading https://example.org/click-8.1.7-py3-none-any.whl (97 kB)")
print("Collecting numpy>=1.26")
print("Installing collected packages: numpy, click")
print("Successfully installed click-8.1.7 numpy-2.1.0")
"""
COMMAND = [sys.executable, str(SCRIPT), "toolfold", sys.executable, "-c"]


def test_a_terminal_has_one_line_that_moves_and_then_what_was_done() -> None:
    with terminal_stream(70) as shown:
        subprocess.run(
            [*COMMAND, PIP], stderr=shown.descriptor, check=True,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "70"},
        )  # fmt: skip

    drawn = [re.sub(r"\d+ s", "0 s", line) for line in shown.text.split("\r\x1b[K")]
    downloading = "installing toolfold: 1 package, 0 s  downloading click-8.1.7"
    assert any(line.startswith(downloading) for line in drawn)
    assert max(map(len, drawn)) < 70
    assert "installing toolfold: 2 packages, 0 s  putting 2 packages in place" in drawn
    last = [re.sub(r"\d+ s", "0 s", line) for line in visible_lines(shown.text)]
    assert last == ["installed toolfold: 2 packages in 0 s", ""]


def test_a_log_has_a_line_at_the_start_and_one_at_the_end() -> None:
    ran = subprocess.run([*COMMAND, PIP], capture_output=True, text=True, check=True)

    assert re.sub(r"\d+ s", "0 s", ran.stderr) == (
        "installing toolfold\ninstalled toolfold: 2 packages in 0 s\n"
    )


def test_where_pip_fails_its_words_are_shown_and_its_code_is_kept() -> None:
    fails = "import sys; print('No matching distribution found'); sys.exit(3)"
    ran = subprocess.run([*COMMAND, fails], capture_output=True, text=True, check=False)

    assert ran.returncode == 3
    assert ran.stderr.endswith(
        "No matching distribution found\ninstalling toolfold failed; pip's own words are above\n"
    )
