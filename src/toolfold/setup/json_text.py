"""Members put into JSON texts and taken out of them, comments and style kept."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from toolfold.settings import jsonc
from toolfold.tool import Json

__all__ = ["with_entries", "without"]


def with_entries(text: str, container: tuple[str, ...], entries: dict[str, Json]) -> str:
    """Return the text with entries added under the keys of `container`."""
    if not text[jsonc.skip(text, 0) :]:
        whole: Json = entries
        for key in reversed(container):
            whole = {key: whole}
        return text + json.dumps(whole, indent=2, ensure_ascii=False) + "\n"
    for name, entry in entries.items():
        text = _with_one(text, container, name, entry)
    return text


def without(text: str, container: tuple[str, ...], names: Iterable[str]) -> str:
    """Return the text without the members of these names under `container`."""
    for name in names:
        node = jsonc.parse(text)
        for key in container:
            member = node.member(key)
            if member is None:
                return text
            node = member.value
        text = _without_one(text, node, name)
    return text


def _with_one(text: str, container: tuple[str, ...], name: str, entry: Json) -> str:
    node, left = jsonc.parse(text), list(container)
    while left and (member := node.member(left[0])) is not None:
        node = member.value
        left.pop(0)
    value: Json = entry
    keys = [*left, name]
    for key in reversed(keys[1:]):
        value = {key: value}
    if node.members is None:
        # `"mcpServers": null` stands for nothing as much as an absent one.
        made = json.dumps({keys[0]: value}, indent=2, ensure_ascii=False)
        return text[: node.start] + made + text[node.end :]
    return _insert(text, node, keys[0], value)


def _insert(text: str, node: jsonc.Node, key: str, value: Json) -> str:
    members = node.members or []
    outer = _indent_at(text, node.start)
    newline = "\r\n" if "\r\n" in text else "\n"
    inside = text[node.start : node.end]
    if members and "\n" not in inside:
        made = f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}"
        last = members[-1].value.end
        return f"{text[:last]}, {made}{text[last:]}"
    indent = _indent_at(text, members[0].start) if members else outer + _unit(text)
    step = indent[len(outer) :] or _unit(text)
    made = json.dumps(value, indent=step, ensure_ascii=False).replace("\n", f"\n{indent}")
    made = f"{indent}{json.dumps(key, ensure_ascii=False)}: {made}".replace("\n", newline)
    content = _content_end(text, node)
    if not members:
        tail = text[content : node.end - 1]
        closing = tail if "\n" in tail else f"{newline}{outer}"
        return f"{text[:content]}{newline}{made}{closing}{text[node.end - 1 :]}"
    last = members[-1].value.end
    comma = jsonc.skip(text, last)
    if text[comma : comma + 1] == ",":
        return f"{text[:content]}{newline}{made},{text[content:]}"
    return f"{text[:last]},{text[last:content]}{newline}{made}{text[content:]}"


def _without_one(text: str, node: jsonc.Node, name: str) -> str:
    members = node.members or []
    place = next((i for i, member in enumerate(members) if member.key == name), None)
    if place is None:
        return text
    member = members[place]
    end = member.value.end
    comma = jsonc.skip(text, end)
    has_comma = text[comma : comma + 1] == ","
    if has_comma:
        end = comma + 1
    start = _after_last_thing(text, node, member.start)
    if not has_comma and place:
        # The comma before the last member would be left over.
        before = jsonc.skip(text, members[place - 1].value.end)
        return text[:before] + text[before + 1 : start] + text[end:]
    is_alone = start == node.start + 1 and not text[end : node.end - 1].strip()
    if is_alone:
        end = node.end - 1
    return text[:start] + text[end:]


def _content_end(text: str, node: jsonc.Node) -> int:
    """Return where the last member or comment of an object ends."""
    return _after_last_thing(text, node, node.end - 1)


def _after_last_thing(text: str, node: jsonc.Node, position: int) -> int:
    """Return where what stands before a position ends: a member, a comment, the bracket."""
    start = node.start + 1
    while position > start and text[position - 1] in " \t\r\n":
        position -= 1
    return position


def _indent_at(text: str, position: int) -> str:
    """Return the white space at the start of the line that a position is on."""
    line = text.rfind("\n", 0, position) + 1
    match = re.match(r"[ \t]*", text[line:])
    return match.group() if match else ""


def _unit(text: str) -> str:
    """Return what one level is indented by."""
    match = re.search(r"^([ \t]+)\S", text, re.MULTILINE)
    return match[1] if match else "  "
