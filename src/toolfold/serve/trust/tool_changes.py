"""What changed in a tool, for a person who decides.

Descriptions are compared by line and by word, schemas by their structure. Every text in
the answer went through `shown`: a difference cannot hide in characters that are not seen,
move the cursor of the terminal it is read on, or pass for a line of toolfold's own, since
all that comes from the server is indented.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from itertools import islice

from toolfold.invisible import shown
from toolfold.tool import Json, is_mapping

__all__ = ["difference", "summary"]

_WORDS = re.compile(r"\s+|\w+|[^\w\s]")
_LINES_AT_MOST = 200
_WORDS_AT_MOST = 2_000
_LINE_LIMIT = 500
_DEPTH = 40
_TEXTS = ("title", "description")


def difference(old: Mapping[str, Json] | None, new: Mapping[str, Json]) -> str:
    """Return what is different between two contents of a tool; all of it where it is new.

    Args:
        old: What was approved; None where nothing was.
        new: What the server says.
    """
    if old is None:
        return summary(new)
    parts = {**dict.fromkeys(_TEXTS), **dict.fromkeys(new), **dict.fromkeys(old)}
    lines = (line for part in parts for line in _part(part, old.get(part), new.get(part)))
    return _joined(lines) or "nothing a model reads has changed"


def summary(content: Mapping[str, Json]) -> str:
    """Return all that a model reads of a tool."""
    return _joined(
        line
        for part, value in content.items()
        if value not in (None, "", {}, [])
        for line in (f"{_name(part)}:", *_value_lines(value))
    )


def _joined(lines: Iterator[str]) -> str:
    kept = list(islice(lines, _LINES_AT_MOST))
    more = sum(1 for _ in lines)
    return "\n".join([*kept, f"… and {more} more lines"] if more else kept)


def _part(part: str, old: Json, new: Json) -> Iterator[str]:
    if _same(old, new):
        return
    yield f"{_name(part)}:"
    if part in _TEXTS and isinstance(old or "", str) and isinstance(new or "", str):
        yield from _text_lines(old or "", new or "")
    else:
        yield from _structure("", old, new, _DEPTH)


def _text_lines(old: str, new: str) -> Iterator[str]:
    before, after = shown(old).split("\n"), shown(new).split("\n")
    matcher = SequenceMatcher(None, before, after)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind == "equal":
            continue
        yield from (f"  - {_cut(line)}" for line in before[a:b])
        yield from (f"  + {_cut(line)}" for line in after[c:d])
        if b - a == d - c == 1:
            yield from _words(before[a], after[c])


def _words(old: str, new: str) -> Iterator[str]:
    """Return one line with the words that went in `[-…-]` and those that came in `{+…+}`."""
    before, after = _WORDS.findall(old), _WORDS.findall(new)
    if len(before) + len(after) > _WORDS_AT_MOST:
        return
    matcher = SequenceMatcher(None, before, after)
    if matcher.ratio() < 0.3:  # nearly everything is different: the two lines say it better
        return
    out: list[str] = []
    for kind, a, b, c, d in matcher.get_opcodes():
        went, came = "".join(before[a:b]), "".join(after[c:d])
        if kind == "equal":
            out.append(went)
        else:
            out += [f"[-{went}-]" if went else "", f"{{+{came}+}}" if came else ""]
    yield f"  ~ {_cut(''.join(out))}"


def _structure(path: str, old: Json, new: Json, depth: int) -> Iterator[str]:
    if _same(old, new):
        return
    if is_mapping(old) and is_mapping(new) and depth:
        for key in {**dict.fromkeys(old), **dict.fromkeys(new)}:
            inner = f"{path}.{_name(key)}" if path else _name(key)
            if key not in new:
                yield f"  - {_cut(f'{inner}: {_json(old[key])}')}"
            elif key not in old:
                yield f"  + {_cut(f'{inner}: {_json(new[key])}')}"
            else:
                yield from _structure(inner, old[key], new[key], depth - 1)
        return
    prefix = f"{path}: " if path else ""
    yield f"  - {_cut(prefix + _json(old))}"
    yield f"  + {_cut(prefix + _json(new))}"


def _value_lines(value: Json) -> Iterator[str]:
    text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
    yield from (f"    {_cut(line)}" for line in shown(text).split("\n"))


def _same(old: Json, new: Json) -> bool:
    # Python takes true for 1 and 1.0 for 1; whoever reads the JSON need not.
    return old == new and json.dumps(old, sort_keys=True) == json.dumps(new, sort_keys=True)


def _name(key: str) -> str:
    return key if key.isidentifier() and key.isascii() else _json(key)


def _json(value: Json) -> str:
    # What json leaves as it is may still be invisible; a line break it writes as \\n.
    return shown(json.dumps(value, ensure_ascii=False, sort_keys=True))


def _cut(line: str) -> str:
    return shown(line, _LINE_LIMIT)
