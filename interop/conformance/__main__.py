"""Run the protocol's conformance suite: `python -m conformance [--json FILE] [--markdown FILE]`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from conformance.named import named
from conformance.servers import FOLDING, example, gateway
from conformance.suite import PARTS, Missing, Suite, installed
from conformance.tables import Run, as_json, as_markdown, lost

REVISIONS = ("2025-11-25", "2026-07-28")


def main() -> int:
    """Run it; 1 where something that passes directly is lost and is not on the list."""
    parser = argparse.ArgumentParser(prog="conformance", description=__doc__)
    parser.add_argument("--json", type=Path, default=PARTS / "tables.json", metavar="FILE")
    parser.add_argument("--markdown", type=Path, default=PARTS / "tables.md", metavar="FILE")
    parser.add_argument("--server-only", action="store_true", help="leave the client mode out")
    options = parser.parse_args()
    try:
        suite = installed()
    except Missing as error:
        print(f"conformance: skipped: {error}")
        return 0
    runs = server_runs(suite)
    if not options.server_only:
        runs += client_runs(suite)
    lists = {folding: named(folding) for folding in FOLDING}
    options.json.write_text(json.dumps(as_json(runs, lists), indent=1) + "\n", "utf-8")
    options.markdown.write_text(as_markdown(runs, lists), "utf-8")
    print(f"tables: {options.markdown}, {options.json}")
    return 1 if told(runs) else 0


def server_runs(suite: Suite) -> list[Run]:
    """Run what is asked of servers: the example itself, then the gateway in three ways."""
    runs: list[Run] = []
    for revision in REVISIONS:
        with example() as url:
            results = suite.against(url, revision, PARTS / "direct" / revision)
            runs.append(shown(Run("direct", revision, results)))
    for folding in FOLDING:
        for revision in REVISIONS:
            folder = PARTS / folding / revision
            with example() as url, gateway(url, folding, PARTS / f"{folding}-gateway") as address:
                runs.append(shown(Run(folding, revision, suite.against(address, revision, folder))))
    return runs


def client_runs(suite: Suite) -> list[Run]:
    """Run what is asked of clients: the gateway before the suite's own servers."""
    here = Path(__file__).parents[1]
    command = f"{sys.executable} -m conformance.client"
    env = {"PYTHONPATH": str(here)}
    return [
        shown(Run("client", r, suite.of_client(command, r, PARTS / "client" / r, env)))
        for r in REVISIONS
    ]


def shown(run: Run) -> Run:
    """Print how a run went."""
    passed, made = run.counts()
    print(f"{run.subject:>8} {run.revision}: {passed} of {made} checks", flush=True)
    return run


def told(runs: list[Run]) -> bool:
    """Print what was lost and is not on the list; say whether there is any."""
    direct = {run.revision: run for run in runs if run.subject == "direct"}
    found = False
    for run in runs:
        if run.subject not in FOLDING:
            continue
        for item in lost(direct[run.revision], run, named(run.subject)):
            if item.reason is None:
                found = True
                print(f"lost: {run.subject} {run.revision}: {item.check}: {item.status.lower()}")
    return found


if __name__ == "__main__":
    sys.exit(main())
