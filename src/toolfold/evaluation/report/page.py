"""The page that all reports are: what was found, how sure that is, how it was made, then more.

One file: nothing is loaded from elsewhere and nothing runs. The policy in its head allows the
one style sheet that stands in it, by its digest, and nothing else, so that even markup that
slipped in could do nothing.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from toolfold.evaluation.report.markup import Markup, bounded, element, joined

__all__ = ["ReportPage", "ReportSection", "command_line", "page_html"]

_CONTENTS_FROM = 3


@dataclass(frozen=True, slots=True)
class ReportSection:
    """One part of a page."""

    heading: str
    body: tuple[Markup, ...]


@dataclass(frozen=True, slots=True)
class ReportPage:
    """What a page says."""

    title: str
    """What it is a report of."""

    headline: str
    """What was found, in one sentence."""

    sure: tuple[str, ...] = ()
    """How sure that is, and what else was found: intervals, how much was measured."""

    notes: tuple[str, ...] = ()
    """What else to know before reading on, a paragraph each."""

    command: str = ""
    """What made every figure on the page that says nothing else."""

    made: str = ""
    """When, with which version, on what."""

    sections: tuple[ReportSection, ...] = ()


def page_html(page: ReportPage) -> str:
    """Return the page as HTML."""
    style = _style()
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_policy(style)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", bounded(page.title)),
        # The style is ours: to escape it would change it.
        Markup(f"<style>{style}</style>"),
    )
    body = element(
        "body",
        element(
            "header",
            element("h1", bounded(page.title)),
            element("p", bounded(page.headline), class_="headline"),
            element("ul", [element("li", bounded(one)) for one in page.sure], class_="sure")
            if page.sure
            else None,
            [element("p", bounded(note), class_="note") for note in page.notes],
            command_line(page.command) if page.command else None,
            element("p", page.made, class_="made") if page.made else None,
            _contents(page.sections),
        ),
        element("main", [_section(i, one) for i, one in enumerate(page.sections, 1)]),
    )
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def command_line(command: str) -> Markup:
    """Return what says by which command figures were made."""
    return element("p", "Made by ", element("code", bounded(command)), class_="command")


def _contents(sections: Sequence[ReportSection]) -> Markup | None:
    if len(sections) < _CONTENTS_FROM:
        return None
    links = (
        element("li", element("a", one.heading, href=f"#part-{i}"))
        for i, one in enumerate(sections, 1)
    )
    return element("nav", element("ul", links), aria_label="Contents")


def _section(number: int, section: ReportSection) -> Markup:
    heading = element("h2", section.heading, id=f"part-{number}")
    return element("section", heading, joined(section.body), aria_labelledby=f"part-{number}")


@cache
def _style() -> str:
    return Path(__file__).with_name("report.css").read_text(encoding="utf-8")


def _policy(style: str) -> str:
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
