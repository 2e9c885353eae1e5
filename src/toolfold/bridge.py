"""The three tools that stand for the folded ones.

A `Bridge` is made for one catalog, which holds what the caller's scope leaves and nothing
else; search, describe and call all look there. A model's mistake is an `Answer` with
the next step in it, never an exception.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from toolfold import prompts
from toolfold._bounds import visible
from toolfold._composition import ComposedNeed, composed, is_weak, kept
from toolfold._queries import WRAPPING, is_literal, limit_of, names_of, needs_of, tool_named
from toolfold._render import describe_text, fitting, names_text
from toolfold._signature import signature
from toolfold.absent import AbsentSource
from toolfold.answer import Answer, Hit, Invocation
from toolfold.arguments import check, compiles_at_once, read_arguments
from toolfold.catalog import Catalog
from toolfold.search import (
    RANKERS,
    Match,
    Ranker,
    chosen_ranker,
    index_of,
    is_indexed,
    may_wait,
)
from toolfold.search.memory import Lift, SearchMemory
from toolfold.session import Session
from toolfold.settings import Settings
from toolfold.strategy import STRATEGIES, Strategy, strategy_of
from toolfold.tokens import TokenCounter, estimate
from toolfold.tool import Json, Tool, is_array, is_object

__all__ = ["NEEDS_AT_MOST", "Bridge"]

NEEDS_AT_MOST = 8
"""How many needs of one search are looked for."""

_NAMES_AT_MOST = 16
_GUESSED_AT_MOST = 8
_OTHER_KEYS = ("parameters", "args", "input", "params")
_NAMESPACE = "functions."
_WORD = re.compile(r"[^\W_]")
_REMEMBERED_AMONG = 100
"""How many matches of a need a memory weighs: all that a ranker proposes, nearly."""
_CONSIDERED = 25
"""How many matches of a need are looked at: the hits, and behind them its companions."""


class _Found(NamedTuple):
    """What one need of a search comes to."""

    need: ComposedNeed
    core: Tool | None
    """The core tool whose exact name it is, if any."""
    others: tuple[Hit, ...] = ()
    """What follows its hits and may stand beside them."""
    has_companions: bool = False
    """Whether anything may stand beside its hits."""


@dataclass(frozen=True, slots=True)
class Bridge:
    """Answers the model's calls over one catalog. Immutable; safe to share between threads."""

    catalog: Catalog
    """Every tool of the caller's scope."""

    folded: Catalog
    """Those of them that are folded."""

    settings: Settings
    strategy: Strategy | None
    """How they are shown and reached; None where nothing is folded."""

    ranker: Ranker
    count: TokenCounter = field(default=estimate)
    originals: Mapping[str, Tool] = field(default_factory=dict[str, Tool])
    """The tools that are served under another name than their own, as they came, by that name."""

    absent: tuple[AbsentSource, ...] = ()
    """The sources that are not there at the moment of a call, as the caller may know of them."""

    memory: SearchMemory | None = None
    """What earlier searches led to, where that counts."""

    @property
    def names(self) -> prompts.BridgeNames:
        """What the bridge's own tools are called."""
        return prompts.bridge_names(self.settings.bridge_prefix)

    @property
    def _embedded_ranker(self) -> Ranker:
        """The search that knows names: ours, whoever ranks needs, and without an endpoint."""
        wanted = self.settings.ranker
        wanted = strategy_of(self.settings).ranker if wanted == "default" else wanted
        return RANKERS["hybrid" if wanted == "hybrid" else "bm25"](self.settings)

    def role(self, name: str) -> str | None:
        """Return which of `prompts.BRIDGE_NAMES` a call is of, by whatever name, if it is answered.

        `functions.` before the name is how some models write that it is a tool at all.
        """
        if self.strategy is None:
            return None
        name, names = str(name).strip(), self.names
        role = names.role(name)
        if role is None and name.startswith(_NAMESPACE) and name not in self.catalog:
            role = names.role(name.removeprefix(_NAMESPACE))
        return role if role in self.strategy.answers else None

    @classmethod
    def over(cls, catalog: Catalog, settings: Settings) -> Bridge:
        """Return the bridge over a catalog of which every tool is folded."""
        if settings.aliases or settings.annotations:
            catalog = Catalog(settings.applied(tool) for tool in catalog)
        ranker = chosen_ranker(settings, strategy_of(settings).ranker)
        return cls(catalog, catalog, settings, STRATEGIES["bridge"], ranker)

    def resolve(
        self,
        name: str,
        arguments: Json,
        session: Session,
        *,
        absent: Sequence[AbsentSource] = (),
        memory: SearchMemory | None = None,
    ) -> Answer | Invocation:
        """Return what a model's call comes to; see `Folded.resolve`."""
        asked = self
        if absent or memory is not None:
            asked = replace(self, absent=tuple(absent), memory=memory or self.memory)
        resolved = asked._resolve(str(name).strip(), arguments, session)
        if isinstance(resolved, Answer):
            # Names and texts are strangers' words: what cannot be seen is not passed on.
            text = visible(resolved.text)
            return resolved if text == resolved.text else replace(resolved, text=text)
        return resolved

    def _resolve(self, name: str, arguments: Json, session: Session) -> Answer | Invocation:
        strategy, role = self.strategy, self.role(name)
        if strategy is None or role is None:
            return self._direct(name, arguments, session)
        read = read_arguments(arguments)
        if isinstance(read, str):
            return _mistake(prompts.unreadable_arguments(name, read, None), session)
        if role == prompts.TOOL_SEARCH:
            return self._search(strategy, read, session)
        session = session if session.bridged else replace(session, bridged=True)
        if role == prompts.TOOL_DESCRIBE:
            return self._describe(read, session)
        return self._call(read, session)

    def may_block(self, name: str, arguments: Json = None) -> bool:
        """Whether resolving a call may take long: see `Folded.may_block`."""
        name = str(name).strip()
        role = self.role(name)
        if role is None:
            return not self._calls_at_once(name)
        if role == prompts.TOOL_SEARCH:
            is_warm = self.catalog.is_warm and self.folded.is_warm
            is_ready = is_warm and is_indexed(self.folded.fingerprint, self.ranker)
            if is_ready and self.memory is not None:
                is_ready = self.memory.is_ready(self.folded)
            return not is_ready or may_wait(self.ranker)
        read = arguments if is_object(arguments) else read_arguments(arguments)
        meant = None if isinstance(read, str) else read.get("name", read.get("names"))
        return not (isinstance(meant, str) and self._calls_at_once(meant))

    def _calls_at_once(self, name: str) -> bool:
        """Whether it takes no time to find a tool by its name and to check a call of it."""
        if not self.catalog.finds_at_once(name):
            return False
        tool = self.catalog.find(name)
        return tool is None or tool.name not in self.folded or compiles_at_once(tool)

    def search(self, need: str, limit: int) -> tuple[Hit, ...]:
        """Return the folded tools that answer one need, best first."""
        found = self._matches(need, limit)[0]
        floor = self.settings.relevance_floor
        if found and self.ranker.calibrated and found[0].score < floor:
            found = ()
        tools = self.folded.tools
        hits = [Hit(tools[match.position], match.score, need) for match in found]
        exact = tool_named(self.folded, need)
        if exact is not None and not (hits and hits[0].tool is exact):
            above = (hits[0].score if hits else 0.0) + 1.0
            rest = [hit for hit in hits if hit.tool is not exact]
            hits = [Hit(exact, 1.0 if self.ranker.calibrated else above, need), *rest]
        return tuple(hits[:limit])

    def _matches(self, need: str, limit: int) -> tuple[Sequence[Match], Mapping[int, Lift]]:
        """Return the best matches of one need, and what a memory moved up among them.

        A memory speaks in probabilities: a ranker that has none is not asked about.
        """
        index = index_of(self.folded.tools, self.folded.fingerprint, self.ranker)
        if self.memory is None or not self.ranker.calibrated:
            return index.search(need, limit), {}
        found = index.search(need, max(limit, _REMEMBERED_AMONG))
        weighed = self.memory.weighed(need, found, self.folded)
        return weighed.matches[:limit], weighed.lifts

    def shown(self, need: str, limit: int) -> tuple[Hit, ...]:
        """Return the hits of one need that an answer shows: what is next to impossible is not."""
        hits = self.search(need, limit)
        named = tool_named(self.catalog, need)
        if named is not None and is_literal(need, named):
            return hits[:1] if named.name in self.folded else ()
        return tuple(kept(hits, calibrated=self.ranker.calibrated))

    def needs(self, query: Json) -> list[str]:
        """Return what stands in a query, one by one; a search looks for the first of them."""
        together = self.strategy is not None and self.strategy.takes_one_need
        return [
            need
            for need in needs_of(query, self.catalog, together=together)
            if _WORD.search(need) or tool_named(self.catalog, need)
        ]

    def is_weak(self, hits: Sequence[Hit]) -> bool:
        """Whether the hits of one need are called the nearest, and no close match."""
        return is_weak(hits, calibrated=self.ranker.calibrated)

    def explain(self, hit: Hit) -> str:
        """Say in one line why a hit is there."""
        if tool_named(self.folded, hit.need) is hit.tool:
            return "the query is its name"
        index = index_of(self.folded.tools, self.folded.fingerprint, self.ranker)
        place = self.folded.names.index(hit.name)
        why = index.explain(hit.need, place)
        if not self.ranker.calibrated:
            return why
        lift = None if self.memory is None else self._matches(hit.need, _CONSIDERED)[1].get(place)
        moved = "" if lift is None else f"; {lift}"
        return f"{why}; probability {hit.score:.2f}{moved}"

    # ---- search

    def _search(
        self, strategy: Strategy, arguments: Mapping[str, Json], session: Session
    ) -> Answer:
        # What only a search needs is read with the first one.
        from toolfold._search_page import search_text

        query = arguments.get("query", arguments.get("queries"))
        # Whatever is asked for first, what any later search needs is there after it.
        self.catalog.warm()
        self.folded.warm()
        needs = self.needs(query)
        if not needs:
            return self._without_need(strategy, query, session)
        asked = limit_of(arguments.get("limit"))
        limit = strategy.limit(asked, self.settings)
        # One that was asked for is one: nothing stands behind it.
        has_names = bool(strategy.names_lead) and (asked is None or limit > 1)
        found = [self._found(need, limit, has_names) for need in needs[:NEEDS_AT_MOST]]
        fruitful = any(one.need.hits or one.core for one in found)
        if not fruitful:
            session = session.searched_in_vain()
        note = self._absence(found, limit)
        if strategy.lists_names and not fruitful:
            text = prompts.no_match(needs[0], len(self.folded), {}, session.fruitless) + note
            return Answer(f"{text}\n{self._names(text)}", session=session)
        with_others = [one for one in found if one.has_companions]
        page = search_text(
            [(one.need, one.core) for one in found],
            self._companions(
                [one.need.hits for one in with_others], [one.others for one in with_others]
            ),
            folded=self.folded,
            budget=self.settings.search_max_tokens - self.count(note),
            count=self.count,
            fruitless=session.fruitless,
            strategy=strategy,
            names=self.names,
            needs_left_out=len(needs) - len(found),
        )
        if fruitful:
            session = session.reveal(h.name for h in page.hits if h.shown == "signature")
        return Answer(page.text + note, hits=page.hits, session=session, note=note.strip())

    def _companions(
        self, shown: Sequence[Sequence[Hit]], others: Sequence[Sequence[Hit]]
    ) -> tuple[Hit, ...]:
        """Return what to name behind all hits.

        Args:
            shown: The hits of each need that are shown, best first.
            others: The hits of each need that follow those.
        """
        from toolfold._companions import companions

        return companions(shown, others, self.folded, self.memory)

    def _without_need(self, strategy: Strategy, query: Json, session: Session) -> Answer:
        """Return the answer to a blank query: a mistake, or a way to browse."""
        if strategy.lists_names and (query is None or isinstance(query, str)):
            return Answer(self._names(""), session=session)
        missing = not (isinstance(query, str) or is_array(query))
        text = self.names.said(prompts.QUERY_MISSING) if missing else prompts.BLANK_QUERY
        return _mistake(text, session)

    def _found(self, need: str, limit: int, has_names: bool) -> _Found:
        """Return what one need finds, and how it is shown.

        Args:
            need: What was asked for.
            limit: How many hits may have their signatures.
            has_names: Whether names follow them.
        """
        named = tool_named(self.catalog, need)
        core = named if named is not None and named.name not in self.folded else None
        calibrated = self.ranker.calibrated
        if named is not None and is_literal(need, named):
            hits = self.search(need, 1) if core is None else ()
            return _Found(ComposedNeed(need, hits), core)
        if not has_names:
            hits = self.search(need, limit)
            return _Found(
                ComposedNeed(need, hits, is_weak=is_weak(hits, calibrated=calibrated)), core
            )
        hits = self.search(need, max(limit, _CONSIDERED))
        shown = composed(need, hits, limit, self.count, calibrated=calibrated)
        named = {hit.name for hit in shown.hits}
        others = tuple(hit for hit in hits if hit.name not in named)
        return _Found(shown, core, others, has_companions=not shown.is_weak)

    def _absence(self, found: Sequence[_Found], limit: int) -> str:
        """Return what stands below a search of which something may be missing, or nothing.

        Where a need was found nothing for, all sources that are not there may have it.
        """
        if not self.absent:
            return ""
        from toolfold._missed import missed

        needs = [one.need.text for one in found]
        # Not all may be named: those that the search speaks of come first.
        away = sorted(self.absent, key=lambda a: not any(map(a.is_named_in, needs)))
        if all(one.need.hits or one.core for one in found):
            sources = {hit.source for one in found for hit in one.need.signatures if hit.source}
            ranker, floor = self._embedded_ranker, self.settings.relevance_floor
            away = missed(away, needs, self.folded, sources, ranker, floor=floor, limit=limit)
        budget = self.settings.search_max_tokens // 3
        return f"\n{text}" if (text := self._said_of(away, budget)) else ""

    def _said_of(self, absent: Sequence[AbsentSource], budget: int) -> str:
        """Return what is said of sources that are not there, as many as a budget takes."""
        starting = all(away.is_starting for away in absent)
        for count in range(min(len(absent), prompts.ABSENT_AT_MOST), 0, -1):
            sentences = [prompts.absent_source(a.name, a.cause, a.retry_in) for a in absent[:count]]
            text = prompts.absent_sources(sentences, len(absent) - count, starting=starting)
            if self.count(text) <= budget:
                return text
        return prompts.absent_in_short(len(absent)) if absent else ""

    def _names(self, head: str) -> str:
        """Return the names of the folded tools, within what a head leaves of the budget."""
        return names_text(
            self.folded, self.settings.search_max_tokens - self.count(head), self.count
        )

    # ---- describe

    def _describe(self, arguments: Mapping[str, Json], session: Session) -> Answer:
        names = names_of(arguments.get("name", arguments.get("names")), self.catalog)
        if not names:
            return _mistake(prompts.NAME_MISSING, session)
        tools: list[Tool] = []
        missing: list[str] = []
        for name in names[:_NAMES_AT_MOST]:
            tool = tool_named(self.catalog, name)
            if name not in self.catalog and name.strip(WRAPPING) in self.names.all:
                missing.append(prompts.call_directly(name.strip(WRAPPING)))
            elif tool is None:
                bare = name.strip(WRAPPING)
                found = self.near(bare) if len(missing) < _GUESSED_AT_MOST else ()
                missing.append(self._not_available(bare, found))
            elif tool not in tools:
                tools.append(tool)
        budget = self.settings.describe_max_tokens
        missing = fitting(missing, budget // 2, self.count)
        text = describe_text(
            tools,
            folded=self.folded,
            budget=budget - sum(map(self.count, missing)),
            count=self.count,
            left_out=max(len(names) - _NAMES_AT_MOST, 0),
        )
        session = session.reveal(tool.name for tool in tools) if tools else session
        said = "\n".join([*missing, *([text] if text else [])])
        return Answer(said, is_error=not tools, tools=tuple(tools), session=session)

    # ---- call

    def _call(self, arguments: Mapping[str, Json], session: Session) -> Answer | Invocation:
        name = arguments.get("name")
        if not isinstance(name, str) or not name.strip():
            return _mistake(prompts.CALL_NAME_MISSING, session)
        if name not in self.catalog:
            name = name.strip(WRAPPING) or name
        inner = self.role(name)
        if inner is not None or name in self.names.all:
            own = name.removeprefix(_NAMESPACE)
            return _mistake(prompts.bridge_in_bridge(own, self.names), session)
        tool = self.catalog.find(name)
        given = arguments.get("arguments")
        if not given or (isinstance(given, str) and not given.strip()):
            # Local models tend to write a call's arguments beside the name instead of below.
            beside = {k: v for k, v in arguments.items() if k not in ("name", "arguments")}
            below = next((beside[k] for k in _OTHER_KEYS if beside.keys() == {k}), None)
            given = (below if is_object(below) else beside) or given
        if tool is None:
            return self._no_such_tool(name, given, session)
        if tool.name not in self.folded:
            return self._not_run(tool, prompts.call_directly(tool.shown_name), session)
        return self._invocation(tool, given, "tool_call", session)

    def _direct(self, name: str, arguments: Json, session: Session) -> Answer | Invocation:
        tool = self.catalog.find(name)
        if tool is None:
            return self._no_such_tool(name, arguments, session)
        if tool.name in self.folded:
            return self._invocation(tool, arguments, "direct", session)
        # An open tool is the host's own business: its arguments are read, not judged.
        read = read_arguments(arguments)
        if isinstance(read, str):
            text = prompts.unreadable_arguments(tool.shown_name, read, None)
            return self._not_run(tool, text, session)
        return Invocation(self._own(tool), read, "direct", session.moved_on())

    def _invocation(
        self, tool: Tool, arguments: Json, via: Literal["direct", "tool_call"], session: Session
    ) -> Answer | Invocation:
        read = read_arguments(arguments)
        if isinstance(read, str):
            text = prompts.unreadable_arguments(tool.shown_name, read, signature(tool))
            return self._not_run(tool, text, session)
        refuses = self.settings.unknown_arguments == "refuse"
        checked = check(tool, read, refuse_unknown=refuses)
        if checked.faults:
            text = prompts.bad_arguments(tool.shown_name, checked.faults, signature(tool))
            return self._not_run(tool, text, session)
        return Invocation(self._own(tool), checked.arguments, via, session.moved_on())

    def _own(self, tool: Tool) -> Tool:
        """Return a tool as it came, where it is served under another name."""
        return self.originals.get(tool.name, tool)

    def _not_run(self, tool: Tool, text: str, session: Session) -> Answer:
        """Return the answer to a call of a tool that is there, and is not run."""
        return replace(_mistake(text, session), meant=self._own(tool))

    def _no_such_tool(self, name: str, arguments: Json, session: Session) -> Answer:
        """Return the answer to a call of what there is not, with all that the next one needs."""
        read = read_arguments(arguments)
        found = self.near(name, None if isinstance(read, str) else read)
        text = self._not_available(name, found)
        # A tool that is listed shows its parameters there, and one without has none to show.
        unseen = [tool for tool in found if tool.name in self.folded and _takes_any(tool)]
        shown = [prompts.hit(signature(tool), None, "") for tool in unseen]
        return _mistake("\n".join((text, *shown)), session)

    def near(self, name: str, arguments: Json = None) -> tuple[Tool, ...]:
        """Return the tools that a name may mean which none has, the likeliest first."""
        from toolfold._suggestions import suggested

        floor, ranker = self.settings.relevance_floor, self._embedded_ranker
        found = suggested(self.catalog, name, ranker, arguments=arguments, floor=floor)
        away = {source.name for source in self.absent if source.owns(name)}
        # Nobody else's tool stands in for one of a source that is not there.
        return tuple(tool for tool in found if not away or tool.source in away)

    def _not_available(self, name: str, found: Sequence[Tool]) -> str:
        away = [source for source in self.absent if source.owns(name)]
        near = [tool.shown_name for tool in found]
        text = prompts.not_available(name, near)
        if away:
            return f"{text} {self._said_of(away, self.settings.describe_max_tokens // 3)}"
        return (
            text
            if near or self.strategy is None
            else f"{text} {self.names.said(prompts.search_for_it())}"
        )


def _takes_any(tool: Tool) -> bool:
    return bool(tool.parameters.get("properties"))


def _mistake(text: str, session: Session) -> Answer:
    return Answer(text, is_error=True, session=session)
