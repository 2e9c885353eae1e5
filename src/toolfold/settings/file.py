"""The settings that a YAML or JSON file holds, each with the line where it stands.

A file is ours by its name, or by what it holds: `serve`, `functions`, a block `openapi`,
`proxy.upstreams` or `tools.tool_search`. There every key must be known. In that of another
program what stands beside our blocks is not looked at, unless it is nearly one of them: a slip
must not switch a limit off in silence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from toolfold.errors import ConfigError
from toolfold.settings._nearness import nearly
from toolfold.settings.check import suggestion

if TYPE_CHECKING:
    from yaml import Node

    from toolfold.settings import jsonc

__all__ = ["OWN_FILE", "Given", "Place", "Top", "find_block", "read_top", "settings_block"]

FILE_LIMIT = 16 * 1024 * 1024
"""The largest configuration, in bytes."""

OWN_FILE = "toolfold.yaml"
"""The file that is read where none is named and it exists."""

_OWN_NAMES = (OWN_FILE, "toolfold.yml", "toolfold.json")
_TOP_KEYS = (
    *("tools", "serve", "profiles", "proxy", "functions", "openapi", "mcpServers", "servers"),
)
_PROFILE_KEYS = ("servers", "allow", "deny", "read_only", "context_length", "tools")
_PASSED_OVER = ("$schema", "inputs")  # what editors put beside them
_HERMES = frozenset(
    "_config_version model providers agent terminal toolsets platform_toolsets".split()
)  # any of them makes a file with `tools.tool_search` the one of Hermes Agent
_OTHERS = {"server": ("opencode.json", "opencode.jsonc")}  # a near key, and whose it is


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


class Top(NamedTuple):
    """What stands at the top of a file."""

    blocks: Mapping[str, Place]
    """Our blocks, by key."""

    is_own: bool
    """Whether the file is ours, so that every key in it must be known."""


def find_block(path: Path, known: Mapping[str, str]) -> Place | None:
    """Return the block `tools.tool_search` of a file, if it has one.

    Args:
        path: The file.
        known: Where each key belongs that may stand too far up, as `serve`.

    Raises:
        ConfigError: The file cannot be read, or holds a key that it must not.
    """
    return settings_block(path, read_top(path, known))


def settings_block(path: Path, top: Top) -> Place | None:
    """Return the block `tools.tool_search` among the blocks at the top of a file.

    Raises:
        ConfigError: Something that is not known, or nearly the block, stands beside it.
    """
    tools = top.blocks.get("tools")
    if tools is None or not (top.is_own or tools.is_mapping):
        return None
    for key, where in _keys(tools.node, path):
        if key != "tool_search" and (top.is_own or nearly(key, ("tool_search",))):
            hint = "did you mean `tools.tool_search`?"
            raise ConfigError(f"unknown key `tools.{key}`{where}", hint=hint)
    return _pairs(tools.node, path, "`tools`", wanted=("tool_search",)).get("tool_search")


def read_top(path: Path, known: Mapping[str, str]) -> Top:
    """Return the blocks that stand at the top of a file.

    Args:
        path: The file.
        known: Where each key belongs that may stand too far up, as `serve`.

    Raises:
        ConfigError: The file cannot be read, or a key is unknown that must not be.
    """
    root = _root(path)
    if root is None:
        return Top({}, path.name in _OWN_NAMES)
    keys = dict(reversed(list(_keys(root, path))))
    is_hermes = bool(_HERMES & keys.keys())
    is_own = (
        path.name in _OWN_NAMES
        or not {"serve", "functions"}.isdisjoint(keys)
        or _has(root, "proxy", "upstreams")
        or _has_block(root, "openapi")
        or (not is_hermes and _has(root, "tools", "tool_search"))
    )
    if not is_own:
        _refuse_near(path, keys, known, is_hermes=is_hermes)
        theirs = () if _has_profiles(root) else ("profiles",)
        wanted = tuple(key for key in _TOP_KEYS if key not in theirs)
        return Top(_pairs(root, path, "the file", wanted=wanted), is_own)
    top = _pairs(root, path, "the file")
    for key in [key for key in top if key not in (*_TOP_KEYS, *_PASSED_OVER)]:
        hint = _right_place(key, known) or _meant(key) or suggestion(key, list(_TOP_KEYS))
        raise ConfigError(f"unknown key `{key}`{top[key].where}", hint=hint)
    return Top(top, is_own)


def _refuse_near(
    path: Path, keys: Mapping[str, str], known: Mapping[str, str], *, is_hermes: bool
) -> None:
    """Refuse what stands in another program's file and was meant for us."""
    for key, where in keys.items():
        is_theirs = (key == "mcp_servers" and is_hermes) or path.name in _OTHERS.get(key, ())
        if key in (*_TOP_KEYS, *_PASSED_OVER) or is_theirs:
            continue
        # Words like `mode` may mean anything; those with an underscore are ours alone.
        hint = _right_place(key, known) if "_" in key and not is_hermes else None
        hint = hint or _meant(key)
        if hint is not None:
            raise ConfigError(f"unknown key `{key}`{where}", hint=hint)


def _meant(key: str) -> str | None:
    # `proxies`, `openai`, `profile` and the like are other programs' own words.
    others = ("proxy", "openapi", "profiles")
    meant = nearly(key, [known for known in _TOP_KEYS if known not in others])
    return f"did you mean `{meant}`?" if meant else None


def _right_place(key: str, known: Mapping[str, str]) -> str | None:
    if key == "tool_search":
        return "write it under `tools:`"
    place = known.get(key)
    blocks = " and ".join(f"`{block}:`" for block in place.split(".")) if place else ""
    return f"write it under {blocks}, as `{key}`" if blocks else None


def _has(root: Node, outer: str, inner: str) -> bool:
    """Whether a file holds a block with a key."""
    if not _is_mapping(root):
        return False
    blocks = [value for key, value in root.value if key.value == outer and _is_mapping(value)]
    return any(key.value == inner for block in blocks for key, _ in block.value)


def _has_block(root: Node, key: str) -> bool:
    """Whether a file holds a block; an OpenAPI document has its version under `openapi`."""
    pairs = root.value if _is_mapping(root) else ()
    return any(each.value == key and _is_mapping(value) for each, value in pairs)


def _has_profiles(root: Node) -> bool:
    """Whether what stands under `profiles` are ours: other programs have such a key, too."""
    pairs = root.value if _is_mapping(root) else ()
    found = [value for key, value in pairs if key.value == "profiles" and _is_mapping(value)]
    profiles = [each for block in found for _, each in block.value]
    return bool(profiles) and all(
        _is_mapping(each) and any(key.value in _PROFILE_KEYS for key, _ in each.value)
        for each in profiles
    )


def _root(path: Path) -> Node | None:
    import yaml

    from toolfold.settings.yaml_nodes import compose

    try:
        with path.open("rb") as file:
            content = file.read(FILE_LIMIT + 1)
        if len(content) > FILE_LIMIT:
            raise ConfigError(
                f"`{path}` has more than {FILE_LIMIT // 2**20} MiB",
                hint="check the path given as the configuration",
            )
        text = content.decode("utf-8-sig")
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


def _keys(node: Node, path: Path) -> Iterator[tuple[str, str]]:
    """Yield the keys of a mapping with the place of each, as often as they stand there."""
    for key, _ in node.value if _is_mapping(node) else ():
        yield str(key.value), _where(path, key)


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
