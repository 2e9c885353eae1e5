"""The three tools that stand for the folded ones.

A `Bridge` is made for one catalog, which holds what the caller's scope leaves and nothing
else; search, describe and call all look there. A model's mistake is an `Answer` with
the next step in it, never an exception.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from toolfold import prompts
from toolfold.answer import Answer, Hit, Invocation
from toolfold.arguments import check, read_arguments
from toolfold.bounds import one_line, visible
from toolfold.catalog import Catalog
from toolfold.render import describe_text, fitting, names_text, search_text
from toolfold.search import Ranker, chosen_ranker, index_of
from toolfold.session import Session
from toolfold.settings import Settings
from toolfold.signature import signature
from toolfold.tokens import TokenCounter, estimate
from toolfold.tool import Json, Tool, is_array, is_object

__all__ = ["Bridge"]

_NEEDS_AT_MOST = 8
_NAMES_AT_MOST = 16
_STUB_HITS_AT_MOST = 8
_QUERY_LIMIT = 2_000
_WRAPPING = "\"'`“”‘’ \t\n"
_OTHER_KEYS = ("parameters", "args", "input", "params")
_WORD = re.compile(r"[^\W_]")


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

    @classmethod
    def over(cls, catalog: Catalog, settings: Settings) -> Bridge:
        """Return the bridge over a catalog of which every tool is folded."""
        if settings.aliases:
            catalog = Catalog(tool.with_aliases(settings.aliases) for tool in catalog)
        return cls(catalog, catalog, settings, "bridge", chosen_ranker(settings))

    def resolve(self, name: str, arguments: Json, session: Session) -> Answer | Invocation:
        """Return what a model's call comes to."""
        resolved = self._resolve(str(name).strip(), arguments, session)
        if isinstance(resolved, Answer):
            # Names and texts are strangers' words: what cannot be seen is not passed on.
            return replace(resolved, text=visible(resolved.text))
        return resolved

    def _resolve(self, name: str, arguments: Json, session: Session) -> Answer | Invocation:
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
        floor = self.settings.relevance_floor
        if found and self.ranker.calibrated and found[0].score < floor:
            found = ()
        hits = [Hit(self.folded[item.name], item.score, need) for item in found]
        exact = _named(self.folded, need)
        if exact is not None and not (hits and hits[0].tool is exact):
            above = (hits[0].score if hits else 0.0) + 1.0
            rest = [hit for hit in hits if hit.tool is not exact]
            hits = [Hit(exact, 1.0 if self.ranker.calibrated else above, need), *rest]
        return tuple(hits[:limit])

    def explain(self, hit: Hit) -> str:
        """Say in one line why a hit is there."""
        if _named(self.folded, hit.need) is hit.tool:
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
        needs = [
            need
            for need in _needs(query, self.catalog, together=self.strategy == "stub")
            if _WORD.search(need) or _named(self.catalog, need)
        ]
        if not needs:
            return self._without_need(query, session)
        limit = self._limit(arguments.get("limit"))
        groups = [(need, *self._found(need, limit)) for need in needs[:_NEEDS_AT_MOST]]
        hits = tuple(hit for _, found, _ in groups for hit in found)
        fruitful = any(found or core for _, found, core in groups)
        session = (
            session.reveal(hit.name for hit in hits) if fruitful else session.searched_in_vain()
        )
        if self.strategy == "stub" and not fruitful:
            text = prompts.no_match(needs[0], len(self.folded), {}, session.fruitless)
            return Answer(f"{text}\n{self._names(text)}", session=session)
        text = search_text(
            groups,
            folded=self.folded,
            budget=self.settings.search_max_tokens,
            count=self.count,
            fruitless=session.fruitless,
            reveals=self.strategy == "stub",
            needs_left_out=len(needs) - len(groups),
        )
        return Answer(text, hits=hits, session=session)

    def _without_need(self, query: Json, session: Session) -> Answer:
        """Return the answer to a blank query: a mistake, but with stubs a way to browse."""
        if self.strategy == "stub" and (query is None or isinstance(query, str)):
            return Answer(self._names(""), session=session)
        missing = not (isinstance(query, str) or is_array(query))
        return _mistake(prompts.QUERY_MISSING if missing else prompts.BLANK_QUERY, session)

    def _found(self, need: str, limit: int) -> tuple[tuple[Hit, ...], Tool | None]:
        """Return the hits of a need, and the core tool whose exact name it is, if any."""
        hits = self.search(need, limit)
        named = _named(self.catalog, need)
        return hits, named if named is not None and named.name not in self.folded else None

    def _limit(self, limit: Json) -> int:
        stub = self.strategy == "stub"
        most = _STUB_HITS_AT_MOST if stub else self.settings.max_search_limit
        if isinstance(limit, str):
            limit = int(limit) if limit.strip().isdecimal() and len(limit) < 10 else None
        if isinstance(limit, bool) or not isinstance(limit, int | float) or not limit >= 1:
            return most if stub else self.settings.search_default_limit
        return int(min(limit, most))

    def _names(self, head: str) -> str:
        """Return the names of the folded tools, within what a head leaves of the budget."""
        return names_text(
            self.folded, self.settings.search_max_tokens - self.count(head), self.count
        )

    # ---- describe

    def _describe(self, arguments: Mapping[str, Json], session: Session) -> Answer:
        names = _names(arguments.get("name", arguments.get("names")), self.catalog)
        if not names:
            return _mistake(prompts.NAME_MISSING, session)
        tools: list[Tool] = []
        missing: list[str] = []
        for name in names[:_NAMES_AT_MOST]:
            tool = _named(self.catalog, name)
            if name not in self.catalog and name.strip(_WRAPPING) in prompts.BRIDGE_NAMES:
                missing.append(prompts.call_directly(name.strip(_WRAPPING)))
            elif tool is None:
                missing.append(self._not_available(name.strip(_WRAPPING)))
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
            name = name.strip(_WRAPPING) or name
        if name in prompts.BRIDGE_NAMES:
            return _mistake(prompts.bridge_in_bridge(name), session)
        tool = _named(self.catalog, name)
        if tool is None:
            return _mistake(self._not_available(name), session)
        if tool.name not in self.folded:
            return _mistake(prompts.call_directly(tool.shown_name), session)
        given = arguments.get("arguments")
        if not given or (isinstance(given, str) and not given.strip()):
            # Local models tend to write a call's arguments beside the name instead of below.
            beside = {k: v for k, v in arguments.items() if k not in ("name", "arguments")}
            below = next((beside[k] for k in _OTHER_KEYS if beside.keys() == {k}), None)
            given = (below if is_object(below) else beside) or given
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
            return _mistake(prompts.unreadable_arguments(tool.shown_name, read, None), session)
        return Invocation(tool, read, "direct", session.moved_on())

    def _invocation(
        self, tool: Tool, arguments: Json, via: Literal["direct", "tool_call"], session: Session
    ) -> Answer | Invocation:
        read = read_arguments(arguments)
        if isinstance(read, str):
            text = prompts.unreadable_arguments(tool.shown_name, read, signature(tool))
            return _mistake(text, session)
        checked = check(tool, read)
        if checked.faults:
            return _mistake(
                prompts.bad_arguments(tool.shown_name, checked.faults, signature(tool)), session
            )
        return Invocation(tool, checked.arguments, via, session.moved_on())

    def _not_available(self, name: str) -> str:
        near = [self.catalog[like].shown_name for like in self.catalog.near(name)]
        text = prompts.not_available(name, near)
        return text if near or self.strategy is None else f"{text} {prompts.search_for_it()}"


def _mistake(text: str, session: Session) -> Answer:
    return Answer(text, is_error=True, session=session)


def _named(catalog: Catalog, text: str) -> Tool | None:
    """Return the tool that a text names, quoted or not."""
    bare = text.strip()
    inner = bare[1:-1] if len(bare) > 2 and bare[0] in _WRAPPING and bare[-1] in _WRAPPING else ""
    return catalog.find(text) or catalog.find(inner) or catalog.find(text.strip(_WRAPPING))


def _needs(query: Json, catalog: Catalog, *, together: bool) -> list[str]:
    """Return the needs of a query: a text with `|` between them, or a list of texts.

    Args:
        query: What the model sent.
        catalog: The tools whose names may hold a `|` themselves.
        together: Whether all is one need, to be searched in one go.
    """
    if is_array(query):
        texts = [item for item in query if isinstance(item, str)]
    elif isinstance(query, str):
        whole = together or _named(catalog, query) is not None
        texts = [query] if whole else query[: 4 * _QUERY_LIMIT].split("|")
        texts = [query.replace("|", " ")] if together and _named(catalog, query) is None else texts
    else:
        return []
    if together:
        texts = [" ".join(texts)]
    needs = (t if _named(catalog, t) else one_line(t, _QUERY_LIMIT) for t in texts)
    return list(dict.fromkeys(need for need in needs if need))


def _names(names: Json, catalog: Catalog) -> list[str]:
    if isinstance(names, str):
        names = [names] if _named(catalog, names) else re.split(r"[,|\n]", names)
    if not is_array(names):
        return []
    texts = [name for name in names if isinstance(name, str)]
    return list(dict.fromkeys(text for text in texts if text.strip(_WRAPPING)))
