"""The settings that a YAML or JSON file holds, each with the line where it stands.

In a file of our own every key must be known. In that of another host only the block
`tools.tool_search` is ours; whatever stands beside it is not looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from toolfold.errors import ConfigError
from toolfold.settings.check import suggestion

if TYPE_CHECKING:
    from yaml import Node

    from toolfold.settings import jsonc

__all__ = ["OWN_FILE", "Given", "Place", "find_block", "is_own", "read_top", "settings_block"]

OWN_FILE = "toolfold.yaml"
"""The file that is read where none is named and it exists."""

_OWN_NAMES = (OWN_FILE, "toolfold.yml", "toolfold.json")
_TOP_KEYS = ("tools", "mcpServers", "servers", "functions", "serve")
_PASSED_OVER = ("$schema", "inputs")  # what editors put beside them


class Given(NamedTuple):
    """A value and where it was given."""

    value: Any
    where: str
    """The place, as the end of a clause: ` in `toolfold.yaml`, line 3`."""


class Place(NamedTuple):
    """A value in a file, not yet made."""

    node: Node
    where: str
    """The place, as the end of a clause: ` in `toolfold.yaml`, line 3`."""

    path: Path

    @property
    def is_mapping(self) -> bool:
        """Whether it has keys."""
        return _is_mapping(self.node)

    @property
    def is_list(self) -> bool:
        """Whether it has elements."""
        import yaml

        return isinstance(self.node, yaml.SequenceNode)

    @property
    def items(self) -> list[Place]:
        """The elements of a list."""
        nodes: list[Node] = self.node.value if self.is_list else []
        return [Place(node, _where(self.path, node), self.path) for node in nodes]

    def pairs(self, what: str) -> dict[str, Place]:
        """Return the values by key, in order.

        Args:
            what: What it is, for the error where it is no mapping.
        """
        return _pairs(self.node, self.path, what)

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


def find_block(path: Path, known: list[str]) -> Place | None:
    """Return the block `tools.tool_search` of a file, if it has one.

    Args:
        path: The file.
        known: The names of the settings, for a key that stands too far up.

    Raises:
        ConfigError: The file cannot be read, or holds a key that it must not.
    """
    return settings_block(path, read_top(path, known))


def settings_block(path: Path, top: Mapping[str, Place]) -> Place | None:
    """Return the block `tools.tool_search` among the blocks at the top of a file.

    Raises:
        ConfigError: The file is ours, and something else stands beside the block.
    """
    own = is_own(path)
    if "tools" not in top or not (own or _is_mapping(top["tools"].node)):
        return None
    tools = _pairs(top["tools"].node, path, "`tools`", wanted=None if own else ("tool_search",))
    if own:
        for key in [key for key in tools if key != "tool_search"]:
            hint = "did you mean `tools.tool_search`?"
            raise ConfigError(f"unknown key `tools.{key}`{tools[key].where}", hint=hint)
    return tools.get("tool_search")


def read_top(path: Path, known: list[str]) -> dict[str, Place]:
    """Return the blocks that stand at the top of a file.

    Args:
        path: The file.
        known: The names of the settings, for a key that stands too far up.

    Raises:
        ConfigError: The file cannot be read, or it is ours and a key is unknown.
    """
    root = _root(path)
    if root is None:
        return {}
    if not is_own(path):
        return _pairs(root, path, "the file", wanted=_TOP_KEYS)
    top = _pairs(root, path, "the file")
    for key in [key for key in top if key not in (*_TOP_KEYS, *_PASSED_OVER)]:
        fix = f"write it under `tools:` and `tool_search:`, as `{key}`"
        hint = fix if key in known else suggestion(key, list(_TOP_KEYS))
        raise ConfigError(f"unknown key `{key}`{top[key].where}", hint=hint)
    return top


def is_own(path: Path) -> bool:
    """Whether a file is ours by its name, so that every key in it must be known."""
    return path.name in _OWN_NAMES


def _root(path: Path) -> Node | None:
    import yaml

    from toolfold.settings.yaml_nodes import compose

    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(
            f"cannot read `{path}`: {reason}", hint="check the path given as the configuration"
        ) from None
    if path.suffix in (".json", ".jsonc"):
        return _json_root(text, path)
    try:
        return compose(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "it is not YAML"
        raise ConfigError(f"cannot read `{path}`{line}: {problem}", hint="mend the YAML") from None


def _json_root(text: str, path: Path) -> Node | None:
    from toolfold.settings import jsonc

    if not text[jsonc.skip(text, 0) :]:
        return None
    try:
        return _as_yaml(jsonc.parse(text), jsonc.line_starts(text))
    except jsonc.JsoncError as error:
        raise ConfigError(
            f"cannot read `{path}`, line {error.line}: {error}", hint="mend the JSON"
        ) from None


def _as_yaml(node: jsonc.Node, starts: list[int]) -> Node:
    """Return a value of a JSON file as YAML's reader would give it, lines and all."""
    import yaml

    from toolfold.settings import jsonc

    def mark(position: int) -> Any:
        line = jsonc.line_of(starts, position)
        return yaml.Mark("", position, line, position - starts[line], None, 0)

    span = (mark(node.start), mark(node.end))
    if node.members is not None:
        pairs = [
            (
                yaml.ScalarNode("tag:yaml.org,2002:str", m.key, mark(m.start), mark(m.start)),
                _as_yaml(m.value, starts),
            )
            for m in node.members
        ]
        return yaml.MappingNode("tag:yaml.org,2002:map", pairs, *span)
    if isinstance(node.value, list):
        items = [_as_yaml(item, starts) for item in node.items]
        return yaml.SequenceNode("tag:yaml.org,2002:seq", items, *span)
    value: object = node.value
    kind = {"NoneType": "null"}.get(type(value).__name__, type(value).__name__)
    text = str(value).lower() if kind == "bool" else str(value)
    return yaml.ScalarNode(f"tag:yaml.org,2002:{kind}", text, *span)


def _is_mapping(node: Node) -> bool:
    import yaml

    return isinstance(node, yaml.MappingNode)


def _where(path: Path, node: Node) -> str:
    return f" in `{path}`, line {node.start_mark.line + 1}"


def _pairs(
    node: Node, path: Path, what: str, *, wanted: tuple[str, ...] | None = None
) -> dict[str, Place]:
    """Return a mapping's values by key, in order; only the wanted ones, if any are named."""
    import yaml

    if not isinstance(node, yaml.MappingNode):
        line = node.start_mark.line + 1
        raise ConfigError(
            f"{what} is no mapping in `{path}`, line {line}", hint="write `key: value`"
        )
    pairs: dict[str, Place] = {}
    for key_node, value_node in node.value:
        key, where = str(key_node.value), _where(path, key_node)
        if wanted is not None and key not in wanted:
            continue
        if key in pairs:
            raise ConfigError(f"the key `{key}` stands twice{where}", hint="leave one out")
        pairs[key] = Place(value_node, where, path)
    return pairs
