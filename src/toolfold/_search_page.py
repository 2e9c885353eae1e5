"""A search's answer as a text that stays inside a token budget.

Best hits first: every need's first hit before any need's second, with signatures while there
is room, by name after that; then the hits that are only named, then the companions. What is
left out of the hits is counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from toolfold import prompts
from toolfold._composition import ComposedNeed
from toolfold._render import definition
from toolfold.answer import Hit
from toolfold.catalog import Catalog
from toolfold.strategy import Strategy
from toolfold.tokens import TokenCounter
from toolfold.tool import Tool

__all__ = ["SearchText", "search_text"]

_SPARE_TOKENS = 48
_SOURCES_SHOWN = (30, 10, 3, 0)


class SearchText(NamedTuple):
    """The answer to a search, and what stands in it."""

    text: str
    hits: tuple[Hit, ...]


def search_text(
    needs: Sequence[tuple[ComposedNeed, Tool | None]],
    companions: Sequence[Hit],
    *,
    folded: Catalog,
    budget: int,
    count: TokenCounter,
    fruitless: int,
    strategy: Strategy,
    names: prompts.BridgeNames,
    needs_left_out: int = 0,
) -> SearchText:
    """Return the answer to a search, need by need.

    Args:
        needs: The needs with what is to be shown for each, and the core tool that it names.
        companions: What to name behind all hits.
        folded: The tools that were searched.
        budget: How many tokens the answer may take.
        count: Counts them.
        fruitless: How many searches in a row have found nothing.
        strategy: How hits are shown and reached.
        names: What the bridge's tools are called.
        needs_left_out: How many needs were not searched.
    """
    page = _Page(budget - _SPARE_TOKENS, count, strategy, names)
    for need, core in needs:
        if not page.begin(_head(need, core, folded, fruitless, page.room, count)):
            break
    needs_left_out += len(needs) - len(page.heads)
    kept = [need for need, _ in needs[: len(page.heads)]]
    for rank in range(max((len(need.signatures) for need in kept), default=0)):
        for place, need in enumerate(kept):
            if rank < len(need.signatures):
                page.add_hit(place, need.signatures[rank])
    for rank in range(max((len(need.names) for need in kept), default=0)):
        for place, need in enumerate(kept):
            if rank < len(need.names):
                page.add_name(place, *need.names[rank])
    for hit in companions:
        page.add_companion(hit)
    return page.text(needs_left_out)


class _Page:
    """An answer that is being written, within its room.

    Args:
        room: How many tokens there are.
        count: Counts them.
        strategy: How hits are shown and reached.
        names: What the bridge's tools are called.
    """

    def __init__(
        self, room: int, count: TokenCounter, strategy: Strategy, names: prompts.BridgeNames
    ) -> None:
        self.room = room
        self.heads: list[str] = []
        self._count = count
        self._strategy = strategy
        self._lead = names.said(strategy.names_lead)
        self._foot = names.said(strategy.hits_foot)
        self._lines: list[list[str]] = []
        self._named: list[list[str]] = []
        self._hits: list[list[Hit]] = []
        self._companions: list[Hit] = []
        self._shown: set[str] = set()
        self._left_out = 0

    def begin(self, head: str) -> bool:
        """Write the head of a need, if there is room for it. The first one is written anyway."""
        self.room -= self._count(head) + 1
        if self.heads and self.room < 0:
            return False
        self.heads.append(head)
        self._lines.append([])
        self._named.append([])
        self._hits.append([])
        return True

    def add_hit(self, place: int, hit: Hit) -> None:
        """Write a hit in the fullest form there is room for."""
        short = prompts.hit_in_short(hit.tool.shown_name)
        forms = [prompts.hit(hit.signature, hit.source, hit.summary), short]
        if self._strategy.shows_definitions:
            forms.insert(0, prompts.hit_in_full(definition(hit.tool, None)))
        is_repeated = hit.name in self._shown
        costs = ((form, self._count(form)) for form in ([short] if is_repeated else forms))
        line, cost = next((fitting for fitting in costs if fitting[1] < self.room), (None, 0))
        if line is not None:
            self.room -= cost + 1
            self._lines[place].append(line)
            self._shown.add(hit.name)
        else:
            self._left_out += 1
        # What joins the list of tools has its signature there, whatever stands here.
        if is_repeated or (line in (short, None) and not self._strategy.reveals):
            hit = replace(hit, shown="name")
        if line is not None or self._strategy.reveals:
            self._hits[place].append(hit)

    def add_name(self, place: int, hit: Hit, words: str) -> None:
        """Write a hit by name, once in an answer."""
        name, own = hit.tool.shown_name, self._named[place]
        if hit.name in self._shown:
            return
        for form in dict.fromkeys((prompts.named_hit(name, words), prompts.named_hit(name, ""))):
            cost = self._count(form) + 1 + (0 if own else self._count(self._lead) + 1)
            if cost < self.room:
                self.room -= cost
                own.append(form)
                self._shown.add(hit.name)
                self._hits[place].append(hit)
                return
        self._left_out += 1

    def add_companion(self, hit: Hit) -> None:
        """Write a companion's name, if there is room for it."""
        cost = self._count(hit.tool.shown_name) + 1
        cost += 0 if self._companions else self._count(prompts.beside(())) + 1
        if hit.name not in self._shown and cost < self.room:
            self.room -= cost
            self._companions.append(hit)
            self._shown.add(hit.name)

    def text(self, needs_left_out: int) -> SearchText:
        """Return what was written, with what belongs below it."""
        parts: list[str] = []
        for head, lines, named in zip(self.heads, self._lines, self._named, strict=True):
            parts.extend([head, *lines, *([prompts.also(self._lead, named)] if named else [])])
        if self._companions:
            parts.append(prompts.beside([hit.tool.shown_name for hit in self._companions]))
        if self._left_out:
            parts.append(prompts.hits_left_out(self._left_out))
        if needs_left_out:
            parts.append(prompts.needs_left_out(needs_left_out))
        if self._shown:
            parts.append(self._foot)
        hits = (*(hit for own in self._hits for hit in own), *self._companions)
        return SearchText("\n".join(parts), hits)


def _head(
    need: ComposedNeed,
    core: Tool | None,
    folded: Catalog,
    fruitless: int,
    room: int,
    count: TokenCounter,
) -> str:
    lines = [prompts.call_directly(core.shown_name)] if core else []
    if need.hits and need.is_weak:
        lines.append(prompts.nearest(need.text))
    elif need.hits:
        lines.append(prompts.found(len(need.hits), need.text, len(folded)))
    elif not core:
        lines.append(_no_match(need.text, folded, fruitless, room, count))
    return "\n".join(lines)


def _no_match(need: str, folded: Catalog, fruitless: int, room: int, count: TokenCounter) -> str:
    """Return the answer to a need that no tool serves, with the sources there is room for."""
    text = ""
    for at_most in _SOURCES_SHOWN:
        text = prompts.no_match(
            need, len(folded), folded.sources, fruitless, sources_at_most=at_most
        )
        if count(text) <= room:
            break
    return text
