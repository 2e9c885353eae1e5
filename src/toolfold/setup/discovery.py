"""The servers that clients have, each in the words of our own configuration.

A secret is not copied: in its place stands a reference to where it is. What an entry
comes to with its secrets in place (`content`) is kept in memory alone, to tell whether two
entries are the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from toolfold.config.references import (
    FILE_REFERENCE,
    ReferenceProblem,
    References,
    file_reference,
    variable_name,
)
from toolfold.config.server_entries import plain
from toolfold.errors import ConfigError
from toolfold.setup.client_programs import ClientProgram, Location, Machine, locations
from toolfold.setup.editing import read_text, servers_in
from toolfold.sources.mcp._secret_values import (
    is_secret_argument,
    is_secret_header,
    is_secret_value,
)
from toolfold.tool import Json, canonical, is_array, is_object

__all__ = ["Candidate", "FoundServer", "content", "find", "is_toolfold", "search_clients", "served"]

_ORDER = (
    "type", "command", "args", "env", "envFile", "cwd", "url", "headers", "disabled", "timeout",
    "call_timeout", "allow", "deny", "oauth",
)  # fmt: skip
_CONTENT = ("command", "args", "env", "env_file", "cwd", "url", "headers")
_NO_SERVERS = ("builtin", "platform", "frontend", "inline_python")
_BARE_VARIABLE = re.compile(r"(?<![\w$\\])\$([A-Za-z_]\w*)")
_OPENCODE_REFERENCE = re.compile(r"\{(env|file):([^{}]+)\}")
_LOOPBACK = re.compile(r"https?://(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])(?:[:/]|\Z)")
_INPUT = re.compile(r"\$\{input:([^}]+)\}")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A server that a client has."""

    name: str
    entry: Json
    """The entry as our configuration would have it."""

    content: bytes = field(repr=False)
    """What it comes to, secrets in place."""

    secrets: tuple[str, ...] = field(default=(), repr=False)
    """The values that are referred to and not copied."""

    inputs: tuple[str, ...] = ()
    """The variables that stand for what only the client has: what it asks for or hides."""


class FoundServer(NamedTuple):
    """What stands in one place."""

    location: Location
    candidates: tuple[Candidate, ...]
    has_toolfold: bool = False
    problem: str = ""
    """Why the file cannot be read, if it cannot."""


def search_clients(
    machine: Machine, clients: list[ClientProgram], *, project: bool
) -> list[FoundServer]:
    """Return what the clients have, place by place; places that are not there are left out."""
    return [
        found
        for client in clients
        for location in _places(client, machine, project)
        if location.path.is_file() and (found := find(location, machine))
        if found.candidates or found.has_toolfold or found.problem
    ]


def _places(client: ClientProgram, machine: Machine, project: bool) -> list[Location]:
    """Return a client's places, each once: in the user's own folder, its two files are one."""
    places = locations(client, machine, None if project else "user")
    once = {(place.path.absolute(), place.container): place for place in reversed(places)}
    return list(reversed(once.values()))


def find(location: Location, machine: Machine) -> FoundServer:
    """Return the servers in one place."""
    client = location.client
    try:
        text = read_text(location.path)
        location = served(location, text)
        raw = servers_in(text, client.format, location.container)
    except ConfigError as error:
        return FoundServer(location, (), problem=error.message)
    except ValueError as error:
        number = getattr(error, "line", None)
        where = f", line {number}" if number else ""
        return FoundServer(location, (), problem=f"it is not {client.format.upper()}{where}")
    entries = {name: entry for name, entry in raw.items() if _is_server(entry)}
    candidates = tuple(
        _candidate(name, entry, location, machine)
        for name, entry in entries.items()
        if not is_toolfold(name, entry)
    )
    return FoundServer(location, candidates, has_toolfold=len(candidates) < len(entries))


def served(location: Location, text: str) -> Location:
    """Return the place with the keys under which this very file keeps its servers."""
    newer = location.client.newer
    if newer is None or not servers_in(text, location.client.format, newer):
        return location
    inner = servers_in(text, location.client.format, newer)
    # A server that happens to have that name has texts and lists in it, not servers.
    is_newer = all(is_object(entry) for entry in inner.values())
    return location._replace(container=newer) if is_newer else location


def is_toolfold(name: str, entry: Json) -> bool:
    """Whether an entry starts toolfold itself, or leads to one that serves on this machine."""
    values = plain(entry).values
    if name == "toolfold" and _LOOPBACK.match(str(values.get("url", ""))):
        return True
    arguments = values.get("args")
    words: list[Json] = [values.get("command"), *(arguments if is_array(arguments) else [])]
    names = [re.split(r"[\\/]", word)[-1] for word in words if isinstance(word, str)]
    stems = [name.removesuffix(".exe") for name in names]
    return "serve" in stems and any(
        stem == "toolfold" or stem.startswith(("toolfold[", "toolfold==", "toolfold@"))
        for stem in stems
    )


def content(entry: Json, references: References) -> bytes:
    """Return what an entry of our configuration comes to, to compare it by."""

    def put(match: re.Match[str]) -> str:
        try:
            return references.resolve(match.group()).text
        except ReferenceProblem:
            return match.group()

    def resolved(value: Json) -> Json:
        if isinstance(value, str):
            return FILE_REFERENCE.sub(put, value)
        if is_array(value):
            return [resolved(item) for item in value]
        if is_object(value):
            return {key: resolved(inner) for key, inner in value.items()}
        return value

    values = plain(entry).values
    return canonical(resolved({key: values[key] for key in _CONTENT if values.get(key)}))


def _is_server(entry: Json) -> bool:
    if not is_object(entry) or entry.get("type") in _NO_SERVERS:
        return False
    return any(key in plain(entry).values for key in ("command", "url"))


def _candidate(name: str, raw: Json, location: Location, machine: Machine) -> Candidate:
    client = location.client
    translated = _translated(raw, location, machine)
    masker = _Masker(location, (*location.container, name), machine)
    # What is a reference already is no secret; what only looks like one may be.
    if client.expands or client.id == "opencode":
        masked = masker.masked(translated)
    else:
        masked = _translated(masker.masked(raw), location, machine, is_masked=True)
    inputs = _INPUT.findall(str(raw)) if client.expands else []
    kept = raw.get("env_keys")
    inputs += [key for key in kept if isinstance(key, str)] if is_array(kept) else []
    own = _ours(masked, location, machine)
    references = References.of(location.path, machine.environ, home=machine.home)
    return Candidate(
        name,
        own,
        content(_ours(translated, location, machine), references),
        tuple(masker.values),
        tuple(dict.fromkeys(variable_name(item) for item in inputs)),
    )


def _ours(raw: Json, location: Location, machine: Machine) -> Json:
    """Return an entry in the words and the order of our configuration."""
    values = dict(plain(raw).values)
    if "env_file" in values:
        values["envFile"] = values.pop("env_file")
    if isinstance(raw.get("timeout"), int | float):
        key, factor = location.client.timeout
        values.pop("timeout", None)
        seconds = raw["timeout"] / factor
        values.setdefault(key, int(seconds) if seconds == int(seconds) else seconds)
    if location.scope == "project":
        _anchor(values, machine.project)
    if values.get("type") == "stdio" or (values.get("type") == "http" and _is_http(values)):
        del values["type"]
    if values.get("disabled") is False:
        del values["disabled"]
    if values.get("allow") == ["*"]:
        del values["allow"]
    return {
        key: values[key]
        for key in _ORDER
        if key in values and (values[key] or values[key] in (0, False))
    }


def _anchor(values: dict[str, Json], project: Path) -> None:
    """Make an entry of a project mean the same wherever it is started."""
    if "command" in values:
        values["cwd"] = str(project / str(values.get("cwd") or ""))
    if isinstance(values.get("envFile"), str) and "${" not in values["envFile"]:
        values["envFile"] = str(project / values["envFile"])


def _is_http(values: dict[str, Json]) -> bool:
    return not str(values.get("url", "")).partition("?")[0].rstrip("/").endswith("/sse")


def _translated(
    raw: Json, location: Location, machine: Machine, *, is_masked: bool = False
) -> Json:
    """Return an entry with its client's own references written as ours."""
    client = location.client

    def text(value: str) -> str:
        if is_masked and FILE_REFERENCE.fullmatch(value):
            return value
        if client.id == "opencode":
            return _OPENCODE_REFERENCE.sub(
                lambda m: f"${{{m[2]}}}" if m[1] == "env" else f"${{file:{m[2]}}}",
                value.replace("${", "$${"),
            )
        if not client.expands:
            return value.replace("${", "$${")
        if client.id == "gemini-cli":
            value = _BARE_VARIABLE.sub(r"${\1}", value)
        if location.scope == "project":
            value = value.replace("${workspaceFolder}", str(machine.project))
        return _INPUT.sub(lambda m: f"${{{variable_name(m[1])}}}", value)

    return _mapped(raw, text)


def _mapped(value: Json, change: Callable[[str], str]) -> Json:
    if isinstance(value, str):
        return change(value)
    if is_array(value):
        return [_mapped(item, change) for item in value]
    if is_object(value):
        return {key: _mapped(inner, change) for key, inner in value.items()}
    return value


class _Masker:
    """Puts references in the place of secrets."""

    def __init__(self, location: Location, pointer: tuple[str, ...], machine: Machine) -> None:
        self._path = location.path.absolute()
        self._pointer = pointer
        self._home = machine.home
        self.values: list[str] = []

    def masked(self, raw: Json) -> Json:
        """Return an entry with a reference for each secret in it."""
        return {key: self._value(key, value) for key, value in raw.items()}

    def _value(self, key: str, value: Json) -> Json:
        if key == "command" and is_object(value):
            return {k: self._value_in(("command",), k, inner) for k, inner in value.items()}
        return self._value_in((), key, value)

    def _value_in(self, steps: tuple[str, ...], key: str, value: Json) -> Json:
        pointer = (*steps, key)
        if key in ("env", "environment", "envs") and is_object(value):
            return dict(self._mapping(pointer, value, is_secret_value))
        if key in ("headers", "http_headers") and is_object(value):
            return dict(self._mapping(pointer, value, is_secret_header))
        if key in ("args", "command") and is_array(value):
            texts = [str(item) for item in value]
            return [
                self._refer((*pointer, str(i)), item) if is_secret_argument(texts, i) else item
                for i, item in enumerate(value)
            ]
        if key in ("url", "serverUrl", "server_url", "httpUrl", "uri") and isinstance(value, str):
            return self._refer(pointer, value) if is_secret_value("", value) else value
        return value

    def _mapping(
        self, pointer: tuple[str, ...], value: Json, is_secret: Callable[[str, str], bool]
    ) -> Iterator[tuple[str, Json]]:
        for name, inner in value.items():
            hide = isinstance(inner, str) and is_secret(name, inner)
            yield name, self._refer((*pointer, name), inner) if hide else inner

    def _refer(self, pointer: tuple[str, ...], value: Json) -> str:
        self.values.append(str(value))
        return file_reference(self._path, (*self._pointer, *pointer), self._home)
