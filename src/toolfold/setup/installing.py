"""toolfold's entry in a client's file: put in, and taken out again.

The client's other servers stay, unless `only` takes them out; that is refused where one of
them is not in our configuration, and what our configuration refers to in the client's file
is referred to in its copy from then on, so that nothing is lost either way.
"""

from __future__ import annotations

import difflib
import os
import re
import shutil
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

from toolfold.config.references import FILE_REFERENCE, References, file_reference
from toolfold.config.server_entries import plain
from toolfold.errors import ConfigError
from toolfold.redact import Redactor
from toolfold.setup import foreign_files
from toolfold.setup.client_programs import (
    ClientProgram,
    InstallScope,
    Launch,
    Location,
    Machine,
    locations,
)
from toolfold.setup.discovery import Candidate, content, find, is_toolfold, served
from toolfold.setup.editing import Format, add, read_text, remove, rendered, servers_in
from toolfold.sources.mcp._secret_values import is_plain_variable
from toolfold.tool import Json, is_array, is_object

__all__ = [
    "Change",
    "apply",
    "launch",
    "own_command",
    "pasted",
    "plan_install",
    "plan_removal",
]

_BARE_PATH = os.pathsep.join(("/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"))
_VARIABLE = re.compile(r"(?<!\$)\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)\}")
_EPHEMERAL = re.compile(
    r"[\\/]uv[\\/](?:cache[\\/])?(?:archive|environments)-v\d|[\\/]\.cache[\\/]pipx"
)
_KNOWN = ("workspaceFolder", "workspaceRoot", "workspaceFolderBasename", "userHome", "cwd")


@dataclass(frozen=True, slots=True)
class Change:
    """What would change."""

    location: Location
    name: str
    """The name of toolfold's entry."""

    before: str
    """The client's file now; nothing where there is none."""

    after: str | None
    """The client's file then; None takes the file away."""

    entry: Json = None
    """toolfold's entry, where it is put in."""

    others: tuple[str, ...] = ()
    """The servers that the client starts by itself, then."""

    gone: tuple[str, ...] = ()
    """The servers that are taken out of the client's file."""

    back: tuple[str, ...] = ()
    """The servers that come back to it."""

    named: tuple[str, ...] = ()
    """The names under which toolfold is there, where it is not under the one asked for."""

    kept_in: Path | None = None
    """The copy with servers that were taken out before and do not come back."""

    variables: tuple[str, ...] = ()
    """The variables that the servers need and a client from the desktop may not have."""

    config: Path | None = None
    """Our configuration."""

    config_before: str = ""
    config_after: str = ""
    secrets: tuple[str, ...] = ()
    """What a difference must not show."""

    def __repr__(self) -> str:
        return f"Change({self.location.client.id!r}, {str(self.location.path)!r})"

    @property
    def is_needed(self) -> bool:
        """Whether there is something to write."""
        return self.after != self.before or self.config_after != self.config_before

    def difference(self) -> str:
        """Return what changes, line by line, secrets marked."""
        pairs = [(self.location.path, self.before, self.after or "")]
        if self.config is not None and self.config_after != self.config_before:
            pairs.append((self.config, self.config_before, self.config_after))
        lines = [
            line.rstrip("\r\n")
            for path, before, after in pairs
            for line in difflib.unified_diff(
                before.splitlines(), after.splitlines(), str(path), str(path), lineterm=""
            )
        ]
        redactor = Redactor(self.secrets)
        return "\n".join(_redacted(line, redactor) for line in lines)


def _redacted(line: str, redactor: Redactor) -> str:
    """Return a line with its secrets marked; a reference says where one is, not what it is."""
    out, end = "", 0
    for match in FILE_REFERENCE.finditer(line):
        out += redactor.redact(line[end : match.start()]) + match[0]
        end = match.end()
    return out + redactor.redact(line[end:])


def plan_install(
    machine: Machine,
    client: ClientProgram,
    config: Path,
    *,
    name: str = "toolfold",
    scope: InstallScope = "user",
    only: bool = False,
) -> Change:
    """Return what putting toolfold's entry into a client's file would change.

    Args:
        machine: The machine.
        client: The client.
        config: Our configuration, which the entry names.
        name: The entry's name.
        scope: Whose file: the user's, or that of the folder worked in.
        only: Whether the client's other servers are taken out.

    Raises:
        ConfigError: A file cannot be read or changed, the client has no such scope, or a
            server that would be taken out is not in our configuration.
    """
    location, before = _place(machine, client, scope)
    config_text = read_text(config)
    entry = client.entry(launch(machine, client, config))
    found = find(location, machine)
    if found.problem:
        raise ConfigError(
            f"cannot read `{location.path}`: {found.problem}", hint="mend the file first"
        )
    others = tuple(item.name for item in found.candidates)
    gone = others if only else ()
    config_after = config_text
    after = before
    if gone:
        _check_known(found.candidates, config, machine, client)
        copy = foreign_files.next_backup(location.path)
        config_after = _repointed(
            config_text, location, gone, [location.path], copy, config, machine
        )
        after = remove(after, client.format, location.container, gone, location.path)
    after = add(after, client.format, location.container, {name: entry}, location.path)
    return Change(
        location,
        name,
        before,
        after,
        entry,
        others=() if only else others,
        gone=gone,
        variables=_variables(config_text, machine) if client.is_desktop else (),
        config=config,
        config_before=config_text,
        config_after=config_after,
        secrets=tuple(secret for item in found.candidates for secret in item.secrets),
    )


def plan_removal(
    machine: Machine, client: ClientProgram, *, name: str = "toolfold", scope: InstallScope = "user"
) -> Change:
    """Return what taking toolfold's entry out of a client's file would change.

    Where nothing else was changed since it was put in, the file becomes what it was, to
    the byte, servers that were taken out with it are back, and what our configuration
    referred to in the copy is referred to in the file again.

    Raises:
        ConfigError: The file cannot be read or changed.
    """
    location, before = _place(machine, client, scope)
    form, container = client.format, location.container
    present = servers_in(before, form, container) if before else {}
    if name not in present:
        names = tuple(n for n, entry in present.items() if is_toolfold(n, entry))
        return Change(location, name, before, before, named=names)
    entry = present[name]
    copies = foreign_files.backups(location.path)
    earlier = _earlier(before, {copy: read_text(copy) for copy in copies}, location, name)
    config, config_text, config_after = _config_of(entry), "", ""
    if earlier is not None:
        back = tuple(n for n in servers_in(earlier, form, container) if n not in present)
        if config is not None and back:
            config_text = read_text(config)
            config_after = _repointed(
                config_text, location, back, copies, location.path, config, machine
            )
        return Change(
            location,
            name,
            before,
            earlier,
            back=back,
            config=config,
            config_before=config_text,
            config_after=config_after,
        )
    if before == rendered(form, container, name, entry):
        return Change(location, name, before, None)
    kept_in = next(
        (
            copy
            for copy in copies
            if any(n not in present for n in servers_in(read_text(copy), form, container))
        ),
        None,
    )
    after = remove(before, form, container, [name], location.path)
    return Change(location, name, before, after, kept_in=kept_in)


def apply(change: Change) -> Path | None:
    """Write what was planned, and return the copy of what was there.

    Raises:
        SetupError: It cannot be written.
    """
    path = change.location.path
    if change.after is None:
        foreign_files.remove(path, expected=change.before)
        return None
    copy = foreign_files.back_up(path) if change.entry is not None else None
    writes = [(path, change.before, change.after)]
    if change.config is not None and change.config_after != change.config_before:
        ours = (change.config, change.config_before, change.config_after)
        # What ours refers to must be there, whatever happens next: the copy is by now, and
        # servers that come back are only once the client's file has them.
        writes.insert(1 if change.back else 0, ours)
    for file, before, after in writes:
        foreign_files.write(file, after, expected=before)
    return copy


def pasted(machine: Machine, client: ClientProgram, config: Path, *, name: str = "toolfold") -> str:
    """Return what a person would put into a client's file by hand."""
    entry = client.entry(launch(machine, client, config))
    return rendered(client.format, client.container, name, entry)


def launch(machine: Machine, client: ClientProgram, config: Path) -> Launch:
    """Return how a client is to start toolfold with a configuration."""
    command, *args = own_command()
    env: Mapping[str, str] = {}
    if client.is_desktop and machine.platform != "windows" and _needs_path(config):
        env = {"PATH": _search_path(machine.environ.get("PATH", ""))}
    return Launch(command, (*args, "serve", "--config", str(config.absolute())), env)


def own_command() -> tuple[str, ...]:
    """Return the command that starts this toolfold, wherever it is started from.

    Paths are absolute, since a client from the desktop searches few folders. What `uvx`
    and `pipx run` made for a single run will be gone, so those are asked for it again.
    """
    if _EPHEMERAL.search(sys.prefix):
        return (shutil.which("uvx") or "uvx", "--from", "toolfold[mcp]", "toolfold")
    ending = ".exe" if os.name == "nt" else ""
    script = Path(sysconfig.get_path("scripts")) / f"toolfold{ending}"
    return (str(script),) if script.is_file() else (sys.executable, "-m", "toolfold")


def _place(machine: Machine, client: ClientProgram, scope: InstallScope) -> tuple[Location, str]:
    if scope == "project" and client.project_file is None:
        raise ConfigError(
            f"{client.title} has no file for a project", hint="leave out `--scope project`"
        )
    location = next(
        item
        for item in locations(client, machine, scope)
        if item.container == client.container and item.scope == scope
    )
    text = read_text(location.path)
    try:
        return served(location, text), text
    except ValueError:
        return location, text  # whoever reads it says what is wrong, with the line


def _needs_path(config: Path) -> bool:
    """Whether a server's command is found by this shell and not by a desktop."""
    form: Format = "json" if config.suffix in (".json", ".jsonc") else "yaml"
    try:
        text = read_text(config)
        entries = servers_in(text, form, ("mcpServers",)) or servers_in(text, form, ("servers",))
    except (ConfigError, ValueError):
        return False
    commands = {entry.get("command") for entry in entries.values() if is_object(entry)}
    return any(
        isinstance(command, str) and shutil.which(command) is not None
        and shutil.which(command, path=_BARE_PATH) is None
        for command in commands
    )  # fmt: skip


def _search_path(given: str) -> str:
    folders = dict.fromkeys(folder for folder in given.split(os.pathsep) if folder)
    return os.pathsep.join(folder for folder in folders if Path(folder).is_dir())


def _variables(config: str, machine: Machine) -> tuple[str, ...]:
    names = dict.fromkeys(_VARIABLE.findall(config))
    return tuple(name for name in names if name not in _KNOWN and not is_plain_variable(name))


def _check_known(
    candidates: tuple[Candidate, ...], config: Path, machine: Machine, client: ClientProgram
) -> None:
    """Refuse to take out what our configuration does not have."""
    form: Format = "json" if config.suffix in (".json", ".jsonc") else "yaml"
    text = read_text(config)
    entries = servers_in(text, form, ("mcpServers",)) or servers_in(text, form, ("servers",))
    references = References.of(config, machine.environ, home=machine.home)
    known = {content(entry, references) for entry in entries.values() if is_object(entry)}
    lost = [item.name for item in candidates if item.content not in known]
    if lost:
        names = ", ".join(f"`{name}`" for name in lost)
        raise ConfigError(
            f"{names} of {client.title} {'is' if len(lost) == 1 else 'are'} not in `{config}`",
            hint=f"run `toolfold import --from {client.id}` first",
        )


def _repointed(
    text: str,
    location: Location,
    names: tuple[str, ...],
    sources: list[Path],
    target: Path,
    config: Path,
    machine: Machine,
) -> str:
    """Return our configuration with references to servers in some files leading to another."""
    references = References.of(config, machine.environ, home=machine.home)
    own = {path.absolute() for path in sources}

    def put(match: re.Match[str]) -> str:
        path, pointer = references.path(unquote(match[1])), unquote(match[2] or "")
        steps = tuple(step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:])
        depth = len(location.container)
        leads_here = path.absolute() in own and steps[:depth] == location.container
        if not leads_here or steps[depth : depth + 1] not in [(name,) for name in names]:
            return match.group()
        return file_reference(target.absolute(), steps, machine.home)

    return FILE_REFERENCE.sub(put, text)


def _earlier(text: str, copies: Mapping[Path, str], location: Location, name: str) -> str | None:
    """Return what a file held before toolfold was first put in, or None where no copy tells.

    Put in twice, as with `--only` the second time, the newer copy has the entry itself: what
    was before that one counts.
    """
    form, container = location.client.format, location.container
    present = servers_in(text, form, container)
    if name not in present:
        return text
    for path, older in copies.items():
        missing = [n for n in servers_in(older, form, container) if n not in present]
        if older != text and _redone(older, location, name, present[name], missing) == text:
            rest = {other: copy for other, copy in copies.items() if other != path}
            found = _earlier(older, rest, location, name)
            if found is not None:
                return found
    return None


def _config_of(entry: Json) -> Path | None:
    """Return our configuration, as an entry that starts toolfold names it."""
    given = plain(entry).values.get("args") if is_object(entry) else None
    words = [word for word in given if isinstance(word, str)] if is_array(given) else []
    named = [after for word, after in pairwise(words) if word in ("--config", "-c")]
    return Path(named[0]) if named and Path(named[0]).is_file() else None


def _redone(text: str, location: Location, name: str, entry: Json, gone: list[str]) -> str | None:
    """Return what putting the entry into a copy gives, to compare with what is there."""
    client = location.client
    try:
        bare = remove(text, client.format, location.container, gone, location.path)
        return add(bare, client.format, location.container, {name: entry}, location.path)
    except ConfigError:
        return None
