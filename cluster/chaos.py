"""Replicas under load while everything around them breaks: what became of every call.

`python -m cluster.chaos --replicas 4 --clients 50 --calls 30000` starts replicas behind a
balancer over one PostgreSQL with a standby, each on a host of its own, and goes through the
phases: nothing happens; replicas are killed, stopped and started at random; PostgreSQL is
restarted, by and by more rudely; it is failed over to its standby; hosts are parted from the
database, from the balancer and from each other.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cluster import ground
from cluster.ground import Ground, Plan
from cluster.judge import Verdict, judged, read_account, side_by_side
from cluster.load import SERVERS
from cluster.wire import MODERN, OLDER

__all__ = ["PHASES", "Chaos", "main"]

Trouble = Callable[["Chaos"], None]


class Chaos:
    """A proving ground under load, and what is done to it.

    Args:
        ground: The ground.
        seed: What happens when is by chance, and the same for the same seed.
    """

    def __init__(self, ground: Ground, seed: int = 1) -> None:
        self.ground = ground
        self.chance = random.Random(seed)
        self.done: list[str] = []
        """What was done, in order."""
        self.cpu: dict[str, float] = {}
        """Milliseconds of a core that a call cost each kind of host, while all was calm."""
        self._enough = threading.Event()

    def run(self, shares: Sequence[tuple[str, int]], **how: Any) -> list[Verdict]:
        """Go through some phases with so many calls each, and return what each came to."""
        with self.ground.loading(**how) as loading:
            for phase, calls in shares:
                before = self.ground.cpu_seconds()
                with self._troubled(PHASES[phase]):
                    loading.begin(phase, calls)
                    loading.end()
                if phase == "calm":
                    after = self.ground.cpu_seconds()
                    self.cpu = {
                        kind: round((after[kind] - before[kind]) / calls * 1_000, 2)
                        for kind in after
                    }
        return judged(*read_account(loading.account), self.ground.ledger)

    def rest(self, low: float, high: float) -> bool:
        """Wait a while; say whether the phase still goes on."""
        return not self._enough.wait(self.chance.uniform(low, high))

    def note(self, what: str) -> None:
        """Take note of what is done."""
        self.done.append(what)

    @contextmanager
    def _troubled(self, trouble: Trouble) -> Generator[None]:
        self._enough.clear()
        failed: list[BaseException] = []

        def made() -> None:
            try:
                trouble(self)
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=made)
        thread.start()
        try:
            yield
        finally:
            self._enough.set()
            thread.join()
            self.ground.network.mend_all()
        if failed:
            raise failed[0]
        for replica in self.ground.replicas:
            replica.until_ready()


# ---- what is done; each leaves everything as it was


def nothing(chaos: Chaos) -> None:
    """Leave everything in peace."""


def replicas_die(chaos: Chaos) -> None:
    """Kill or stop one replica after another, at random, and start it again."""
    replicas = chaos.ground.replicas
    while chaos.rest(0.1, 2):
        replica = chaos.chance.choice(replicas)
        way = chaos.chance.choice((replica.crash, replica.kill, replica.stop))
        way()
        chaos.note(f"{way.__name__} {replica.host.name}")
        chaos.rest(0, 2)
        replica.start_for_good()


def database_restarts(chaos: Chaos) -> None:
    """Restart PostgreSQL again and again: orderly, at once, and as after a power cut."""
    while chaos.rest(0.1, 3):
        _restart_once(chaos)


def _restart_once(chaos: Chaos) -> None:
    mode = chaos.chance.choice(("fast", "immediate", "kill"))
    chaos.ground.primary.restart(mode)
    chaos.note(f"restart {mode}")
    chaos.rest(1, 4)


def database_fails_over(chaos: Chaos) -> None:
    """Fail over to the standby, and back again where there is time."""
    while chaos.rest(0.1, 2):
        _fail_over_once(chaos)


def _fail_over_once(chaos: Chaos) -> None:
    is_silent = chaos.chance.random() < 0.5
    chaos.ground.fail_over(is_silent=is_silent)
    chaos.note("fail over without a word" if is_silent else "fail over")
    chaos.rest(2, 6)
    chaos.ground.follow_again()


def hosts_part(chaos: Chaos) -> None:
    """Part a replica from the database, from the others or from everybody, for a while."""
    network, names = chaos.ground.network, chaos.ground.names
    while chaos.rest(0.1, 2):
        name = chaos.chance.choice(names)
        others = [other for other in names if other != name]
        kinds = {
            "database": ["db1", "db2"],
            "balancer": ["balancer"],
            "servers": ["servers"],
            "replicas": others,
            "everybody": ["db1", "db2", "balancer", "servers", *others],
        }
        kind = chaos.chance.choice(list(kinds))
        network.part(name, *kinds[kind])
        chaos.note(f"part {name} from {kind}")
        chaos.rest(2, 8)
        network.mend(name, *kinds[kind])
        chaos.rest(0, 3)


def everything(chaos: Chaos) -> None:
    """Have replicas die while PostgreSQL restarts, fails over and is out of reach."""

    def database(chaos: Chaos) -> None:
        while chaos.rest(0.5, 2):
            chaos.chance.choice((_restart_once, _fail_over_once))(chaos)

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(trouble, chaos) for trouble in (replicas_die, database)]:
            done.result()


PHASES: dict[str, Trouble] = {
    "warm-up": nothing,
    "calm": nothing,
    "replicas killed": replicas_die,
    "database restarted": database_restarts,
    "failed over": database_fails_over,
    "parted": hosts_part,
    "everything": everything,
}
"""The phases by name."""

_SHARES = {
    "calm": 0.2,
    "replicas killed": 0.3,
    "database restarted": 0.15,
    "failed over": 0.15,
    "parted": 0.2,
}
_WITHOUT_DATABASE = ("calm", "replicas killed", "parted")


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Return rows as a table of Markdown."""
    heads = list(rows[0])
    lines = [[str(value) for value in row.values()] for row in rows]
    widths = [max(len(line[i]) for line in [heads, *lines]) for i in range(len(heads))]

    def line(cells: Sequence[str]) -> str:
        padded = [
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return f"| {' | '.join(padded)} |"

    rule = "|" + "|".join(("-" if i == 0 else "-:").rjust(w + 2, "-") for i, w in enumerate(widths))
    return "\n".join([line(heads), f"{rule}|", *map(line, lines)])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it, print the table, and return 1 where a fault was found."""
    given = _arguments(arguments)
    if reason := ground.why_not():
        print(f"skipped: {reason}", file=sys.stderr)
        return 0
    is_shared = given.store == "postgres" or (given.store == "auto" and ground.has_store())
    plan = Plan(
        replicas=given.replicas,
        clients=given.clients,
        strategy=given.strategy,
        servers=tuple(given.servers.split(",")),
        is_shared=is_shared,
        cores=given.cores,
        entries={"stock": {"run": "once"}} if given.leased else {},
    )
    phases = given.phases.split(",") if given.phases else list(_SHARES)
    if not is_shared:
        phases = [phase for phase in phases if phase in _WITHOUT_DATABASE]
    whole = sum(_SHARES.get(phase, 0.2) for phase in phases)
    shares = [("warm-up", given.clients * 4)]
    shares += [(phase, round(given.calls * _SHARES.get(phase, 0.2) / whole)) for phase in phases]
    with _folder(given.folder) as folder:
        began = time.monotonic()
        with Ground(folder, plan) as made:
            chaos = Chaos(made, given.seed)
            how = {"revision": given.revision, "tries_again": not given.once}
            verdicts = chaos.run(shares, **how)
            beside = side_by_side(made.ledger, "stock") if given.leased else []
        seconds = time.monotonic() - began
    _print(given, verdicts, chaos, beside, seconds)
    return 0 if all(verdict.holds for verdict in verdicts) and not beside else 1


def _print(
    given: argparse.Namespace,
    verdicts: Sequence[Verdict],
    chaos: Chaos,
    beside: Sequence[str],
    seconds: float,
) -> None:
    rows = [verdict.row() for verdict in verdicts]
    if given.json:
        about = {"replicas": given.replicas, "clients": given.clients, "revision": given.revision}
        faults = {verdict.phase: verdict.faults for verdict in verdicts}
        result = {**about, "seconds": round(seconds), "phases": rows, "faults": faults}
        more = {"cpu ms a call": chaos.cpu, "done": chaos.done, "side by side": beside}
        print(json.dumps({**result, **more}))
        return
    print(f"{given.replicas} replicas, {given.clients} clients, {given.revision}, {seconds:.0f} s")
    print(table(rows))
    for verdict in verdicts[:-1]:
        for kind, found in verdict.faults.items():
            for fault in found[:3]:
                print(f"{verdict.phase}: {kind}: {fault}", file=sys.stderr)
    for pair in beside:
        print(f"a server that runs once ran twice: {pair}", file=sys.stderr)
    if chaos.cpu:
        spent = ", ".join(f"{kind} {ms}" for kind, ms in chaos.cpu.items())
        print(f"milliseconds of a core for a call, in the calm: {spent}")
    print(f"what was done: {', '.join(chaos.done) or 'nothing'}")


@contextmanager
def _folder(given: str | None) -> Generator[Path]:
    if given is not None:
        folder = Path(given)
        folder.mkdir(parents=True)
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="toolfold-chaos-") as made:
        yield Path(made)


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m cluster.chaos", description=__doc__)
    add = parser.add_argument
    add("--replicas", type=int, default=2)
    add("--clients", type=int, default=50)
    add("--calls", type=int, default=30_000)
    add("--phases", help=f"some of: {', '.join(PHASES)}")
    add("--strategy", choices=("bridge", "reveal"), default="bridge")
    add("--revision", choices=(OLDER, MODERN), default=OLDER)
    add("--servers", default=",".join(SERVERS), help="ledger (HTTP), stock (pipes)")
    add("--store", choices=("auto", "postgres", "none"), default="auto")
    add("--once", action="store_true", help="never make a call again")
    add("--leased", action="store_true", help="the server over pipes runs once for all")
    add("--cores", type=float, help="how much of the cores each replica has at most, as 0.25")
    add("--seed", type=int, default=1)
    add("--folder", help="a new folder for logs and records; kept")
    add("--json", action="store_true", help="print one object")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
