"""Runs a server and takes `_meta` out of the tools that it lists, as a server without it is.

python unmarked.py COMMAND [ARGUMENT…]
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from typing import BinaryIO


def main() -> int:
    """Pass everything on, both ways."""
    with subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        threading.Thread(target=_said, args=(process.stdout,), daemon=True).start()
        for line in sys.stdin.buffer:
            process.stdin.write(line)
            process.stdin.flush()
        process.stdin.close()
        process.wait()
    return process.returncode


def _said(source: BinaryIO) -> None:
    for line in source:
        message = json.loads(line)
        result = message.get("result")
        for tool in result.get("tools", ()) if isinstance(result, dict) else ():
            tool.pop("_meta", None)
        sys.stdout.buffer.write(json.dumps(message).encode() + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(main())
