"""The distributions, built and tried as a stranger gets them, on every Python there is.

    .release/venv/bin/python release/try_out.py                    # every python3.N on the path
    .release/venv/bin/python release/try_out.py --python /opt/3.13/bin/python3 --no-tests

The wheel is built from the source distribution, so what one lacks the other lacks. On each
Python the wheel is installed into a fresh environment, and `toolfold demo` runs there; then
the tests that come with the source distribution run against the installed wheel. The ways of
the README into a first run (pip, pipx, uvx) are timed. Packages come from the index, or from
the caches of pip and uv where these have them.
"""

from __future__ import annotations

import argparse
import email
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["main"]

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / ".release" / "dist"
VERSIONS = range(11, 20)
SAMPLE = "https://example.org/somebody/toolfold"
EXTRAS = "[agent,mcp,openapi,otel]"
QUICK = ("tests/test_*.py", "tests/wire", "tests/strategy", "tests/settings", "tests/contract")
"""Tests that need no server, some thousand of them."""

_LINK = re.compile(r"\]\((?!#)([^)\s]+)\)")
_CODE = re.compile(r"^```.*?^```$|`[^`\n]+`", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Distributions:
    """What was built: a source distribution, and the wheel made from it."""

    source: Path
    wheel: Path


def main() -> int:
    """Build, check, install and run; print what each step took."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--python", action="append", metavar="PROGRAM", help="repeatable")
    parser.add_argument("--no-tests", action="store_true", help="leave out the tests")
    parser.add_argument("--no-tools", action="store_true", help="leave out pipx and uvx")
    parser.add_argument("--dist", type=Path, metavar="FOLDER", help="try what is built already")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="toolfold-release-") as folder:
        work = Path(folder)
        built = _found(arguments.dist) if arguments.dist else _built(work)
        for python in arguments.python or _pythons():
            _try_python(python, built, work, tests=not arguments.no_tests)
        if not arguments.no_tools:
            _try_tools(built.wheel, work)
    return 0


# ---- building


def _built(work: Path) -> Distributions:
    """Build both, check their metadata and page, and keep them."""
    shutil.rmtree(KEPT, ignore_errors=True)
    _run("the distributions are built", sys.executable, "-m", "build", "--outdir", KEPT, ROOT)
    built = _found(KEPT)
    _run("twine check", sys.executable, "-m", "twine", "check", "--strict", *KEPT.iterdir())
    _check_page(built.wheel, None)
    copy = _unpacked(built.source, work / "addressed")
    project = copy / "pyproject.toml"
    text = project.read_text(encoding="utf-8")
    if not re.search(r"^\[project\.urls\]", text, re.MULTILINE):
        urls = f'[project.urls]\nRepository = "{SAMPLE}"\n\n[project.scripts]'
        project.write_text(text.replace("[project.scripts]", urls), encoding="utf-8")
        # The builder would take the page from it, as it was made without an address.
        (copy / "PKG-INFO").unlink()
        out = work / "addressed-dist"
        _run(
            "a wheel with a sample address", sys.executable, "-m", "build", "--wheel",
            "--outdir", out, copy,
        )  # fmt: skip
        [addressed] = out.glob("*.whl")
        _check_page(addressed, SAMPLE)
    return built


def _found(folder: Path) -> Distributions:
    [source], [wheel] = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return Distributions(source.resolve(), wheel.resolve())


def _check_page(wheel: Path, address: str | None) -> None:
    """Fail where a link of the package page leads to nothing that the reader has."""
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith("METADATA")]
        metadata = email.message_from_bytes(archive.read(name))
    page = _CODE.sub("", str(metadata.get_payload(decode=True), "utf-8"))
    relative = [link for link in _LINK.findall(page) if not re.match(r"[a-z]+:", link)]
    if relative:
        raise SystemExit(f"links of the package page that lead nowhere: {', '.join(relative)}")
    if address is not None and f"]({address}/blob/v" not in page:
        raise SystemExit("no link of the package page leads to the repository")


def _unpacked(source: Path, folder: Path) -> Path:
    with tarfile.open(source) as archive:
        archive.extractall(folder, filter="data")
    [inside] = folder.iterdir()
    return inside


# ---- every Python


def _pythons() -> list[str]:
    names = [f"python3.{minor}" for minor in VERSIONS]
    return [name for name in names if _answers(name)] or [sys.executable]


def _answers(program: str) -> bool:
    # A version manager leaves names on the path that run nothing.
    found = shutil.which(program)
    return bool(found) and not subprocess.run([found, "--version"], capture_output=True).returncode


def _try_python(python: str, built: Distributions, work: Path, *, tests: bool) -> None:
    code = "import sys; print('.'.join(map(str, sys.version_info[:3])))"
    version = subprocess.check_output([python, "-c", code], text=True).strip()
    print(f"Python {version}")
    environment = work / f"venv-{version}"
    _run("a fresh environment", python, "-m", "venv", environment)
    scripts = environment / ("Scripts" if os.name == "nt" else "bin")
    pip = (scripts / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    _run("pip install toolfold", *pip, built.wheel)
    _run("import toolfold", scripts / "python", "-c", "import toolfold")
    _run("toolfold demo", scripts / "toolfold", "demo")
    if not tests:
        return
    source = _unpacked(built.source, work / f"source-{version}")
    _run("pip, for groups", *pip, "--upgrade", "pip>=25.1")
    constrained = (*pip, "--constraint", source / "constraints.txt")
    _run("what tests need", *constrained, f"{built.wheel}{EXTRAS}", "--group", "dev", cwd=source)
    paths = [path for pattern in QUICK for path in sorted(source.glob(pattern))]
    pytest = (scripts / "python", "-m", "pytest", "-m", "not slow", "-p", "no:cacheprovider")
    _run("the quick tests", *pytest, *paths, cwd=source, tail=1)


# ---- the ways of the README


def _try_tools(wheel: Path, work: Path) -> None:
    """Time a first `toolfold demo` by the tools that make an environment themselves."""
    scripts = Path(sys.executable).parent
    homes = {
        "PIPX_HOME": str(work / "pipx"),
        "PIPX_BIN_DIR": str(work / "pipx-bin"),
        "UV_TOOL_DIR": str(work / "uv-tools"),
    }
    print("The other ways in")
    uvx = (scripts / "uvx", "--isolated", "--python", sys.executable, "--from", wheel)
    _run("uvx toolfold demo", *uvx, "toolfold", "demo", variables=homes)
    pipx = (scripts / "pipx", "run", "--no-cache", "--spec", wheel)
    _run("pipx run toolfold demo", *pipx, "toolfold", "demo", variables=homes)


def _run(
    label: str,
    *command: str | Path,
    cwd: Path | None = None,
    tail: int = 0,
    variables: dict[str, str] | None = None,
) -> None:
    """Run a command, and print its label with the seconds it took and its last lines.

    Raises:
        SystemExit: It failed; what it printed is shown.
    """
    began = time.perf_counter()
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd or ROOT.parent,
        env=_environment() | (variables or {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    )
    seconds = time.perf_counter() - began
    if done.returncode:
        raise SystemExit(f"{label}: failed with {done.returncode}\n{done.stdout[-6000:]}")
    lines: Sequence[str] = done.stdout.strip().splitlines()
    print(
        f"{seconds:8.1f} s  {label}", *(f"({line})" for line in lines[-tail:] if tail), flush=True
    )


def _environment() -> dict[str, str]:
    """Return the environment without what would let this checkout or our settings in."""
    ours = ("PYTHONPATH", "VIRTUAL_ENV", "TOOLFOLD_")
    return {key: value for key, value in os.environ.items() if not key.startswith(ours)}


if __name__ == "__main__":
    sys.exit(main())
