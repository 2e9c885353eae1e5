"""What a hit says of its tool: the first sentence, and behind it the rules that decide.

What takes a tool out of the choice often stands behind the first sentence: that it is
deprecated, that another one does it, that something must come before. Such sentences are
found by their words and kept, all within the room that the first sentence alone may take.
What a stranger writes to have a tool called more often is no such rule, and is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

from toolfold._bounds import cut, first_sentence, sentences
from toolfold._memo import Memo
from toolfold.tool import Tool

__all__ = ["SUMMARY_LIMIT", "few_words", "few_words_of", "summary", "summary_of"]

SUMMARY_LIMIT = 160
"""How many characters of a description a hit carries."""

_READ_AT_MOST = 2_000
_SHARE = 72
"""How many of them are left at least to the first sentence and to the rules where there are both,
and twice that to them together."""

_FEW = 6
_FEW_LIMIT = 42
_ENDS = ".,;:!?()[]\"'`…"
_HANGING = frozenset(
    "a an the all of in on at to for by with from and or your given specific".split()
)
_ENTRY_BYTES = 300
"""What an entry of a memo takes beside the letters of its text, nearly."""

_KEPT = 16_384
_ROOM = 2 * 1024 * 1024


def _texts() -> Memo[str, str]:
    return Memo(_KEPT, room=_ROOM, size=lambda text: len(text) + _ENTRY_BYTES)


_SUMMARIES, _FEW_WORDS = _texts(), _texts()

_NAME_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")


@cache
def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """Return what finds any of some patterns; it is compiled when it is first needed."""
    return re.compile("|".join(patterns), re.IGNORECASE)


_DEPRECATED = (
    r"\b(?:deprecated|obsolete|superseded|discontinued)\b",
    r"\bno longer (?:maintained|supported|works?)\b",
    r"\b(?:veraltet|obsolète|obsolet[oa])\b",
    r"已弃用|已废弃|已棄用|非推奨|廃止",
)
_NARROWS = (
    r"\b(?:do not|don['’]t|never|must not|cannot|should not) (?:be )?(?:use|call|run|invoke)d?\b",
    r"\A(?:this is |it is )?not (?:for|meant|intended)\b",
    r"\bwhen not to use\b",
    r"\b(?:use|call|see|try|run|belongs?) [^.;]{1,80} instead\b(?! of)",
    r"\binstead,? (?:use|call|see|try|run)\b",
    r"\Aprefer\b",
    r"\bonly (?:for|when|if|use[ds]?|available|supported|applies|works? (?:on|for|with|if|when))\b",
    r"\b(?:call|use|run) [^.;:]{1,60} (?<!the )(?:first|beforehand)(?=[.,;]| to\b|\Z)",
    r"\bmust (?:first|already|have been)\b",
    r"\b(?:before|after) (?:calling|using|running) (?:this|it)\b",
    r"\brequires? (?:that|an? (?:existing|prior|previous|active|open|running|pending))\b",
    r"\breturns? (?:nothing|no (?:output|result|content))\b",
    r"\bnicht (?:verwenden|benutzen|aufrufen)\b|\bstattdessen\b|\bnur (?:für|wenn|falls)\b",
    r"\bne pas utiliser\b|\bn['’]utilisez pas\b|\bno (?:usar|utilizar)\b|\ben su lugar\b",
    r"不要使用|请勿|請勿|仅用于|僅用於|使用しない|代わりに",
)
_REFUSED = (
    r"\b(?:do not|don['’]t|never|must not|cannot|should not) (?:use|call|run|invoke) (?:this|it)\b",
    r"\b(?:use|call|run|invoke) (?:this|it)(?: \w+)? only\b",
    r"\bonly (?:use|call|run|invoke) (?:this|it)\b",
    r"\b(?:required|able|allowed|possible|trying) to (?:use|call|run|invoke) (?:this|it)\b",
)
_PROMOTES = (
    r"\balways\b",
    r"\b(?:use|call|run|invoke|prefer|choose) (?:this|it|me)\b",
    r"\b(?:any|every|all) (?:others?|tools?)\b",
    r"\bignore\b",
)


def summary_of(tool: Tool) -> str:
    """Return what a hit says of a tool: see `summary`. It is made once for each content."""
    return _SUMMARIES.get_or(tool.digest, lambda: summary(tool.description, tool.bare_name))


def few_words_of(tool: Tool) -> str:
    """Return the first words of a tool's description: see `few_words`. They are found once."""
    return _FEW_WORDS.get_or(tool.digest, lambda: few_words(tool.description, tool.name))


def summary(description: str, name: str = "") -> str:
    """Return what a hit says of a tool, on one line, at most `SUMMARY_LIMIT` long.

    Args:
        description: What the tool says of itself.
        name: Its name: a sentence that says it speaks for the tool.
    """
    first = first_sentence(description, SUMMARY_LIMIT)
    rules = list(dict.fromkeys(_rules(description, name)))
    if not rules:
        return first
    rules.sort(key=lambda rule: _any_of(_DEPRECATED).search(rule) is None)
    told = _told(rules, max(2 * _SHARE - len(first), _SHARE))
    return f"{cut(first, 2 * _SHARE - len(told))} {told}"


def few_words(description: str, name: str) -> str:
    """Return the first words of a description, or nothing where the name says them already.

    Args:
        description: What the tool says of itself.
        name: Its name.
    """
    words = first_sentence(description, SUMMARY_LIMIT).split()[:_FEW]
    while words and (words[-1].lower() in _HANGING or sum(map(len, words)) > _FEW_LIMIT):
        words.pop()
    said = {_bare(word) for word in _NAME_WORD.findall(name)}
    if all(_bare(word) in said for word in words if word.lower() not in _HANGING):
        return ""
    return " ".join(words).rstrip(_ENDS)


def _bare(word: str) -> str:
    """Return a word without what its forms differ in most: case, marks and a plural's end."""
    return word.lower().strip(_ENDS).removesuffix("s")


def _told(rules: Sequence[str], limit: int) -> str:
    """Return the first rule, and of the others those that fit whole."""
    told = cut(rules[0], limit)
    for rule in rules[1:]:
        if len(told) + 1 + len(rule) <= limit:
            told = f"{told} {rule}"
    return told


def _rules(description: str, name: str) -> Iterator[str]:
    """Yield the sentences behind the first that decide, each from the clause that does."""
    text = description[:_READ_AT_MOST]
    first = first_sentence(text, len(text))
    for sentence in sentences(text):
        if sentence in first:
            continue
        clauses = sentence.split("; ")
        while clauses and not _decides(clauses[0]):
            clauses.pop(0)
        rule = "; ".join(clauses)
        if rule and not _speaks_for_itself(rule, name):
            yield rule[0].upper() + rule[1:]


def _decides(clause: str) -> bool:
    return (_any_of(_DEPRECATED).search(clause) or _any_of(_NARROWS).search(clause)) is not None


def _speaks_for_itself(rule: str, name: str) -> bool:
    """Whether a sentence asks for the tool to be called, whatever else it says."""
    is_identifier = "_" in name or "-" in name
    if is_identifier and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", rule, re.IGNORECASE):
        return True
    return _any_of(_PROMOTES).search(_any_of(_REFUSED).sub("", rule)) is not None
