"""The proving ground: replicas behind a balancer over one database, each on a host of its own."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self

import psycopg

from cluster import balancer, hosts, postgres
from cluster.hosts import Host, Network
from cluster.load import SERVERS, Settings, page_of
from cluster.postgres import APP, OWNER, Postgres, Standby, either
from toolfold.config.serve_settings import ServeSettings
from toolfold.store.postgres.migrations import migrate

__all__ = ["ADMIN", "Ground", "Loading", "Plan", "Replica", "has_store", "why_not"]

ADMIN = "the-admin-of-the-proving-ground"
"""The admin's token, of every replica."""

_PORT = 8765
_BALANCED = 8080
_LEDGER = Path(__file__).resolve().parent / "servers" / "ledger.py"
_DATABASE = "tools"


def has_store() -> bool:
    """Whether this gateway shares what it knows over a database."""
    return "store" in {setting.name for setting in fields(ServeSettings)}


def why_not() -> str:
    """Return why there can be no proving ground here; empty where there can."""
    return postgres.why_not() or hosts.why_not()


@dataclass(frozen=True, slots=True)
class Plan:
    """What a proving ground is to have.

    Args:
        replicas: How many gateways.
        clients: How many clients, each with a token and a scope.
        strategy: How the gateways fold.
        servers: The servers behind them: `ledger` over HTTP, one for all; `stock` over pipes.
        is_shared: Whether the gateways share what they know over the database.
        cores: How much of the cores each replica has at most; all there is without it.
        serve: More keys of the block `serve`.
        entries: More keys of each server's entry, by its name.
    """

    replicas: int = 2
    clients: int = 50
    strategy: str = "bridge"
    servers: tuple[str, ...] = SERVERS
    is_shared: bool = True
    cores: float | None = None
    serve: Mapping[str, Any] = field(default_factory=dict[str, Any])
    entries: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])


class Replica:
    """One gateway on its host."""

    def __init__(self, host: Host, folder: Path, config: Mapping[str, Any]) -> None:
        self.host = host
        self.log = folder / f"{host.name}.log"
        self.address = f"{host.address}:{_PORT}"
        self.url = f"http://{self.address}/mcp"
        self.state = folder / host.name
        self.config = folder / f"{host.name}.json"
        self._process: subprocess.Popen[str] | None = None
        own = {**config["serve"], "state_dir": str(self.state)}
        self.config.write_text(json.dumps({**config, "serve": own}), encoding="utf-8")

    def start(self) -> None:
        """Start it; it is not ready yet."""
        command = [sys.executable, "-m", "toolfold", "serve", "--config", str(self.config)]
        self._process = self.host.start(
            [*command, "--http", self.address], log=self.log, env=_environment(self.state)
        )

    def crash(self) -> None:
        """End it and all that it started, as a power cut would."""
        self.host.crash()
        self._wait()

    def kill(self) -> None:
        """Kill the gateway alone; what it started finds out by itself."""
        assert self._process is not None
        self._process.kill()
        self._wait()

    def stop(self) -> None:
        """Have it drain and end."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        self._wait()

    def is_ready(self) -> bool:
        """Whether it says that requests should be sent to it."""
        return self.host.run(self._asked)

    @property
    def has_ended(self) -> bool:
        """Whether its process has ended, by itself or not."""
        return self._process is None or self._process.poll() is not None

    def start_for_good(self, seconds: float = 60) -> None:
        """Start it until it is ready, as a supervisor does: a start fails without a database."""
        end = time.monotonic() + seconds
        while True:
            self.start()
            try:
                return self.until_ready(end - time.monotonic())
            except RuntimeError:
                if not self.has_ended or time.monotonic() > end:
                    raise

    def until_ready(self, seconds: float = 60) -> None:
        """Wait until it is."""
        end = time.monotonic() + seconds
        while not self.is_ready():
            if time.monotonic() > end or self.has_ended:
                said = self.log.read_text(encoding="utf-8", errors="replace")[-2_000:]
                raise RuntimeError(f"{self.host.name} does not get ready:\n{said}")
            time.sleep(0.05)

    def tell(self, verb: str, arguments: Mapping[str, Any]) -> Any:
        """Ask for a verb of the admin's, and return its result."""
        request = urllib.request.Request(
            f"http://{self.address}/admin/{verb}",
            data=json.dumps(arguments).encode(),
            headers={"authorization": f"Bearer {ADMIN}", "content-type": "application/json"},
        )

        def asked() -> Any:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return json.load(answer)["result"]

        return self.host.run(asked)

    def _asked(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://{self.address}/readyz", timeout=2) as answer:
                return answer.status == 200
        except (OSError, urllib.error.URLError):
            return False

    def _wait(self) -> None:
        assert self._process is not None
        self._process.wait(60)


class Ground:
    """Hosts, database, servers, replicas and balancer. Open it with `with`.

    Args:
        folder: Where everything is written.
        plan: What there is to be.
    """

    def __init__(self, folder: Path, plan: Plan) -> None:
        self.folder = folder
        self.plan = plan
        self.tokens = tuple(secrets.token_hex(16) for _ in range(plan.clients))
        self.ledger = folder / "ledger.jsonl"
        self.names = [f"r{number}" for number in range(1, plan.replicas + 1)]
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with self._stack:
            names = ("clients", "balancer", "servers", "db1", "db2", *self.names)
            self.network = self._stack.enter_context(Network(*names))
            if self.plan.is_shared:
                self._start_database()
            self.ledger.touch()
            python = [sys.executable, "-S", "-E", str(_LEDGER), "ledger", str(self.ledger)]
            self.network["servers"].start([*python, self._ledger_address], log=self._log("servers"))
            config = self._config()
            self.replicas = [
                Replica(self.network[name], self.folder, config) for name in self.names
            ]
            for replica in self.replicas:
                if self.plan.cores is not None:
                    replica.host.limit(self.plan.cores)
                replica.start()
            for replica in self.replicas:
                replica.until_ready()
            self._start_balancer()
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def url(self) -> str:
        """Where clients reach the gateway, whichever replica it is."""
        return f"http://{self._balanced}/mcp"

    def loading(self, **how: Any) -> Loading:
        """Return the clients, on their host."""
        own: dict[str, Any] = {"strategy": self.plan.strategy, "servers": self.plan.servers, **how}
        account = self.folder / "account.jsonl"
        settings = Settings(self.url, str(account), self.tokens, **own)
        return Loading(self.network["clients"], settings, self._log("clients"))

    def cpu_seconds(self) -> dict[str, float]:
        """Return how long each kind of host has kept a core busy."""
        kinds = {
            "clients": ["clients"],
            "balancer": ["balancer"],
            "replicas": self.names,
            "database": ["db1", "db2"],
            "servers": ["servers"],
        }
        return {
            kind: sum(self.network[name].cpu_seconds() for name in names)
            for kind, names in kinds.items()
        }

    # ---- the database

    def fail_over(self, *, is_silent: bool = False) -> None:
        """Kill the primary, and have its standby take its place.

        Args:
            is_silent: Whether its host goes off the wire first, so that nobody hears of its end.
        """
        host = self.primary.host
        assert host is not None
        if is_silent:
            self.network.part(host.name, *(name for name in self.network if name != host.name))
        self.primary.kill()
        self.standby.promote()
        self.primary = self.standby

    def follow_again(self) -> None:
        """Give the primary of now a standby, on the host that has none."""
        assert self.primary.host is not None
        free = "db1" if self.primary.host.name == "db2" else "db2"
        self.network.mend(free, *(name for name in self.network if name != free))
        self.standby = self._stack.enter_context(Standby(self.primary, self.network[free]))
        self.primary.wait_for(self.standby)

    def _start_database(self) -> None:
        self.primary: Postgres = self._stack.enter_context(Postgres(host=self.network["db1"]))
        with psycopg.connect(self.primary.address(OWNER), autocommit=True) as connection:
            connection.execute(f"create role {APP} login")
            connection.execute(f"create database {_DATABASE}")
        with psycopg.connect(self.primary.address(OWNER, _DATABASE), autocommit=True) as connection:
            migrate(connection, APP)
        self.follow_again()
        self.store = either((self.primary, self.standby), APP, _DATABASE)

    # ---- the rest

    @property
    def _balanced(self) -> str:
        return f"{self.network['balancer'].address}:{_BALANCED}"

    @property
    def _ledger_address(self) -> str:
        return f"{self.network['servers'].address}:{_PORT}"

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def _start_balancer(self) -> None:
        addresses = [replica.address for replica in self.replicas]
        command = balancer.command(self._balanced, addresses, self.folder)
        self.network["balancer"].start(command, log=self._log("balancer"), env=_environment())
        end = time.monotonic() + 30
        while not self.network["clients"].run(self._is_balanced):
            if time.monotonic() > end:
                raise RuntimeError("the balancer does not answer")
            time.sleep(0.05)

    def _is_balanced(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://{self._balanced}/readyz", timeout=2) as answer:
                return answer.status == 200
        except (OSError, urllib.error.URLError):
            return False

    def _config(self) -> dict[str, Any]:
        own = {name: dict(self.plan.entries.get(name, {})) for name in self.plan.servers}
        servers: dict[str, Any] = {}
        if "ledger" in own:
            servers["ledger"] = {"url": f"http://{self._ledger_address}/mcp", **own["ledger"]}
        if "stock" in own:
            arguments = ["-S", "-E", str(_LEDGER), "stock", str(self.ledger)]
            servers["stock"] = {"command": sys.executable, "args": arguments, **own["stock"]}
        tokens = [self._token(number, token) for number, token in enumerate(self.tokens)]
        serve = {
            "tokens": tokens,
            "allowed_hosts": [self.network["balancer"].address],
            "audit": "off",
            "admin": f"sha256:{_digest(ADMIN)}",
            "notice": 3,  # the balancer takes a second and a half to see it
            **({"store": self.store} if self.plan.is_shared else {}),
            **self.plan.serve,
        }
        folding = {"enabled": "on", "strategy": self.plan.strategy, "cache_dir": "off"}
        return {"mcpServers": servers, "serve": serve, "tools": {"tool_search": folding}}

    def _token(self, number: int, token: str) -> dict[str, Any]:
        allow = [f"{server}__write_{page_of(number)}" for server in self.plan.servers]
        allow = [*allow, "stock__confirm"] if "stock" in self.plan.servers else allow
        return {"name": f"client{number}", "sha256": _digest(token), "allow": allow}


class Loading:
    """The clients as a process, which makes calls phase by phase. Open it with `with`."""

    def __init__(self, host: Host, settings: Settings, log: Path) -> None:
        self.account = Path(settings.account)
        self._log = log
        command = [sys.executable, "-m", "cluster.load", settings.written()]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        root = Path(__file__).resolve().parent.parent
        self._process = host.start(command, log=log, env=_environment(), cwd=root, **pipes)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def begin(self, phase: str, calls: int) -> None:
        """Have the clients make so many calls."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"phase": phase, "calls": calls}) + "\n")
        self._process.stdin.flush()

    def end(self) -> None:
        """Wait until all of them have ended."""
        assert self._process.stdout is not None
        if not self._process.stdout.readline():
            said = self._log.read_text(encoding="utf-8", errors="replace")[-2_000:]
            raise RuntimeError(f"the clients ended:\n{said}")


def _environment(home: Path | None = None) -> dict[str, str]:
    own = {"PATH": os.environ.get("PATH", ""), "LANG": "C.UTF-8"}
    return own if home is None else {**own, "HOME": str(home)}


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
