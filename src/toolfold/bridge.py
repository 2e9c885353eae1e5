"""The three tools that stand for the folded ones.

A `Bridge` is made for one catalog, which holds what the caller's scope leaves and nothing
else; search, describe and call all look there. A model's mistake is an `Answer` with
the next step in it, never an exception.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from toolfold import prompts
from toolfold.answer import Answer, Hit, Invocation
from toolfold.arguments import check, read_arguments
from toolfold.bounds import one_line
from toolfold.catalog import Catalog
from toolfold.render import describe_text, names_text, search_text
from toolfold.search import Ranker, index_of
from toolfold.session import Session
from toolfold.settings import Settings
from toolfold.signature import signature
from toolfold.tokens import TokenCounter, estimate
from toolfold.tool import Json, Tool, is_array

__all__ = ["Bridge"]

_NEEDS_AT_MOST = 8
_NAMES_AT_MOST = 16
_QUERY_LIMIT = 2_000
_WRAPPING = "\"'`“”‘’ \t\n"
_WORD = re.compile(r"\w")


_Action: TypeAlias = Callable[[Mapping[str, Json], Session], Answer | Invocation]


@dataclass(frozen=True, slots=True)
class Bridge:
    """Answers the model's calls over one catalog. Immutable; safe to share between threads."""

    catalog: Catalog
    """Every tool of the caller's scope."""

    folded: Catalog
    """Those of them that are folded."""

    settings: Settings
    strategy: Literal["bridge", "stub"] | None
    """How they are folded; None where nothing is."""

    ranker: Ranker
    count: TokenCounter = field(default=estimate)

    def resolve(self, name: str, arguments: Json, session: Session) -> Answer | Invocation:
        """Return what a model's call comes to."""
        if self.strategy is not None and name == prompts.TOOL_SEARCH:
            return self._on_arguments(name, arguments, session, self._search)
        if self.strategy == "bridge" and name == prompts.TOOL_DESCRIBE:
            return self._on_arguments(name, arguments, session, self._describe)
        if self.strategy == "bridge" and name == prompts.TOOL_CALL:
            return self._on_arguments(name, arguments, session, self._call)
        return self._direct(name, arguments, session)

    def search(self, need: str, limit: int) -> tuple[Hit, ...]:
        """Return the folded tools that answer one need, best first."""
        index = index_of(self.folded.tools, self.folded.fingerprint, self.ranker)
        found = index.search(need, limit)
        hits = [Hit(self.folded[item.name], item.score, need) for item in found]
        exact = self.folded.find(need.strip(_WRAPPING))
        if exact is not None:
            score = next((hit.score for hit in hits if hit.tool is exact), 0.0)
            best = hits[0].score if hits else 0.0
            rest = [hit for hit in hits if hit.tool is not exact]
            hits = [Hit(exact, max(score, best + 1.0), need), *rest]
        return tuple(hits[:limit])

    def explain(self, hit: Hit) -> str:
        """Say in one line why a hit is there."""
        if self.folded.find(hit.need.strip(_WRAPPING)) is hit.tool:
            return "the query is its name"
        index = index_of(self.folded.tools, self.folded.fingerprint, self.ranker)
        return index.explain(hit.need, hit.name)

    def _on_arguments(
        self, name: str, arguments: Json, session: Session, action: _Action
    ) -> Answer | Invocation:
        read = read_arguments(arguments)
        if isinstance(read, str):
            return _mistake(prompts.unreadable_arguments(name, read, None), session)
        return action(read, session)

    # ---- search

    def _search(self, arguments: Mapping[str, Json], session: Session) -> Answer:
        query = arguments.get("query", arguments.get("queries"))
        needs = _needs(query, self.folded)
        lists_names = self.strategy == "stub" and (query is None or isinstance(query, str))
        if not any(_WORD.search(need) for need in needs):
            if lists_names:
                return self._list_names(session)
            missing = query is None or not (isinstance(query, str) or is_array(query))
            return _mistake(
                prompts.QUERY_MISSING if missing else prompts.BLANK_QUERY, session
            )
        wanted = [need for need in needs if _WORD.search(need)]
        limit = _limit(arguments.get("limit"), self.settings)
        groups = [(need, *self._found(need, limit)) for need in wanted[:_NEEDS_AT_MOST]]
        hits = tuple(hit for _, found, _ in groups for hit in found)
        fruitful = any(found or core for _, found, core in groups)
        session = session.reveal(hit.name for hit in hits) if fruitful else session.searched_in_vain()
        if self.strategy == "stub" and not fruitful:
            text = prompts.no_match(wanted[0], len(self.folded), {}, session.fruitless)
            listed = names_text(self.folded, self.settings.search_max_tokens, self.count)
            return Answer(f"{text}\n{listed}", session=session)
        text = search_text(
            groups,
            folded=self.folded,
            budget=self.settings.search_max_tokens,
            count=self.count,
            fruitless=session.fruitless,
            reveals=self.strategy == "stub",
            needs_left_out=len(wanted) - len(groups),
        )
        return Answer(text, hits=hits, session=session)

    def _found(self, need: str, limit: int) -> tuple[tuple[Hit, ...], Tool | None]:
        """Return the hits of a need, and the core tool whose exact name it is, if any."""
        hits = self.search(need, limit)
        named = self.catalog.find(need.strip(_WRAPPING))
        return hits, named if named is not None and named.name not in self.folded else None

    def _list_names(self, session: Session) -> Answer:
        return Answer(
            names_text(self.folded, self.settings.search_max_tokens, self.count), session=session
        )

    # ---- describe

    def _describe(self, arguments: Mapping[str, Json], session: Session) -> Answer:
        names = _names(arguments.get("name", arguments.get("names")), self.catalog)
        if not names:
            return _mistake(prompts.NAME_MISSING, session)
        tools: list[Tool] = []
        missing: list[str] = []
        for name in names[:_NAMES_AT_MOST]:
            tool = self.catalog.find(name.strip(_WRAPPING))
            if tool is None:
                missing.append(self._not_available(name))
            elif tool not in tools:
                tools.append(tool)
        text = describe_text(
            tools,
            folded=self.folded,
            budget=self.settings.describe_max_tokens,
            count=self.count,
        )
        session = session.reveal(tool.name for tool in tools) if tools else session
        said = "\n".join([*([text] if text else []), *missing])
        return Answer(said, is_error=not tools, tools=tuple(tools), session=session)

    # ---- call

    def _call(self, arguments: Mapping[str, Json], session: Session) -> Answer | Invocation:
        name = arguments.get("name")
        if not isinstance(name, str) or not name.strip():
            return _mistake(prompts.CALL_NAME_MISSING, session)
        name = name.strip(_WRAPPING)
        if name in prompts.BRIDGE_NAMES:
            return _mistake(prompts.bridge_in_bridge(name), session)
        tool = self.catalog.find(name)
        if tool is None:
            return _mistake(self._not_available(name), session)
        if tool.name not in self.folded:
            return _mistake(prompts.call_directly(tool.name), session)
        given = arguments.get("arguments")
        if given is None or given == "":
            # Local models tend to write a call's arguments beside the name instead of below.
            given = {k: v for k, v in arguments.items() if k not in ("name", "arguments")}
        return self._invocation(tool, given, "tool_call", session)

    def _direct(self, name: str, arguments: Json, session: Session) -> Answer | Invocation:
        tool = self.catalog.find(name)
        if tool is None:
            return _mistake(self._not_available(name), session)
        if tool.name in self.folded:
            return self._invocation(tool, arguments, "direct", session)
        # An open tool is the host's own business: its arguments are read, not judged.
        read = read_arguments(arguments)
        if isinstance(read, str):
            return _mistake(prompts.unreadable_arguments(tool.name, read, None), session)
        return Invocation(tool, read, "direct", session.moved_on())

    def _invocation(
        self, tool: Tool, arguments: Json, via: Literal["direct", "tool_call"], session: Session
    ) -> Answer | Invocation:
        read = read_arguments(arguments)
        if isinstance(read, str):
            text = prompts.unreadable_arguments(tool.name, read, signature(tool))
            return _mistake(text, session)
        checked = check(tool, read)
        if checked.faults:
            return _mistake(
                prompts.bad_arguments(tool.name, checked.faults, signature(tool)), session
            )
        return Invocation(tool, checked.arguments, via, session.moved_on())

    def _not_available(self, name: str) -> str:
        near = self.catalog.near(name)
        text = prompts.not_available(name, near)
        return text if near or self.strategy is None else f"{text} {prompts.search_for_it()}"


def _mistake(text: str, session: Session) -> Answer:
    return Answer(text, is_error=True, session=session)


def _needs(query: Json, folded: Catalog) -> list[str]:
    """Return the needs of a query: a text with `|` between them, or a list of texts."""
    if is_array(query):
        texts = [item for item in query if isinstance(item, str)]
    elif isinstance(query, str):
        texts = [query] if folded.find(query.strip(_WRAPPING)) else query[:_QUERY_LIMIT * 4].split("|")
    else:
        return []
    needs = (one_line(text, _QUERY_LIMIT) for text in texts)
    return list(dict.fromkeys(need for need in needs if need))


def _names(names: Json, catalog: Catalog) -> list[str]:
    if isinstance(names, str):
        whole = names.strip(_WRAPPING)
        names = [whole] if catalog.find(whole) else re.split(r"[,|\n]", names)
    if not is_array(names):
        return []
    texts: Sequence[str] = [name for name in names if isinstance(name, str)]
    return list(dict.fromkeys(name.strip() for name in texts if name.strip()))


def _limit(limit: Json, settings: Settings) -> int:
    if isinstance(limit, str):
        limit = int(limit) if limit.strip().isdecimal() and len(limit) < 10 else None
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not limit >= 1:
        return settings.search_default_limit
    return int(min(limit, settings.max_search_limit))
