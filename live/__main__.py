"""`make live`: a real model server, a real conversation over a folded catalog, and its checks.

python -m live              # exit status 0 where everything held
python -m live small …      # a model that calls tools: counts, see `live.small`
python -m live proxied …    # that model behind the proxy, see `live.proxied`
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time

from live.comparison import compare
from live.conversation import CONTEXT, hold
from live.proxied import main as proxied
from live.report import Report
from live.server import Server, ServerError, is_gone, serving
from live.small import main as small

_AT_MOST_SECONDS = 600

_HONEST = """
What the model did. It has 135 million parameters: it cannot choose tools well, and nothing
here says that it does. Where it was told which function to call, only the arguments are its
own. This server shows a model no results of calls, and no tools where the request does not
say how to choose among them, as in the free turns and in `toolfold ab`: what it says there
is made up.
"""


def main() -> int:
    """Run everything and return the exit status."""
    # Ended from outside, it still ends the server.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    started = time.perf_counter()
    report = Report()
    print(f"SmolLM2-135M-Instruct under llama.cpp, a context of {CONTEXT:,} tokens\n")
    server: Server | None = None
    try:
        with serving(CONTEXT) as server:
            took = time.perf_counter() - started
            report.check("the model server answers", True, f"after {took:.1f} s")
            asyncio.run(_within_time(server, report))
            compare(server, report)
    except (ServerError, TimeoutError) as error:
        report.check("the run comes to its end", False, str(error) or "it took too long")
    if server is not None:
        report.check("nothing is left running", is_gone(server))
    if report.notes:
        print(_HONEST)
        print("\n".join(f"  {note}" for note in report.notes))
    seconds = time.perf_counter() - started
    print(f"\n{report.passed} passed, {report.failed} failed, {seconds:.0f} s")
    return 1 if report.failed else 0


async def _within_time(server: Server, report: Report) -> None:
    async with asyncio.timeout(_AT_MOST_SECONDS):
        await hold(server, report)


if __name__ == "__main__":
    runs = {"small": small, "proxied": proxied}
    asked = runs.get(" ".join(sys.argv[1:2]))
    sys.exit(asked(sys.argv[2:]) if asked else main())
