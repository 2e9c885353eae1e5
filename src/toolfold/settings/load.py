"""Settings from arguments, environment and file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

from toolfold.errors import ConfigError
from toolfold.settings.check import Kind, check
from toolfold.settings.model import Reranker, Settings

__all__ = ["ENVIRONMENT", "OWN_FILE", "load_settings"]

OWN_FILE = "toolfold.yaml"
"""The file that is read where none is named and it exists."""

_PREFIX = "TOOLFOLD_"
_KINDS: dict[str, Kind] = {f.name: f.metadata["kind"] for f in fields(Settings)}
_RERANKER_KINDS: dict[str, Kind] = {f.name: f.metadata["kind"] for f in fields(Reranker)}
_UNITED = ("core", "never_defer")
_OTHER_VARIABLES = {"TOOLFOLD_CONFIG", "TOOLFOLD_CORPORA", "TOOLFOLD_CACHE_DIR"}
_TOP_KEYS = ("tools",)

ENVIRONMENT: tuple[str, ...] = tuple(
    [f"{_PREFIX}{name.upper()}" for name in _KINDS if name != "reranker"]
    + [f"{_PREFIX}RERANKER_{name.upper()}" for name in _RERANKER_KINDS]
)
"""The environment variables that hold settings, one each."""


class _Given(NamedTuple):
    """A value and where it was given."""

    value: Any
    where: str


def load_settings(
    file: str | os.PathLike[str] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    **arguments: Any,
) -> Settings:
    """Return the settings: arguments over environment over file over defaults.

    Args:
        file: A `toolfold.yaml`, or the configuration of another host that has the block
            `tools.tool_search`. Without it, `TOOLFOLD_CONFIG`, then `toolfold.yaml` in the
            working directory, if it exists.
        environ: The environment; the process's own by default.
        arguments: Settings by name. None stands for one that is not given.

    Raises:
        ConfigError: A key is unknown or a value cannot be used.
    """
    environ = os.environ if environ is None else environ
    chosen = file or environ.get("TOOLFOLD_CONFIG")
    path = Path(chosen) if chosen else Path(OWN_FILE)
    layers: list[dict[str, _Given]] = []
    if chosen or path.is_file():
        layers.append(_from_file(path))
    layers.append(dict(_from_environment(environ)))
    layers.append({key: _Given(v, "") for key, v in arguments.items() if v is not None})
    return _merged(layers)


def _merged(layers: list[dict[str, _Given]]) -> Settings:
    values: dict[str, Any] = {}
    reranker: dict[str, Any] = {}
    where: dict[str, str] = {}
    for layer in layers:
        for key, given in layer.items():
            name, _, inner = key.partition(".")
            if name not in _KINDS or (inner and inner not in _RERANKER_KINDS):
                raise _unknown(key, given.where)
            kind = _RERANKER_KINDS[inner] if inner else _KINDS[name]
            try:
                value = check(key, given.value, kind)
            except ConfigError as error:
                raise ConfigError(f"{error}{given.where}", hint=error.hint) from None
            where[key] = given.where
            if inner:
                reranker[inner] = value
            elif name == "reranker" and not isinstance(value, Reranker):
                raise ConfigError(f"`reranker` is {value!r}{given.where}", hint="write a block")
            elif name in _UNITED:
                values[name] = tuple(dict.fromkeys((*values.get(name, ()), *value)))
            else:
                values[name] = value
    if reranker:
        values["reranker"] = Reranker(**reranker)
    # A maximum below the built-in default lowers that default; only two values that were
    # both given can contradict each other.
    most = values.get("max_search_limit", Settings().max_search_limit)
    values.setdefault("search_default_limit", min(Settings().search_default_limit, most))
    try:
        return Settings(**values)
    except ConfigError as error:
        place = where.get("search_default_limit") or where.get("max_search_limit", "")
        raise ConfigError(f"{error}{place}", hint=error.hint) from None


def _unknown(key: str, where: str) -> ConfigError:
    known = [*_KINDS, *(f"reranker.{name}" for name in _RERANKER_KINDS)]
    return ConfigError(f"unknown key `{key}`{where}", hint=_suggestion(key, known))


def _suggestion(key: str, known: list[str]) -> str:
    near = get_close_matches(key, known, n=1)
    return f"did you mean `{near[0]}`?" if near else f"the keys are {', '.join(sorted(known))}"


def _from_environment(environ: Mapping[str, str]) -> Iterator[tuple[str, _Given]]:
    names = {f"{_PREFIX}{name.upper()}": name for name in _KINDS if name != "reranker"}
    names |= {f"{_PREFIX}RERANKER_{n.upper()}": f"reranker.{n}" for n in _RERANKER_KINDS}
    for variable in sorted(environ):
        if not variable.startswith(_PREFIX) or variable in _OTHER_VARIABLES:
            continue
        where = f" in the environment variable {variable}"
        if variable not in names:
            raise ConfigError(
                f"unknown environment variable `{variable}`",
                hint=_suggestion(variable, list(names)),
            )
        key = names[variable]
        kind = _RERANKER_KINDS[key[9:]] if key.startswith("reranker.") else _KINDS[key]
        yield key, _Given(_from_text(environ[variable], kind), where)


def _from_text(text: str, kind: Kind) -> Any:
    """Return an environment variable's text as the value it stands for."""
    if kind.name == "text":
        return text
    if kind.name == "names" and not text.lstrip().startswith("["):
        return [part.strip() for part in text.split(",") if part.strip()]
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return text


def _from_file(path: Path) -> dict[str, _Given]:
    import yaml

    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(
            f"cannot read `{path}`: {reason}", hint="check the path given as the configuration"
        ) from None
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "it is not YAML"
        raise ConfigError(f"cannot read `{path}`{line}: {problem}", hint="mend the YAML") from None
    return dict(_block(root, path))


def _block(root: Any, path: Path) -> Iterator[tuple[str, _Given]]:
    """Yield the settings under `tools.tool_search`, each with its file and line."""
    own = path.name in (OWN_FILE, "toolfold.yml")
    if root is None:
        return
    top = _pairs(root, path, "the file")
    if own:
        for key, (line, _) in top.items():
            if key not in _TOP_KEYS:
                raise ConfigError(
                    f"unknown key `{key}` in `{path}`, line {line}",
                    hint=_suggestion(key, list(_TOP_KEYS))
                    if key not in _KINDS
                    else f"write it under `tools:` and `tool_search:`, as `{key}`",
                )
    if "tools" not in top:
        return
    line, node = top["tools"]
    if not own and not _is_mapping(node):
        return
    tools = _pairs(node, path, "`tools`")
    if own:
        for key, (line, _) in tools.items():
            if key != "tool_search":
                raise ConfigError(
                    f"unknown key `tools.{key}` in `{path}`, line {line}",
                    hint="did you mean `tools.tool_search`?",
                )
    if "tool_search" not in tools:
        return
    line, node = tools["tool_search"]
    if not _is_mapping(node):
        value = _value(node)
        where = f" in `{path}`, line {line}"
        if isinstance(value, bool):
            # As the bare value, true is the older spelling of `enabled: auto`.
            yield "enabled", _Given("auto" if value else "off", where)
        elif value is not None:
            raise ConfigError(
                f"`tools.tool_search` is {value!r}{where}",
                hint="write true, false, or a block of settings",
            )
        return
    for key, (line, value_node) in _pairs(node, path, "`tool_search`").items():
        where = f" in `{path}`, line {line}"
        if key == "reranker" and _is_mapping(value_node):
            for inner, (line, inner_node) in _pairs(value_node, path, "`reranker`").items():
                place = f" in `{path}`, line {line}"
                yield f"reranker.{inner}", _Given(_value(inner_node), place)
        else:
            yield key, _Given(_value(value_node), where)


def _is_mapping(node: Any) -> bool:
    import yaml

    return isinstance(node, yaml.MappingNode)


def _pairs(node: Any, path: Path, what: str) -> dict[str, tuple[int, Any]]:
    """Return a mapping's values by key, each with its line."""
    if not _is_mapping(node):
        line = node.start_mark.line + 1
        raise ConfigError(f"{what} is no mapping in `{path}`, line {line}", hint="write `key: value`")
    pairs: dict[str, tuple[int, Any]] = {}
    for key_node, value_node in node.value:
        key, line = str(_value(key_node)), key_node.start_mark.line + 1
        if key in pairs:
            raise ConfigError(
                f"the key `{key}` stands twice in `{path}`, line {line}", hint="leave one out"
            )
        pairs[key] = (line, value_node)
    return pairs


def _value(node: Any) -> Any:
    import yaml

    return yaml.constructor.SafeConstructor().construct_document(node)
