"""Markdown as a terminal shows it, piece by piece as a model writes it.

What is certain is written at once: words of a paragraph as they come, a line of code with its
end. What is not waits: emphasis for its other end, a table for its last row. Markers that turn
out to be none are shown as they were written, so nothing a model says is lost. Where there
are no colours, the markers of emphasis stay: they are all there is to see.

Texts come in without control characters; the only escape codes that go out are ours.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from toolfold._terminal import Style, columns, padded, pairs, styled, wants_colour

__all__ = ["MarkdownStream"]

_HELD_AT_MOST = 400
_ROWS_AT_MOST = 200
_WIDEST = 100
_MARKS = "*_`[!~\\<"
_HEADING = re.compile(r" {0,3}(#{1,6})(?: +(.*?))?(?: +#+)? *\Z")
_FENCE = re.compile(r"( {0,12})(`{3,}|~{3,})(.*)\Z")
_ITEM = re.compile(r"( *)([-*+]|\d{1,9}[.)])( +)(?=\S)")
_QUOTE = re.compile(r" {0,3}((?:> ?)+)")
_RULE = re.compile(r" {0,3}(?:(?:\* *){3,}|(?:- *){3,}|(?:_ *){3,})\Z")
_ROW = re.compile(r" {0,3}\|.*\Z")
_DIVIDER = re.compile(r"[\s|:-]*-[\s|:-]*\Z")
_BLOCK_START = re.compile(r" *(?:[#>|`~*+=_-]|\d)")
_TASK = re.compile(r"\[([ xX])\] ")
_SPANS: tuple[tuple[re.Pattern[str], tuple[Style, ...]], ...] = (
    (re.compile(r"(`+)(?!`)(.+?)(?<!`)\1(?!`)"), ("cyan",)),
    (re.compile(r"(\*\*\*)(?=\S)(.+?)(?<=\S)\*\*\*(?!\*)"), ("bold", "italic")),
    (re.compile(r"(\*\*)(?=\S)(.+?)(?<=\S)\*\*(?!\*)"), ("bold",)),
    (re.compile(r"(\*)(?=[^\s*])([^*]*?(?<=\S))\*(?!\*)"), ("italic",)),
    (re.compile(r"(__)(?=\S)(.+?)(?<=\S)__(?!\w)"), ("bold",)),
    (re.compile(r"(_)(?=[^\s_])([^_]*?(?<=\S))_(?!\w)"), ("italic",)),
    (re.compile(r"(~~)(?=\S)(.+?)(?<=\S)~~(?!~)"), ("dim",)),
)
_LINK = re.compile(r"!?\[([^\[\]]*)\]\(\s*<?([^()\s<>]*(?:\([^()\s]*\)[^()\s<>]*)*)>?[^()]*\)")
_ADDRESS = re.compile(r"<([a-z][a-z0-9+.-]*:[^\s<>]+)>", re.IGNORECASE)
_NO_MARK = re.compile(r"[*_~](?=\s)|[!](?=[^\[])|<(?=[^a-zA-Z])|\\(?=.)")
_WIDE = re.compile("[\u1100-\u11ff\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\uff00-\uffef]")
_WORD = re.compile(rf"\s+|{_WIDE.pattern}|[^\s{_WIDE.pattern[1:-1]}]+")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")


@dataclass
class MarkdownStream:
    """Turns pieces of Markdown into pieces for a terminal.

    Args:
        width: Says how many columns there are now.
    """

    width: Callable[[], int]
    _line: str = ""
    """What came of the current line and is not written."""
    _is_open: bool = False
    """Whether the current line's kind is known and part of it may be written."""
    _fence: str = ""
    _fence_indent: int = 0
    _rows: list[str] = field(default_factory=list[str])
    _column: int = 0
    _lead: str = ""
    _space: str = ""
    _word: str = ""
    _word_width: int = 0
    _last: str = ""

    def feed(self, piece: str) -> str:
        """Return what can be shown now that a piece has come."""
        out: list[str] = []
        *ended, rest = piece.split("\n")
        for part in ended:
            line, self._line = self._line + part, ""
            out.append(self._ended(line))
        self._line += rest
        if self._line and not self._fence:
            out.append(self._begun())
        return "".join(out)

    def end(self) -> str:
        """Return the rest; the answer is over."""
        out = ""
        if self._line or self._is_open:
            line, self._line = self._line, ""
            out = self._ended(line).removesuffix("\n")
        if self._rows:
            out += self._table().removesuffix("\n")
        self._fence = ""
        return out

    # ---- lines

    def _begun(self) -> str:
        """Return what is certain of a line whose end has not come."""
        if self._is_open:
            return self._spans(is_over=False)
        if self._rows and _ROW.match(self._line):
            return ""
        start = _ITEM.match(self._line) or _QUOTE.match(self._line)
        is_rule = re.match(r" {0,3}[-*_][-*_ ]*\Z", self._line)
        may_be_block = _BLOCK_START.match(self._line) and not start
        if is_rule or (may_be_block and not _is_prose(self._line)) or not self._line.strip():
            return ""
        if start and start.end() == len(self._line):
            return ""
        return self._table() + self._opened() + self._spans(is_over=False)

    def _ended(self, line: str) -> str:
        """Return a whole line, or the rest of one."""
        if self._is_open:
            return self._prose(line)
        if self._fence:
            return self._code(line)
        if _ROW.match(line) and len(self._rows) < _ROWS_AT_MOST:
            self._rows.append(line)
            return ""
        before = self._table()
        if fence := _FENCE.match(line):
            self._fence, self._fence_indent = fence[2], len(fence[1])
            language = fence[3].strip()
            return before + (styled(f"  {language}", "dim") + "\n" if language else "")
        if heading := _HEADING.match(line):
            return before + self._heading(heading)
        if _RULE.match(line):
            return before + styled("─" * min(self._room(), 40), "dim") + "\n"
        if not line.strip():
            return before + "\n"
        self._line = line
        return before + self._opened() + self._prose(self._line)

    def _prose(self, line: str) -> str:
        """Return the rest of a line of prose."""
        self._line = line
        out = self._spans(is_over=True) + self._flushed() + "\n"
        self._is_open = False
        return out

    def _heading(self, found: re.Match[str]) -> str:
        text = found[2] or ""
        mark = "" if wants_colour() else f"{found[1]} "
        self._lead, self._column, self._last = "", 0, ""
        styles: tuple[Style, ...] = ("bold", "underline") if len(found[1]) == 1 else ("bold",)
        plain = text if mark else re.sub(r"[*_`]{1,3}(\S(?:.*?\S)?)[*_`]{1,3}", r"\1", text)
        return self._worded(mark + plain, styles) + self._flushed() + "\n"

    def _code(self, line: str) -> str:
        """Return a line of code, or nothing for the fence that ends it. Code is never wrapped."""
        closing = line.strip()
        if closing and set(closing) == {self._fence[0]} and len(closing) >= len(self._fence):
            self._fence = ""
            return ""
        own = len(line) - len(line.lstrip(" "))
        return f"  {styled(line[min(own, self._fence_indent) :], 'cyan')}\n" if line else "\n"

    def _opened(self) -> str:
        """Begin a line of prose: write what marks it, and know how far in it goes on."""
        self._is_open = True
        self._column, self._space, self._word, self._last = 0, "", "", ""
        quote = _QUOTE.match(self._line)
        lead = ""
        if quote:
            lead = "│ " * quote[1].count(">")
            self._line = self._line[quote.end() :]
        item = _ITEM.match(self._line)
        if item:
            mark = "•" if item[2] in "-*+" else item[2]
            first = f"{lead}{item[1]}{mark} "
            self._line = self._line[item.end() :]
            if task := _TASK.match(self._line):
                first += "[x] " if task[1] in "xX" else "[ ] "
                self._line = self._line[task.end() :]
            self._lead = lead + " " * (columns(first) - columns(lead))
        else:
            spaces = self._line[: len(self._line) - len(self._line.lstrip(" "))]
            first = self._lead = lead + spaces
            self._line = self._line.lstrip(" ")
        self._column = columns(first)
        if columns(self._lead) > self._room() // 2:
            self._lead = lead
        return styled(first, "dim") if lead else first

    def _table(self) -> str:
        """Return the rows that were held, as a table where they are one."""
        rows, self._rows = self._rows, []
        if not rows:
            return ""
        if len(rows) < 2 or not _DIVIDER.match(rows[1]):
            return "".join(f"{row}\n" for row in rows)
        cells = [_cells(row) for place, row in enumerate(rows) if place != 1]
        wide = max(map(len, cells))
        cells = [[*row, *[""] * (wide - len(row))] for row in cells]
        widths = [max(columns(row[place]) for row in cells) for place in range(wide)]
        if sum(widths) + 2 * (wide - 1) > self._room():
            return "".join(f"{line}\n" for line in pairs(cells, self._room()))
        ends = [mark.strip().endswith(":") for mark in _cells(rows[1])] + [False] * wide
        lines = [
            "  ".join(
                padded(cell, width, right=right and not cell.endswith(":"))
                for cell, width, right in zip(row, widths, ends, strict=False)
            ).rstrip()
            for row in cells
        ]
        return f"{styled(lines[0], 'bold')}\n" + "".join(f"{line}\n" for line in lines[1:])

    # ---- what stands in a line

    def _spans(self, *, is_over: bool) -> str:
        """Return what is certain of a line of prose."""
        out: list[str] = []
        while self._line:
            place = next((i for i, sign in enumerate(self._line) if sign in _MARKS), None)
            plain = self._line if place is None else self._line[:place]
            self._line = self._line[len(plain) :]
            out.append(self._worded(plain, ()))
            if plain:
                self._last = plain[-1]
            if not self._line:
                break
            taken = self._span(is_over=is_over)
            if taken is None:
                if not is_over and len(self._line) <= _HELD_AT_MOST:
                    break
                run = re.match(r"(.)\1*", self._line)
                sign = run[0] if run else self._line[0]
                taken = (sign, (), len(sign))
            text, styles, length = taken
            self._last = self._line[length - 1]
            self._line = self._line[length:]
            out.append(self._worded(text, styles))
        return "".join(out)

    def _span(self, *, is_over: bool) -> tuple[str, tuple[Style, ...], int] | None:
        """Return what begins the line: its text, its styles, its length; None where it waits."""
        line = self._line[: _HELD_AT_MOST + 1]
        if escaped := _ESCAPED.match(line):
            return escaped[1], (), 2
        if link := _LINK.match(line):
            text, address = link[1].strip(), link[2]
            shown = text if not address or text == address else f"{text} ({address})".lstrip()
            return shown, ("underline",) if wants_colour() else (), link.end()
        if address := _ADDRESS.match(line):
            return address[1], ("underline",) if wants_colour() else (), address.end()
        if line[0] == "_" and self._last.isalnum():
            run = len(line) - len(line.lstrip("_"))
            return line[:run], (), run
        for pattern, styles in _SPANS:
            found = pattern.match(line)
            # The last sign that came may be the first of a longer marker.
            if found and (found.end() < len(line) or (is_over and len(line) <= _HELD_AT_MOST)):
                text = found[2] if wants_colour() else found[0]
                return text, styles if wants_colour() else (), found.end()
        return (line[0], (), 1) if _NO_MARK.match(line) else None

    def _worded(self, text: str, styles: tuple[Style, ...]) -> str:
        """Return text with the words that are whole, wrapped; the last word waits for its end."""
        out: list[str] = []
        for part in _WORD.findall(text):
            if part.isspace():
                out.append(self._flushed())
                self._space = " "
                continue
            if _WIDE.match(part):  # a line may break before each
                out.append(self._flushed())
            self._word += styled(part, *styles)
            self._word_width += columns(part)
        return "".join(out)

    def _flushed(self) -> str:
        """Return the word that was held, on this line or the next."""
        if not self._word:
            return ""
        is_first = self._column <= columns(self._lead)
        before = "" if is_first else self._space
        if not is_first and self._column + len(before) + self._word_width > self._room():
            before, self._column = f"\n{self._lead}", columns(self._lead)
        else:
            self._column += len(before)
        out = before + self._word
        self._column += self._word_width
        self._word, self._word_width, self._space = "", 0, ""
        return out

    def _room(self) -> int:
        return max(min(self.width(), _WIDEST), 16)


def _is_prose(line: str) -> bool:
    """Whether the start of a line that looks like a block's is certainly none."""
    text = line.lstrip(" ")
    if text[0] in "*_`~":
        run = len(text) - len(text.lstrip(text[0]))
        return run < len(text) and (run < 3 or text[0] in "*_") and not text[run].isspace()
    if text[0].isdigit():
        return not re.match(r"\d{1,9}[.)]? *\Z", text)
    if text[0] in "-+":
        return len(text) > 1 and text[1] not in " -"
    return text[0] == "#" and bool(re.match(r"#+[^\s#]", text))


def _cells(row: str) -> list[str]:
    """Return the cells of a row of a table."""
    inner = row.strip().removeprefix("|")
    inner = inner.removesuffix("|") if not inner.endswith("\\|") else inner
    cells = re.split(r"(?<!\\)\|", inner)
    return [_bare(cell.strip().replace("\\|", "|")) for cell in cells]


def _bare(text: str) -> str:
    """Return a cell's text without its markers; its columns are aligned by what is seen."""
    if not wants_colour():
        return text
    for pattern, _ in _SPANS:
        text = pattern.sub(r"\2", text)
    return _LINK.sub(lambda m: m[1] if m[1] == m[2] else f"{m[1]} ({m[2]})", text)
