"""Other systems' searches, each in a virtual environment of its own.

A peer is installed on first use under `.bench/NAME/` from its pinned requirements and then runs as
a subprocess: what it installs (Hermes owns top-level modules named `tools` and `utils`) never
meets our imports. A peer that cannot be had is skipped with a reason; it never fails a bench.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

__all__ = ["PEERS", "Peer", "PeerUnavailableError", "Results", "clean_environment", "install"]

PEERS = (
    "hermes",
    "fastmcp",
    "everruns",
    "pydantic_ai_search",
    "haystack",
    "llama_index",
    "bm25s",
    "tantivy",
    "minilm",
)
"""Names of the peers: two systems, the scheme of a third, three frameworks, three libraries."""

_ALONE = "# alone"
"""What the requirements begin with where each is installed without what it asks for."""

_ENVIRONMENTS = {"pydantic_ai_search": "pydantic_ai"}
"""The environment of a peer that shares one."""

_HERE = Path(__file__).resolve().parent
_HOME = _HERE.parents[1] / ".bench"


class PeerUnavailableError(Exception):
    """A peer cannot be installed or does not run; the bench goes on without it."""


@dataclass(frozen=True, slots=True)
class Results:
    """What a peer answered to a list of queries."""

    names: tuple[tuple[str, ...], ...]
    """The tools found for each query, best first."""

    ms: Mapping[str, tuple[float, ...]]
    """Milliseconds for each query, by layer. `search` is in all of them; see the drivers."""

    characters: tuple[int, ...] = ()
    """The length of each answer as a model reads it; 0 where there is none."""

    ready: tuple[tuple[str, ...], ...] = ()
    """The tools of each answer that a model can call at once, having read their parameters."""


def install(name: str, home: Path = _HOME) -> Path:
    """Return the Python of a peer's environment, made now unless it is there.

    A peer without requirements is a scheme that is written here, and needs none.

    Raises:
        PeerUnavailableError: The packages could not be installed.
    """
    name = _ENVIRONMENTS.get(name, name)
    requirements = _HERE / f"requirements-{name}.txt"
    if not requirements.exists():
        return Path(sys.executable)
    environment = home / name / "venv"
    python = environment / ("Scripts" if os.name == "nt" else "bin") / "python"
    wanted = requirements.read_text(encoding="utf-8")
    done = home / name / "installed.txt"
    if done.exists() and done.read_text(encoding="utf-8") == wanted and python.exists():
        return python
    done.unlink(missing_ok=True)
    shutil.rmtree(environment, ignore_errors=True)
    pip = (str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
    alone = ("--no-deps",) if wanted.startswith(_ALONE) else ()
    for command in (
        (sys.executable, "-m", "venv", str(environment)),
        (*pip, *alone, "--requirement", str(requirements)),
    ):
        ran = subprocess.run(
            command, capture_output=True, text=True, env=clean_environment(), check=False
        )
        if ran.returncode:
            pins = ", ".join(line for line in wanted.splitlines() if not line.startswith("#"))
            raise PeerUnavailableError(
                f"{name} skipped: {pins} could not be installed ({_last_line(ran.stderr)})"
            )
    done.write_text(wanted, encoding="utf-8")
    return python


class Peer:
    """One peer with one catalog loaded. Use it as a context manager.

    Args:
        name: One of `PEERS`.
        tools: The catalog, as `{name, description, parameters, server}`.
        limit: How many tools a search returns at most.
        home: Where environments are kept.

    Raises:
        PeerUnavailableError: The peer cannot be installed or fails to load the catalog.
    """

    def __init__(
        self,
        name: str,
        tools: Sequence[Mapping[str, Any]],
        limit: int = 5,
        home: Path = _HOME,
    ) -> None:
        """Start the peer and load the catalog."""
        python = install(name, home)
        self.name = name
        self._folder = tempfile.TemporaryDirectory(prefix="toolfold-bench-")
        folder = Path(self._folder.name)
        catalog = folder / "tools.jsonl"
        catalog.write_text("".join(json.dumps(tool) + "\n" for tool in tools), encoding="utf-8")
        self._log = (folder / "stderr.txt").open("w+", encoding="utf-8", errors="replace")
        self._process = subprocess.Popen(
            (str(python), str(_HERE / f"{name}_driver.py")),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            encoding="utf-8",
            env={**clean_environment(), "TMPDIR": str(folder)},
        )
        try:
            ready = self._ask({"tools": str(catalog), "limit": limit})
        except PeerUnavailableError:
            self.close()
            raise
        self.build_ms: float = ready["build_ms"]
        """Milliseconds to load the catalog, the peer's own imports included where it is late."""

    def search(self, queries: Sequence[str]) -> Results:
        """Run the peer's search for each query, in order."""
        answer = self._ask({"queries": list(queries)})
        return Results(
            names=tuple(tuple(names) for names in answer["names"]),
            ms={
                key.removeprefix("ms_"): tuple(times)
                for key, times in answer.items()
                if key.startswith("ms_")
            },
            characters=tuple(answer["characters"]),
            ready=tuple(tuple(names) for names in answer["ready"]),
        )

    def close(self) -> None:
        """End the peer's process and drop its catalog."""
        if self._process.stdin and not self._process.stdin.closed:
            self._process.stdin.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()
        self._log.close()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        """Return the peer itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the peer."""
        self.close()

    def _ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise PeerUnavailableError(f"{self.name} skipped: it has no pipes")
        try:
            stdin.write(json.dumps(request) + "\n")
            stdin.flush()
            line = stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self._log.seek(0)
            raise PeerUnavailableError(f"{self.name} skipped: {_last_line(self._log.read())}")
        return json.loads(line)


def clean_environment() -> dict[str, str]:
    """Return the environment without what would leak our packages into a peer's."""
    leaks = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__"}
    return {key: value for key, value in os.environ.items() if key not in leaks}


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")]
    return (errors or lines or ["no message"])[-1]
