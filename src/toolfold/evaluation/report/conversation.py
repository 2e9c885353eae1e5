"""A conversation as a reader wants it: what was said, the real calls, the bridge folded away.

Everything in it was written by a model, a user or a tool, and is shown as text. Each text and
each conversation has its limit, and so have all conversations of a page together.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from toolfold.evaluation.ab.turn_reading import ReadCall, ReadText, found_in, steps_of
from toolfold.evaluation.report.markup import Markup, bounded, element, joined
from toolfold.prompts import plural
from toolfold.runtime.messages import Message
from toolfold.tokens import estimate
from toolfold.tool import Json

__all__ = [
    "ShownConversation",
    "ShownConversations",
    "ShownTurn",
    "conversation_html",
    "conversations_html",
]

_TEXT_AT_MOST = 4_000
_SHORT = 240
_NAMES_AT_MOST = 12
_STEPS_AT_MOST = 200
_PAGE_AT_MOST = 4_000_000


@dataclass(frozen=True, slots=True)
class ShownTurn:
    """One message of the user, and all that came of it."""

    messages: Sequence[Message]
    sums: tuple[str, ...] = ()
    """What it took, as far as it was counted: seconds, round trips, tokens."""

    error: str = ""
    """What ended it, where it did not end by itself."""


@dataclass(frozen=True, slots=True)
class ShownConversation:
    """One conversation of many: what names it, and where its turns come from."""

    name: str
    about: Markup
    """What came of it, in a few words."""

    turns: Callable[[], Sequence[ShownTurn]]
    is_first: bool = False
    """Whether it goes before others where not all can be shown."""


class ShownConversations(NamedTuple):
    """Conversations as they stand on a page."""

    html: Markup
    anchors: tuple[str | None, ...]
    """Where each of them is on the page; None where it was left out."""


def conversations_html(
    conversations: Sequence[ShownConversation], *, elsewhere: str, at_most: int = _PAGE_AT_MOST
) -> ShownConversations:
    """Return conversations, folded away one by one, as many as a page may hold.

    Args:
        conversations: The conversations. Where not all of them fit, those that go first do.
        elsewhere: Where those are that are left out.
        at_most: How many characters of HTML they may take.
    """
    shown: dict[int, Markup] = {}
    left = at_most
    order = sorted(range(len(conversations)), key=lambda i: not conversations[i].is_first)
    for place in order:
        one = conversations[place]
        drawn = element(
            "details",
            element("summary", bounded(one.name), " ", one.about),
            # Inside, so that a link to it opens what it stands in.
            element("div", conversation_html(one.turns()), id=_anchor(place)),
            class_="run",
        )
        if len(drawn) > left:
            break
        left -= len(drawn)
        shown[place] = drawn
    rest = len(conversations) - len(shown)
    told = f"{plural(rest, 'conversation')} left out, so that the page can be mailed: {elsewhere}"
    html = joined(
        [shown[place] for place in sorted(shown)],
        element("p", told, class_="note") if rest else None,
    )
    places = range(len(conversations))
    return ShownConversations(html, tuple(_anchor(i) if i in shown else None for i in places))


def _anchor(place: int) -> str:
    return f"conversation-{place + 1}"


def conversation_html(turns: Sequence[ShownTurn]) -> Markup:
    """Return a conversation, turn by turn."""
    if not turns:
        return element("p", "Nothing was said.", class_="note")
    return joined(_turn(turn, i) for i, turn in enumerate(turns, 1))


def _turn(turn: ShownTurn, number: int) -> Markup:
    steps = list(steps_of(turn.messages))
    rest = len(steps) - _STEPS_AT_MOST
    used = [s.name for s in steps if isinstance(s, ReadCall) and s.real and not s.is_error]
    sums = [*turn.sums, *_names("found", found_in(turn.messages)), *_names("used", used)]
    return element(
        "section",
        [_step(step) for step in steps[:_STEPS_AT_MOST]],
        element("p", f"{rest:,} more steps are left out.", class_="note") if rest > 0 else None,
        element("p", bounded(turn.error), class_="bad") if turn.error else None,
        element("p", " · ".join(sums), class_="sums") if sums else None,
        class_="turn",
        aria_label=f"turn {number}",
    )


def _step(step: ReadText | ReadCall) -> Markup:
    if isinstance(step, ReadCall):
        return _call(step)
    if step.by == "note":
        words = f"named before the model asked, {plural(estimate(step.text), 'token')}"
        return _folded(words, _pre("note", step.text))
    return _said(step.by, step.text)


def _said(who: str, words: str) -> Markup:
    return joined(element("p", who, class_="who"), element("p", _cut(words), class_=who))


def _call(step: ReadCall) -> Markup:
    if step.real is None:
        return _bridge(step)
    name, arguments = step.real
    how = "" if step.via is None else f" by {step.via}"
    read = ", read out of text" if step.made.call.recovered else ""
    failed = element("strong", " failed", class_="bad") if step.is_error else None
    return element(
        "div",
        element("p", element("code", bounded(name) or "no name"), how, read, failed),
        _pre("arguments", _written(arguments)) if arguments else None,
        _result_of(step),
        class_="called",
    )


def _result_of(step: ReadCall) -> Markup:
    """Return what a call gave: a few words as they are, more of them folded away."""
    words = _result(step)
    drawn = _pre("result", words)
    return drawn if len(words) <= _SHORT else _folded(f"result, {_tokens(step)}", drawn)


def _bridge(step: ReadCall) -> Markup:
    asked = " | ".join(step.needs) or step.made.call.arguments
    count = "" if step.found is None else f" → {plural(len(step.found), 'hit')}"
    words = f"{_cut(step.name, 100)}: {_cut(asked, 200)}{count}, {_tokens(step)}"
    return _folded(words, _pre("answer", _result(step)))


def _folded(words: str, inside: Markup) -> Markup:
    return element("details", element("summary", words), inside, class_="bridge")


def _pre(what: str, words: str) -> Markup:
    return element("pre", _cut(words), tabindex=0, aria_label=what)


def _result(step: ReadCall) -> str:
    return "no result" if step.result is None else step.result


def _tokens(step: ReadCall) -> str:
    return plural(step.tokens, "token")


def _written(arguments: dict[str, Json]) -> str:
    return json.dumps(arguments, ensure_ascii=False, indent=1, default=str)


def _names(what: str, names: Iterable[str]) -> list[str]:
    told = list(names)
    more = f" and {len(told) - _NAMES_AT_MOST} more" if len(told) > _NAMES_AT_MOST else ""
    shown = ", ".join(_cut(name, 100) for name in told[:_NAMES_AT_MOST])
    return [f"{what} {shown}{more}"] if told else []


def _cut(words: str, limit: int = _TEXT_AT_MOST) -> str:
    rest = len(words) - limit
    return words if rest <= 0 else f"{words[:limit]}… ({rest:,} more characters)"
