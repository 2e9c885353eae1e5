"""The servers of all clients, taken over into our own configuration.

Taking over only adds: what stands in the file already stays as it is, comments and all.
The same server in several clients is taken once; another of the same name gets the
client's name behind its own. The order of clients is fixed, so that the same files give
the same names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from toolfold.config.references import References
from toolfold.errors import ConfigError
from toolfold.setup import foreign_files
from toolfold.setup.client_programs import ClientProgram, Location, Machine
from toolfold.setup.discovery import Candidate, FoundServer, content, search_clients
from toolfold.setup.editing import Format, add, read_text, servers_in
from toolfold.tool import Json, is_object

__all__ = ["ImportPlan", "Taken", "apply", "plan_import", "shown_path"]

HEADER = """\
# The servers behind toolfold, and how it serves them. Yours to edit.
# A value ${file:PATH#/pointer} stays where it is, in another program's file.
"""
_CONTAINER = ("mcpServers",)


@dataclass(frozen=True, slots=True)
class Taken:
    """A server of a client, and what became of it."""

    name: str
    """Its name in our configuration."""

    candidate: Candidate
    location: Location
    is_new: bool
    """Whether it is added now; otherwise it was there already."""


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """What taking over would do."""

    target: Path
    found: tuple[FoundServer, ...]
    taken: tuple[Taken, ...]
    before: str
    """The file's text now; nothing where there is none."""

    after: str
    """The file's text then."""

    elsewhere: int = 0
    """How many servers Claude Code has for projects other than the folder worked in."""

    @property
    def added(self) -> tuple[Taken, ...]:
        """The servers that are new."""
        return tuple(item for item in self.taken if item.is_new)

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that have to be set for what only the clients have."""
        names = (name for item in self.added for name in item.candidate.inputs)
        return tuple(dict.fromkeys(names))


def plan_import(
    machine: Machine, clients: Iterable[ClientProgram], target: Path, *, project: bool = False
) -> ImportPlan:
    """Return what taking over the clients' servers would do. Nothing is written.

    Args:
        machine: The machine.
        clients: Whose servers.
        target: Our configuration, which need not exist.
        project: Whether files of the folder count, too. Whoever wrote that folder chose the
            programs in them.

    Raises:
        ConfigError: Our configuration cannot be read, or not be added to without risk.
    """
    wanted = list(clients)
    found = [
        item for item in search_clients(machine, wanted, project=project) if not _is(item, target)
    ]
    before = read_text(target)
    form: Format = "json" if target.suffix in (".json", ".jsonc") else "yaml"
    container = _container(before, form)
    taken = _taken(found, _existing(before, form, container, target, machine))
    entries = {item.name: item.candidate.entry for item in taken if item.is_new}
    after = before
    if entries:
        start = before or (HEADER if form == "yaml" else "")
        after = add(start, form, container, entries, target)
    elsewhere = _elsewhere(machine, wanted)
    return ImportPlan(target, tuple(found), tuple(taken), before, after, elsewhere)


def apply(plan: ImportPlan) -> Path | None:
    """Write what was planned, and return the copy of what was there.

    Raises:
        SetupError: It cannot be written.
    """
    if plan.after == plan.before:
        return None
    copy = foreign_files.back_up(plan.target)
    foreign_files.write(plan.target, plan.after, expected=plan.before)
    return copy


def shown_path(path: Path, machine: Machine) -> str:
    """Return a path as people write it, with `~` for their own folder."""
    if path.is_relative_to(machine.home):
        return f"~/{path.relative_to(machine.home).as_posix()}"
    return str(path)


def _taken(found: list[FoundServer], existing: dict[str, bytes]) -> list[Taken]:
    names = dict(existing)
    by_content = {value: name for name, value in reversed(existing.items())}
    taken: list[Taken] = []
    for place in found:
        for candidate in place.candidates:
            known = by_content.get(candidate.content)
            name = known or _free(candidate.name, place.location.client.id, names)
            taken.append(Taken(name, candidate, place.location, is_new=known is None))
            names[name] = candidate.content
            by_content.setdefault(candidate.content, name)
    return taken


def _free(name: str, client: str, names: Mapping[str, bytes]) -> str:
    if name not in names:
        return name
    free, number = f"{name}-{client}", 2
    while free in names:
        free = f"{name}-{client}-{number}"
        number += 1
    return free


def _existing(
    text: str, form: Format, container: tuple[str, ...], target: Path, machine: Machine
) -> dict[str, bytes]:
    try:
        raw: dict[str, Json] = servers_in(text, form, container)
    except ValueError:
        raw = {}  # adding to it will say what is wrong, with the line
    references = References.of(target, machine.environ, home=machine.home)
    return {name: content(entry, references) for name, entry in raw.items() if is_object(entry)}


def _container(text: str, form: Format) -> tuple[str, ...]:
    """Return the key of our configuration under which servers stand."""
    try:
        uses_other = servers_in(text, form, ("servers",)) and not servers_in(text, form, _CONTAINER)
    except ValueError:
        return _CONTAINER
    return ("servers",) if uses_other else _CONTAINER


def _is(found: FoundServer, target: Path) -> bool:
    return found.location.path.absolute() == target.absolute()


def _elsewhere(machine: Machine, clients: list[ClientProgram]) -> int:
    """Return how many servers belong to projects that are not worked in."""
    count = 0
    for client in clients:
        for pointer in client.more(machine):
            path = client.files(machine)[0]
            try:
                projects = servers_in(read_text(path), client.format, pointer[:1])
            except (ConfigError, ValueError):
                continue  # what is wrong with it is told where it is read
            for project, value in projects.items():
                inner = value.get(pointer[-1]) if is_object(value) else None
                count += len(inner) if is_object(inner) and project != pointer[1] else 0
    return count
