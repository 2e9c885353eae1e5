"""The settings that a YAML file holds, each with the line where it stands.

In a file of our own every key must be known. In that of another host only the block
`tools.tool_search` is ours; whatever stands beside it is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from toolfold.errors import ConfigError
from toolfold.settings.check import suggestion

if TYPE_CHECKING:
    from yaml import Node

__all__ = ["OWN_FILE", "Given", "read_file"]

OWN_FILE = "toolfold.yaml"
"""The file that is read where none is named and it exists."""

_OWN_NAMES = (OWN_FILE, "toolfold.yml")


class Given(NamedTuple):
    """A value and where it was given."""

    value: Any
    where: str
    """The place, as the end of a clause: ` in `toolfold.yaml`, line 3`."""


class _Place(NamedTuple):
    """A value in a file, not yet made."""

    node: Node
    where: str

    @property
    def value(self) -> Any:
        """The value itself."""
        import yaml
        from yaml.constructor import SafeConstructor

        constructor: Any = SafeConstructor()
        try:
            return constructor.construct_document(self.node)
        except (yaml.YAMLError, ValueError) as error:
            problem = getattr(error, "problem", None) or str(error)
            raise ConfigError(
                f"cannot read a value{self.where}: {problem}", hint="write a plain value"
            ) from None


def read_file(path: Path, known: list[str]) -> dict[str, Given]:
    """Return the settings under `tools.tool_search`, inner ones as `reranker.model`.

    Args:
        path: The file.
        known: The names of the settings, for a key that stands too far up.

    Raises:
        ConfigError: The file cannot be read, or holds a key that it must not.
    """
    root = _root(path)
    if root is None:
        return {}
    own = path.name in _OWN_NAMES
    top = _pairs(root, path, "the file", wanted=None if own else "tools")
    if own:
        for key in [key for key in top if key != "tools"]:
            fix = f"write it under `tools:` and `tool_search:`, as `{key}`"
            hint = fix if key in known else suggestion(key, ["tools"])
            raise ConfigError(f"unknown key `{key}`{top[key].where}", hint=hint)
    if "tools" not in top or not (own or _is_mapping(top["tools"].node)):
        return {}
    tools = _pairs(top["tools"].node, path, "`tools`", wanted=None if own else "tool_search")
    if own:
        for key in [key for key in tools if key != "tool_search"]:
            hint = "did you mean `tools.tool_search`?"
            raise ConfigError(f"unknown key `tools.{key}`{tools[key].where}", hint=hint)
    return dict(_block(tools["tool_search"], path)) if "tool_search" in tools else {}


def _block(block: _Place, path: Path) -> Iterator[tuple[str, Given]]:
    if not _is_mapping(block.node):
        yield from _bare(block)
        return
    for key, place in _pairs(block.node, path, "`tool_search`").items():
        if key == "reranker" and _is_mapping(place.node):
            for inner, within in _pairs(place.node, path, "`reranker`").items():
                yield f"reranker.{inner}", Given(within.value, within.where)
        else:
            yield key, Given(place.value, place.where)


def _bare(block: _Place) -> Iterator[tuple[str, Given]]:
    value = block.value
    if isinstance(value, bool):
        # As the bare value, true is the older spelling of `enabled: auto`.
        yield "enabled", Given("auto" if value else "off", block.where)
    elif value is not None:
        raise ConfigError(
            f"`tools.tool_search` is {value!r}{block.where}",
            hint="write true, false, or a block of settings",
        )


def _root(path: Path) -> Node | None:
    import yaml

    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(
            f"cannot read `{path}`: {reason}", hint="check the path given as the configuration"
        ) from None
    try:
        return yaml.SafeLoader(text).get_single_node()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "it is not YAML"
        raise ConfigError(f"cannot read `{path}`{line}: {problem}", hint="mend the YAML") from None


def _is_mapping(node: Node) -> bool:
    import yaml

    return isinstance(node, yaml.MappingNode)


def _pairs(node: Node, path: Path, what: str, *, wanted: str | None = None) -> dict[str, _Place]:
    """Return a mapping's values by key, in order; only the wanted one, if one is named."""
    import yaml

    if not isinstance(node, yaml.MappingNode):
        line = node.start_mark.line + 1
        raise ConfigError(
            f"{what} is no mapping in `{path}`, line {line}", hint="write `key: value`"
        )
    pairs: dict[str, _Place] = {}
    for key_node, value_node in node.value:
        key, where = str(key_node.value), f" in `{path}`, line {key_node.start_mark.line + 1}"
        if wanted is not None and key != wanted:
            continue
        if key in pairs:
            raise ConfigError(f"the key `{key}` stands twice{where}", hint="leave one out")
        pairs[key] = _Place(value_node, where)
    return pairs
