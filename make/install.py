"""Run pip and say in one line what it does: the first `make` of a fresh machine takes minutes.

    python make/install.py LABEL COMMAND...

On a terminal the line moves and is gone at the end; a log gets one line at the start and one
at the end. What pip wrote is shown where it fails. It runs before anything is installed, so
it knows nothing but the standard library.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time

_STEP = re.compile(
    r"\s*(Collecting|Processing|Downloading|Using cached|Building|Preparing metadata|"
    r"Installing build dependencies|Getting requirements)(?:.*/)? *(\S*)"
)
_ERASE = "\r\x1b[K"


def main(label: str, *command: str) -> int:
    """Run a command; return its exit code."""
    moves = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    began = time.monotonic()
    if not moves:
        _say(f"installing {label}\n")
    written: list[str] = []
    seen: set[str] = set()
    now = "starting"
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "PIP_PROGRESS_BAR": "off"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment,
        encoding="utf-8", errors="replace",
    ) as process:  # fmt: skip
        try:
            for line in process.stdout or ():
                written.append(line)
                now = _doing(line, seen) or now
                if moves:
                    _draw(f"installing {label}: {_count(seen)}, {_since(began)}  {now}")
        except KeyboardInterrupt:
            process.terminate()
            _say(_ERASE if moves else "")
            return 130
    _say(_ERASE if moves else "")
    if process.returncode:
        _say("".join(written))
        _say(f"installing {label} failed; pip's own words are above\n")
    else:
        _say(f"installed {label}: {_count(seen)} in {_since(began)}\n")
    return process.returncode


def _doing(line: str, seen: set[str]) -> str:
    """Return what a line of pip's says is done, and remember the package it names."""
    if line.startswith("Installing collected packages"):
        names = line.partition(":")[2].split(",")
        return f"putting {len(names)} packages in place"
    step = _STEP.match(line)
    if step is None:
        return ""
    verb, what = step.groups()
    if verb in ("Collecting", "Processing"):
        seen.add(re.split(r"-\d|[^\w.-]", what)[0].lower().replace("_", "-"))
    return f"{verb.lower()} {what}"


def _draw(line: str) -> None:
    room = shutil.get_terminal_size().columns - 1
    _say(_ERASE + (line if len(line) <= room else line[: room - 1] + "…"))


def _count(seen: set[str]) -> str:
    return f"{len(seen)} package{'' if len(seen) == 1 else 's'}"


def _since(began: float) -> str:
    seconds = round(time.monotonic() - began)
    return f"{seconds // 60} min {seconds % 60} s" if seconds >= 60 else f"{seconds} s"


def _say(text: str) -> None:
    sys.stderr.buffer.write(text.encode(sys.stderr.encoding or "utf-8", "replace"))
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
