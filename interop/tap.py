"""Runs a server and writes down every line that it is given, and every line that it says.

    python tap.py LOG COMMAND [ARGUMENT…]

What it is given goes to LOG, what it says to LOG.said.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import BinaryIO


def main() -> int:
    """Pass everything on, both ways."""
    log, *command = sys.argv[1:]
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process,
        open(log, "ab", buffering=0) as given,
        open(f"{log}.said", "ab", buffering=0) as said,
    ):
        assert process.stdin is not None and process.stdout is not None
        out = (process.stdout, sys.stdout.buffer, said)
        threading.Thread(target=_pass, args=out, daemon=True).start()
        _pass(sys.stdin.buffer, process.stdin, given)
        process.stdin.close()
        process.wait()
    return process.returncode


def _pass(source: BinaryIO, target: BinaryIO, log: BinaryIO) -> None:
    for line in source:
        target.write(line)
        target.flush()
        # Written down last: what is in the log has been passed on.
        log.write(line)


if __name__ == "__main__":
    sys.exit(main())
