"""The suite itself: installed into a folder of its own, run, and its results read."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import yaml

__all__ = ["Check", "Missing", "Suite", "installed"]

ROOT = Path(__file__).parents[2]
PARTS = ROOT / ".conformance"
NODE = PARTS / "node_modules" / ".bin" / "node"
SUITE = PARTS / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
SEVERITY = ("SUCCESS", "INFO", "SKIPPED", "WARNING", "FAILURE")
_TIME = re.compile(r"-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z\Z")
EXTENSIONS = ("tasks-",)
"""Scenarios of extensions that the protocol's Python library does not have."""

_LONGEST_RUN = 900
_LONGEST_INSTALL = 600
_NOT_CHECKS = frozenset(
    "outgoing-request incoming-request incoming-response outgoing-response incoming-sse-event "
    "stream-closed".split()
)
"""What the suite writes down beside its checks: who said what to whom."""


class Missing(Exception):
    """The suite cannot be run here; says why, in one sentence."""


class Check(NamedTuple):
    """One check of a scenario."""

    scenario: str
    id: str
    name: str

    def __str__(self) -> str:
        return f"{self.scenario}: {self.id} ({self.name})"


Results = dict[Check, str]
"""What each check came to; where it was made several times, the worst."""


@dataclass(frozen=True, slots=True)
class Suite:
    """The suite, ready to run."""

    node: Path
    script: Path

    def against(self, url: str, revision: str, folder: Path) -> Results:
        """Run what a revision asks of servers against an address."""
        which = ["--requirements", revision]
        found = self._run(["server", "--url", url], which, folder, {})
        return {c: s for c, s in found.items() if not c.scenario.startswith(EXTENSIONS)}

    def of_client(
        self, command: str, revision: str, folder: Path, env: Mapping[str, str]
    ) -> Results:
        """Run what a revision asks of clients: a command, started with a server's address.

        One scenario after the other, two at a time: the suite would start all at once.
        """
        path = self.script.parents[1] / "requirements" / f"{revision}.yaml"
        scenarios = yaml.safe_load(path.read_text("utf-8"))["client"]
        shutil.rmtree(folder, ignore_errors=True)
        with ThreadPoolExecutor(2) as pool:
            made = pool.map(
                lambda s: self._run(
                    ["client", "--command", command, "--timeout", "60000"],
                    ["--scenario", s, "--spec-version", revision],
                    folder / s.replace("/", "_"),
                    env,
                ),
                scenarios,
            )
            return {
                check._replace(scenario=scenario): status
                for scenario, results in zip(scenarios, made, strict=True)
                for check, status in results.items()
            }

    def _run(
        self, arguments: list[str], which: list[str], folder: Path, env: Mapping[str, str]
    ) -> Results:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        command = [str(self.node), str(self.script), *arguments]
        done = subprocess.run(
            [*command, *which, "--output-dir", str(folder)],
            capture_output=True,
            text=True,
            timeout=_LONGEST_RUN,
            env={**os.environ, **env},
            cwd=folder,
            check=False,
        )
        (folder / "output.txt").write_text(done.stdout + done.stderr, "utf-8")
        found: Results = {}
        for path in sorted(folder.rglob("checks.json")):
            scenario = _scenario(path.parent.relative_to(folder))
            for record in json.loads(path.read_text("utf-8")):
                check = Check(scenario, record["id"], record.get("name", ""))
                if check.id not in _NOT_CHECKS:
                    worst = max(found.get(check, "SUCCESS"), record["status"], key=SEVERITY.index)
                    found[check] = worst
        if not found:
            raise RuntimeError(f"the suite made no check:\n{done.stdout[-2000:]}{done.stderr}")
        return found


def _scenario(folder: Path) -> str:
    """Return the scenario of a folder of results: it stands between the mode and the time."""
    return _TIME.sub("", folder.as_posix().removeprefix("server-"))


def installed() -> Suite:
    """Return the suite, installed where it is not there yet.

    Raises:
        Missing: It cannot be had here.
    """
    wanted = Path(__file__).with_name("package.json").read_text("utf-8")
    has = PARTS / "package.json"
    if not SUITE.exists() or not has.exists() or has.read_text("utf-8") != wanted:
        _install(wanted)
    try:
        version = subprocess.run(
            [str(NODE), "--version"], capture_output=True, text=True, timeout=60, check=False
        ).stdout.strip()
    except OSError:
        version = ""
    if not version.startswith("v22."):
        raise Missing(f"Node 22 cannot be run here (it says {version!r})")
    return Suite(NODE, SUITE)


def _install(wanted: str) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise Missing("npm cannot be found: the suite and its Node 22 are installed with it")
    PARTS.mkdir(exist_ok=True)
    (PARTS / "package.json").write_text(wanted, "utf-8")
    options = ("--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error")
    done = subprocess.run(
        [npm, "install", "--prefix", str(PARTS), *options],
        capture_output=True,
        text=True,
        timeout=_LONGEST_INSTALL,
        check=False,
    )
    if done.returncode or not SUITE.exists():
        (PARTS / "package.json").unlink()
        raise Missing(f"npm could not install the suite: {done.stderr.strip()[-300:]}")
