"""The MCP clients of this machine: whether toolfold is entered there, and whether that works."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from toolfold.config.server_entries import plain
from toolfold.doctor.diagnosis import Diagnosis
from toolfold.doctor.sockets import is_listening
from toolfold.errors import ConfigError
from toolfold.prompts import plural
from toolfold.setup.client_programs import (
    CLIENTS,
    ClientProgram,
    Location,
    Machine,
    is_found,
    locations,
)
from toolfold.setup.discovery import FoundServer, find, is_toolfold, served
from toolfold.setup.editing import read_text, servers_in
from toolfold.setup.importing import shown_path
from toolfold.tool import Json, is_array

__all__ = ["look_at_clients"]

_PART = "clients"


def look_at_clients(machine: Machine) -> Iterator[Diagnosis]:
    """Yield how each client that is found stands to toolfold."""
    there = [client for client in CLIENTS.values() if is_found(client, machine)]
    for client in there:
        yield from _look_at(client, machine)
    if not there:
        fix = "toolfold install --list"
        yield Diagnosis(_PART, "all", "ok", "no MCP client is found on this machine", fix)


def _look_at(client: ClientProgram, machine: Machine) -> Iterator[Diagnosis]:
    once = {(place.path.absolute(), place.container): place for place in locations(client, machine)}
    places = [find(place, machine) for place in once.values() if place.path.is_file()]
    for place in places:
        if place.problem:
            where = shown_path(place.location.path, machine)
            fix = f"mend {where}: {client.title} cannot read it either"
            yield Diagnosis(_PART, client.title, "broken", f"{where}: {place.problem}", fix)
    entered = [place for place in places if place.has_toolfold]
    others = sum(len(place.candidates) for place in places)
    if not entered and not any(place.problem for place in places):
        yield _not_entered(client, others)
    for place in entered:
        yield _entered(client, place, others, machine)


def _not_entered(client: ClientProgram, others: int) -> Diagnosis:
    fix = f"toolfold install {client.id}"
    if others:
        message = f"starts {plural(others, 'server')} of its own; toolfold is not entered"
        return Diagnosis(_PART, client.title, "warning", message, fix)
    return Diagnosis(_PART, client.title, "ok", "found; toolfold is not entered", fix)


def _entered(client: ClientProgram, place: FoundServer, others: int, machine: Machine) -> Diagnosis:
    where = shown_path(place.location.path, machine)
    for name, entry in _entries(place.location):
        if fault := _fault(entry):
            fix = f"toolfold install {client.id}"
            message = f"its entry `{name}` in {where} does not work: {fault}"
            return Diagnosis(_PART, client.title, "broken", message, fix)
    if others:
        message = f"toolfold is entered, and it still starts {plural(others, 'server')} by itself"
        fix = f"toolfold install {client.id} --only"
        return Diagnosis(_PART, client.title, "warning", message, fix)
    return Diagnosis(_PART, client.title, "ok", f"toolfold is entered in {where}")


def _entries(place: Location) -> list[tuple[str, Json]]:
    """Return the entries of a place that start toolfold or lead to it."""
    try:
        text = read_text(place.path)
        raw = servers_in(text, place.client.format, served(place, text).container)
    except (ConfigError, ValueError):
        return []
    return [(name, entry) for name, entry in raw.items() if is_toolfold(name, entry)]


def _fault(entry: Json) -> str:
    """Return why an entry cannot start toolfold, or lead to it; nothing where it can."""
    values = plain(entry).values
    if values.get("disabled") is True:
        return "it is disabled"
    url = values.get("url")
    if isinstance(url, str):
        return "" if is_listening(url) is not False else f"nothing listens at {url.split('?')[0]}"
    command = values.get("command")
    if not isinstance(command, str) or not shutil.which(command):
        return f"there is no program `{command}`"
    arguments = values.get("args")
    words = [word for word in arguments if isinstance(word, str)] if is_array(arguments) else []
    for flag, value in pairwise(words):
        if flag in ("--config", "-c") and not Path(value).expanduser().is_file():
            return f"there is no configuration `{value}`"
    return ""
