"""Entries put into block mappings of YAML texts and taken out of them.

Only what is written as a block under a key of the top level is changed; of anything else
None says that it cannot be done.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from toolfold.tool import Json

__all__ = ["with_entries", "without"]


def with_entries(text: str, container: tuple[str, ...], entries: dict[str, Json]) -> str | None:
    """Return the text with entries added under the key of `container`."""
    import yaml

    (key,) = container
    root = yaml.SafeLoader(text).get_single_node()
    if root is not None and (not isinstance(root, yaml.MappingNode) or root.flow_style):
        return None
    lines = _lines(text)
    pair = _pair(root, key)
    if pair is None:
        return _joined(lines, len(lines), _dumped({key: entries}, 0), text)
    name, block = pair
    if isinstance(block, yaml.ScalarNode) and not block.value:
        return _joined(lines, name.start_mark.line + 1, _dumped(entries, 2), text)
    if not isinstance(block, yaml.MappingNode):
        return None
    if not block.value:
        made = "\n" + _dumped(entries, 2).rstrip("\n")
        return text[: block.start_mark.index].rstrip(" ") + made + text[block.end_mark.index :]
    if block.flow_style:
        return None
    column = block.value[0][0].start_mark.column
    return _joined(lines, _last_line(block) + 1, _dumped(entries, column), text)


def without(text: str, container: tuple[str, ...], names: Iterable[str]) -> str | None:
    """Return the text without the entries of these names under `container`."""
    import yaml

    (key,) = container
    pair = _pair(yaml.SafeLoader(text).get_single_node(), key)
    if pair is None or pair[1].flow_style:
        return None
    lines = _lines(text)
    wanted = set(names)
    for name, value in reversed(pair[1].value):
        if name.value in wanted:
            del lines[name.start_mark.line : _last_line(value) + 1]
    if wanted >= {name.value for name, _ in pair[1].value}:
        line: int = pair[0].start_mark.line
        lines[line] = f"{lines[line].rstrip()} {{}}\n"
    return "".join(lines)


def _pair(root: Any, key: str) -> tuple[Any, Any] | None:
    pairs: list[tuple[Any, Any]] = root.value if root is not None else []
    return next(((name, value) for name, value in pairs if name.value == key), None)


def _last_line(node: Any) -> int:
    """Return the last line of what a node holds, without the comments after it."""
    import yaml

    if isinstance(node, yaml.ScalarNode) or node.flow_style or not node.value:
        end = node.end_mark
        return end.line - 1 if end.column == 0 and end.line > node.start_mark.line else end.line
    last = node.value[-1]
    return _last_line(last[1] if isinstance(last, tuple) else last)


def _dumped(value: Json, column: int) -> str:
    import yaml

    class Dumper(yaml.SafeDumper):
        """Writes lists on one line and mappings as blocks, as people do."""

        def represent_sequence(self, tag: Any, sequence: Any, flow_style: Any = None) -> Any:
            return super().represent_sequence(tag, sequence, flow_style=True)

    text: str = yaml.dump(
        value, Dumper=Dumper, sort_keys=False, allow_unicode=True, default_flow_style=False,
        width=4096,
    )  # fmt: skip
    return "".join(f"{' ' * column}{line}" for line in text.splitlines(keepends=True))


def _lines(text: str) -> list[str]:
    # Only these two end a line for YAML's marks; others may stand in a text.
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _joined(lines: list[str], place: int, made: str, text: str) -> str:
    """Return the lines with what was made put before one of them."""
    before = "".join(lines[:place])
    if before and not before.endswith("\n"):
        before += "\n"
    newline = "\r\n" if "\r\n" in text else "\n"
    return before + made.replace("\n", newline) + "".join(lines[place:])
