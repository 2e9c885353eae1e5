"""What `${…}` in a server's entry stands for.

    ${NAME}  ${NAME:-default}  ${env:NAME}     an environment variable
    ${file:PATH#/json/pointer}                 one value of another file, where it stays
    ${file:PATH}                               all of another file
    ${workspaceFolder}  ${userHome}  …         what editors know by these names
    $${                                        a plain `${`

Whatever is resolved is remembered as a secret, apart from what nobody hides (`HOME`), and
no error shows a resolved value.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from toolfold.settings import jsonc
from toolfold.sources.mcp._secret_values import is_plain_variable
from toolfold.tool import Json, is_array, is_object

__all__ = ["ReferenceProblem", "References", "Resolved", "file_reference", "parse_document"]

FILE_REFERENCE = re.compile(r"\$\{file:([^}#]*)(?:#([^}]*))?\}")
"""A reference to a file: its path and its pointer, both with `%`, `#` and `}` as `%25`…"""

_REFERENCE = re.compile(r"\$\$\{|\$\{([^{}]*)\}")
_VARIABLE = re.compile(r"(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?\Z", re.DOTALL)
_PREFIXED = re.compile(r"([A-Za-z]+):")


class ReferenceProblem(Exception):
    """A reference cannot be resolved.

    Args:
        clause: What is wrong, to follow the key's name.
        hint: What to do about it.
    """

    def __init__(self, clause: str, hint: str) -> None:
        super().__init__(clause)
        self.hint = hint


class Resolved(NamedTuple):
    """A text without references, and what must not be shown of it."""

    text: str
    secrets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class References:
    """Resolves references."""

    environ: Mapping[str, str] = field(repr=False)
    folder: Path
    """The folder against which relative paths are read."""

    home: Path
    """The user's folder."""

    workspace: Path
    """The folder of the project."""

    _files: dict[Path, Json] = field(default_factory=dict[Path, Json], repr=False)

    @classmethod
    def of(
        cls,
        path: Path | None,
        environ: Mapping[str, str],
        *,
        home: Path | None = None,
        is_users: bool = False,
    ) -> References:
        """Return what resolves the references of a file.

        Args:
            path: The file.
            environ: The environment.
            home: The user's folder, where the environment does not say.
            is_users: Whether it is the user's own and belongs to no project.
        """
        named = environ.get("HOME") or environ.get("USERPROFILE")
        home = home or (Path(named) if named else Path.home())
        folder = path.absolute().parent if path else Path.cwd()
        # Of `.vscode/mcp.json` the project is what holds the folder. A file of no project
        # means the one that is worked in.
        inside = folder.parent if folder.name.startswith(".") else folder
        in_project = inside != home and not is_users
        return cls(environ, folder, home, inside if in_project else Path.cwd())

    def resolve(self, text: str) -> Resolved:
        """Return `text` with every reference resolved.

        Raises:
            ReferenceProblem: A variable is not set, or a value is not there.
        """
        secrets: list[str] = []

        def put(match: re.Match[str]) -> str:
            body = match[1]
            if body is None:
                return "${"
            value, is_secret = self._one(body)
            if is_secret and value:
                secrets.append(value)
            return value

        return Resolved(_REFERENCE.sub(put, text), tuple(secrets))

    def _one(self, body: str) -> tuple[str, bool]:
        """Return what one reference stands for, and whether it is a secret."""
        if (known := self._known(body)) is not None:
            return known, False
        if body.startswith("file:"):
            return self._from_file(body.removeprefix("file:")), True
        if body.startswith("input:"):
            name = body.removeprefix("input:")
            raise ReferenceProblem(
                f"asks for the input `{name}`, which only an editor can show",
                f"put it into a variable and write `${{{variable_name(name)}}}`",
            )
        variable = _VARIABLE.match(body)
        if variable is not None:
            return self._variable(variable[1], variable[2])
        prefix = _PREFIXED.match(body)
        if prefix is not None:
            raise ReferenceProblem(
                f"has a reference of the unknown kind `{prefix[1]}:`",
                "use ${NAME}, ${env:NAME} or ${file:PATH#/pointer}; write `$${` for a plain `${`",
            )
        return f"${{{body}}}", False

    def _variable(self, name: str, default: str | None) -> tuple[str, bool]:
        value = self.environ.get(name)
        if default is not None and not value:
            return default, False
        if value is None:
            raise ReferenceProblem(
                f"needs the environment variable `{name}`, which is not set",
                f"set it, or write a default as `${{{name}:-…}}`",
            )
        return value, not is_plain_variable(name)

    def _known(self, name: str) -> str | None:
        match name:
            case "workspaceFolder" | "workspaceRoot":
                return str(self.workspace)
            case "workspaceFolderBasename":
                return self.workspace.name
            case "userHome":
                return str(self.home)
            case "cwd":
                return str(Path.cwd())
            case "pathSeparator" | "/":
                return os.sep
            case _:
                return None

    def path(self, text: str) -> Path:
        """Return the path that a text means: `~` is the user's folder."""
        if text == "~" or text.startswith(("~/", "~\\")):
            return self.home / text[2:]
        return self.folder / text

    def _from_file(self, body: str) -> str:
        path_text, hash_sign, pointer = body.partition("#")
        path = self.path(unquote(path_text))
        shown = f"`{unquote(path_text)}`"
        again = "run `toolfold import` again, or put the value into a variable"
        try:
            if not hash_sign:
                return path.read_text(encoding="utf-8").strip()
            if path not in self._files:
                self._files[path] = parse_document(path.read_text("utf-8-sig"), path)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it cannot be read"
            raise ReferenceProblem(f"refers to {shown}: {reason}", again) from None
        found = _point(self._files[path], unquote(pointer))
        if isinstance(found, bool) or not isinstance(found, str | int | float):
            raise ReferenceProblem(f"refers to `{unquote(pointer)}` in {shown}: not there", again)
        return str(found)


def parse_document(text: str, path: Path) -> Json:
    """Return what a file holds, by the end of its name: TOML, YAML or JSON with comments.

    Raises:
        ValueError: It cannot be read. The text of the file is not in the error.
    """
    if path.name.endswith(".toml") or ".toml." in path.name:
        return tomllib.loads(text)
    if path.suffix in (".yaml", ".yml") or ".yaml." in path.name:
        import yaml

        from toolfold.settings.yaml_nodes import construct

        try:
            return construct(text)
        except yaml.YAMLError as error:
            mark: Any = getattr(error, "problem_mark", None)
            line = f", line {mark.line + 1}" if mark else ""
            raise ValueError(f"it is not YAML{line}") from None
    if not text[jsonc.skip(text, 0) :]:
        return {}
    return jsonc.parse(text).value


def file_reference(path: Path, pointer: tuple[str, ...], home: Path) -> str:
    """Return the reference to one value of a file."""
    shown = (
        f"~/{path.relative_to(home).as_posix()}" if path.is_relative_to(home) else path.as_posix()
    )
    steps = "".join(f"/{step.replace('~', '~0').replace('/', '~1')}" for step in pointer)
    return f"${{file:{_quoted(shown)}#{_quoted(steps)}}}"


def variable_name(text: str) -> str:
    """Return the name of a variable for an editor's input."""
    name = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_").upper()
    return name if name and not name[0].isdigit() else f"INPUT_{name}"


def _quoted(text: str) -> str:
    for character in "%#{}":
        text = text.replace(character, f"%{ord(character):02X}")
    return text


def _point(value: Json, pointer: str) -> Json:
    """Return what a JSON pointer leads to, or None."""
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if is_object(value):
            value = value.get(key)
        elif is_array(value) and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            return None
    return value
