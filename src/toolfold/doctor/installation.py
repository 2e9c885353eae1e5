"""Python, toolfold and the packages that its extras stand on."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib import metadata

from toolfold.doctor.diagnosis import Diagnosis

__all__ = ["EXTRAS", "look_at_installation", "missing_of"]

_PART = "installation"
_LEAST_PYTHON = (3, 11)
_REQUIREMENT = re.compile(
    r"""([A-Za-z0-9._-]+)(?:\[[^\]]*\])?\s*([^;]*);.*extra == ['"]([\w-]+)['"]"""
)
_BOUND = re.compile(r"(>=|<)\s*([0-9][0-9.]*)")
EXTRAS = {
    "agent": "chat, ab and enrich with a model",
    "mcp": "MCP servers and the gateway",
    "openapi": "HTTP APIs as tools",
    "proxy": "the model-API proxy",
    "exact": "exact token counts",
    "otel": "spans",
    "postgres": "what several processes share",
}
"""The extras that commands use, and what for."""


def look_at_installation() -> Iterator[Diagnosis]:
    """Yield how the program itself is installed."""
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] < _LEAST_PYTHON:
        fix = "install toolfold with Python 3.11 or newer: uv tool install --python 3.13 toolfold"
        yield Diagnosis(_PART, "Python", "broken", f"{version} is too old", fix)
    else:
        yield Diagnosis(_PART, "Python", "ok", f"{version}, {sys.executable}")
    try:
        own = metadata.version("toolfold")
    except metadata.PackageNotFoundError:
        fix = "pip install toolfold"
        yield Diagnosis(_PART, "toolfold", "broken", "runs without being installed", fix)
        return
    yield Diagnosis(_PART, "toolfold", "ok", own)
    for extra, purpose in EXTRAS.items():
        if _packages(extra):
            yield _look_at_extra(extra, purpose)


def missing_of(extra: str) -> list[str]:
    """Return the packages of an extra that are not there."""
    return [name for name, _ in _packages(extra) if _version(name) is None]


def _look_at_extra(extra: str, purpose: str) -> Diagnosis:
    name = f"extra {extra}"
    fix = f"pip install 'toolfold[{extra}]'"
    packages = _packages(extra)
    missing = missing_of(extra)
    if missing:
        message = f"not installed, and needed for {purpose} alone"
        return Diagnosis(_PART, name, "ok", message, fix)
    there = [(name, bounds, _version(name) or "") for name, bounds in packages]
    for package, bounds, version in there:
        if not _is_within(version, bounds):
            message = f"{package} is {version}, and {bounds.strip()} is needed for {purpose}"
            return Diagnosis(_PART, name, "broken", message, f"pip install --upgrade {fix[12:]}")
    shown = ", ".join(f"{package} {version}" for package, _, version in there)
    return Diagnosis(_PART, name, "ok", f"{shown} ({purpose})")


def _packages(extra: str) -> list[tuple[str, str]]:
    """Return the packages that an extra names, each with its bounds."""
    found = (_REQUIREMENT.match(line) for line in metadata.requires("toolfold") or ())
    return [(match[1], match[2]) for match in found if match and match[3] == extra]


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _is_within(version: str, bounds: str) -> bool:
    own = _numbers(version)
    for sign, bound in _BOUND.findall(bounds):
        if (own < _numbers(bound)) if sign == ">=" else (own >= _numbers(bound)):
            return False
    return True


def _numbers(version: str) -> tuple[int, ...]:
    release = re.match(r"[0-9.]*", version)
    parts = [int(part) for part in (release[0] if release else "").split(".") if part]
    return tuple(parts + [0] * (4 - len(parts)))
