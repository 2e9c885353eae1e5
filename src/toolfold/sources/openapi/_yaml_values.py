"""YAML of strangers, read into JSON values, piece by piece, within bounds.

Values are read as YAML 1.2 has them, which is what OpenAPI asks for: `no` is a text, and so
is a date; every key is a text. An alias counts as all that it names, so that ten lines of
aliases of aliases are no more than what they come to. No tag makes anything but JSON.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from toolfold._json_values import Json, is_array, is_object

__all__ = ["DEPTH_LIMIT", "VALUES_LIMIT", "YamlError", "lines_at", "yaml_value"]

VALUES_LIMIT = 2_000_000
"""How many values a document may hold with its aliases written out."""

DEPTH_LIMIT = 500
"""How deep a document may nest."""

_INTEGER = re.compile(r"[-+]?[0-9]+\Z")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_BASED = re.compile(r"0o[0-7]+\Z|0x[0-9a-fA-F]+\Z")
_WORDS: dict[str, Json] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_STANDARD = "tag:yaml.org,2002:"
_KNOWN_TAGS = frozenset("str int float bool null map seq".split())
_LONGEST_NUMBER = 400


class YamlError(ValueError):
    """A text is no YAML, or holds more than is read.

    Args:
        problem: What is wrong.
        line: Where, from 1; 0 where nobody knows.
    """

    def __init__(self, problem: str, line: int = 0) -> None:
        super().__init__(problem)
        self.line = line


class _Open:
    """A list or an object that is being read."""

    __slots__ = ("anchor", "count", "key", "value")

    def __init__(self, value: Any, anchor: str | None) -> None:
        self.value = value
        self.anchor = anchor
        self.count = 1
        self.key: str | None = None

    def put(self, value: Json, count: int, line: int) -> None:
        self.count += count
        if self.count > VALUES_LIMIT:
            raise YamlError(f"with its aliases it holds more than {VALUES_LIMIT:,} values", line)
        if is_array(self.value):
            self.value.append(value)
        elif self.key is None:
            if not isinstance(value, str):
                raise YamlError("a key is no text", line)
            self.key = value
        elif self.key == "<<" and is_object(value):
            self.value.update({k: v for k, v in value.items() if k not in self.value})
            self.key = None
        else:
            self.value[self.key] = value
            self.key = None


def yaml_value(text: str) -> Json:
    """Return the value of a document.

    Raises:
        YamlError: It is no YAML, or holds more than is read.
    """
    made = _Made()
    for event in _events(text):
        made.take(event, event.start_mark.line + 1)
    return made.value


class _Made:
    """A value that is made of a document's events, one after the other."""

    def __init__(self) -> None:
        import yaml

        self._stack = [_Open([], None)]
        self._anchors: dict[str, tuple[Json, int]] = {}
        self._takes: tuple[tuple[Any, Callable[[Any, int], None]], ...] = (
            (yaml.ScalarEvent, self._scalar),
            (yaml.AliasEvent, self._alias),
            (yaml.CollectionStartEvent, self._begin),
            (yaml.CollectionEndEvent, self._end),
            (yaml.DocumentStartEvent, self._document),
        )
        self._sequence = yaml.SequenceStartEvent

    @property
    def value(self) -> Json:
        """What it came to."""
        whole = self._stack[0].value
        return whole[0] if whole else None

    def take(self, event: Any, line: int) -> None:
        """Take the next event."""
        for kind, take in self._takes:
            if isinstance(event, kind):
                take(event, line)
                return

    def _scalar(self, event: Any, line: int) -> None:
        holder = self._stack[-1]
        is_key = isinstance(holder.value, dict) and holder.key is None
        value = event.value if is_key else _scalar(event, line)
        holder.put(value, 1, line)
        if event.anchor:
            self._anchors[event.anchor] = (value, 1)

    def _alias(self, event: Any, line: int) -> None:
        if event.anchor not in self._anchors:
            raise YamlError("an alias names nothing that was read before it", line)
        self._stack[-1].put(*self._anchors[event.anchor], line)

    def _begin(self, event: Any, line: int) -> None:
        if len(self._stack) > DEPTH_LIMIT:
            raise YamlError(f"it nests deeper than {DEPTH_LIMIT} levels", line)
        _check_tag(event.tag, line)
        self._stack.append(_Open([] if isinstance(event, self._sequence) else {}, event.anchor))

    def _end(self, event: Any, line: int) -> None:
        done = self._stack.pop()
        if done.anchor:
            self._anchors[done.anchor] = (done.value, done.count)
        self._stack[-1].put(done.value, done.count, line)

    def _document(self, event: Any, line: int) -> None:
        if self._stack[0].value:
            raise YamlError("it holds more than one document", line)


def lines_at(text: str, places: Sequence[tuple[str, ...]]) -> list[int]:
    """Return the lines of what pointers lead to, from 1, or of the last steps that are there."""
    import yaml

    library: Any = yaml
    try:
        root: Any = library.compose(text, Loader=_loader())
    except (yaml.YAMLError, RecursionError):
        return [0] * len(places)
    return [_line_below(root, steps) for steps in places]


def _line_below(node: Any, steps: tuple[str, ...]) -> int:
    import yaml

    line = 0
    for step in steps:
        if isinstance(node, yaml.MappingNode):
            pairs = {str(key.value): (key, value) for key, value in node.value}
        elif isinstance(node, yaml.SequenceNode):
            pairs = {str(place): (each, each) for place, each in enumerate(node.value)}
        else:
            pairs = {}
        if step not in pairs:
            break
        key, node = pairs[step]
        line = key.start_mark.line + 1
    return line


def _loader() -> Any:
    import yaml

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _events(text: str) -> Iterator[Any]:
    import yaml

    library: Any = yaml
    try:
        yield from library.parse(text, Loader=_loader())
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "it is not YAML"
        raise YamlError(str(problem), mark.line + 1 if mark else 0) from None
    except RecursionError:
        raise YamlError("it nests too deep") from None


def _check_tag(tag: str | None, line: int) -> None:
    if tag and tag != "!" and tag.removeprefix(_STANDARD) not in _KNOWN_TAGS:
        raise YamlError(f"the tag `{tag[:60]}` is not known", line)


def _scalar(event: Any, line: int) -> Json:
    _check_tag(event.tag, line)
    text: str = event.value
    if event.tag == f"{_STANDARD}str" or event.tag == "!":
        return text
    if not event.implicit[0] and event.tag is None:
        return text  # it stands in quotes
    if text in _WORDS:
        return _WORDS[text]
    if len(text) > _LONGEST_NUMBER:
        return text
    if _INTEGER.match(text):
        return int(text)
    if _BASED.match(text):
        return int(text, 0)
    return float(text) if _FLOAT.match(text) else text
