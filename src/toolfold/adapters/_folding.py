"""What every adapter stands on: a framework's tools folded, its model's calls resolved.

A framework keeps its tools and runs them; an adapter says which of them its model sees and
what a call comes to. What it needs for that is the same everywhere, and stands here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, NamedTuple, TypeAlias

from toolfold.answer import Answer, Invocation
from toolfold.bridge import Bridge
from toolfold.catalog import Catalog
from toolfold.dispatch.dispatch import Dispatch, Origin
from toolfold.errors import MissingExtraError, NameClashError
from toolfold.fold import Folded, fold
from toolfold.prompts import bridge_names
from toolfold.scope import EVERYTHING, Scope
from toolfold.search import Ranker
from toolfold.session import Session
from toolfold.settings import Settings
from toolfold.tool import Json, Tool
from toolfold.wire import read

__all__ = [
    "FoldOptions",
    "ScopeOf",
    "ShownTool",
    "definition",
    "joined_records",
    "missing",
    "ranked_names",
    "resolved",
    "scope_for",
    "session_of",
    "session_record",
    "shown_tools",
]

ScopeOf: TypeAlias = Scope | Callable[[Any], Scope]
"""Which tools exist: for everybody, or by what a framework knows of the run."""

_DISPATCH = Dispatch()
_ORIGIN = Origin()
_OTHER_PREFIX = "toolfold"
"""What the bridge's names begin with where a tool has one of the settings'."""


@dataclass(frozen=True)
class FoldOptions:
    """How the tools of a framework are folded, whoever the caller is."""

    settings: Settings | None = None
    core: tuple[str, ...] = ()
    """Names or patterns of tools that stay open, beside those of the settings."""

    context_length: int | None = None
    """The model's window; by default what is known of its name."""

    ranker: Ranker | None = None

    def fold(
        self,
        tools: Iterable[Mapping[str, Json] | Tool],
        *,
        scope: Scope = EVERYTHING,
        session: Session | None = None,
        model: str | None = None,
    ) -> Folded:
        """Return what a caller's model sees of the tools now.

        A framework's list may hold a stranger's tool, of an MCP server say, that has a name of
        the bridge's: then the bridge has others, which begin with `toolfold`.

        Args:
            tools: The tools, as `definition` writes them.
            scope: Which of them exist for the caller.
            session: The conversation so far.
            model: The model's name.
        """
        listed = list(tools)

        def folded(settings: Settings | None) -> Folded:
            return fold(
                listed,
                settings=settings,
                core=self.core,
                context_length=self.context_length,
                ranker=self.ranker,
                scope=scope,
                session=session,
                model=model,
                shape="plain",
            )

        try:
            return folded(self.settings)
        except NameClashError as error:
            if error.name not in self.names:
                raise
            return folded(replace(self.settings or Settings(), bridge_prefix=_OTHER_PREFIX))

    @property
    def names(self) -> tuple[str, ...]:
        """What the bridge's tools may be called: by the settings, or where those are taken."""
        prefixes = ((self.settings or Settings()).bridge_prefix, _OTHER_PREFIX)
        return tuple(name for prefix in prefixes for name in bridge_names(prefix).all)


class ShownTool(NamedTuple):
    """A tool as the model sees it."""

    name: str
    """What the framework calls it."""

    description: str
    parameters: dict[str, Any]
    is_bridge: bool
    """Whether it stands for folded ones, so that no framework knows it."""


def definition(
    name: str,
    description: str | None,
    parameters: Mapping[str, Any] | None,
    **more: Json,
) -> dict[str, Json]:
    """Return the record of a framework's tool, as `FoldOptions.fold` takes it.

    Args:
        name: What the framework calls it.
        description: What it says it does.
        parameters: The JSON Schema of its arguments.
        more: What else is known, such as `annotations` or `toolset`; None is left out.
    """
    record: dict[str, Json] = {
        "name": name,
        "description": description or "",
        "parameters": dict(parameters or {"type": "object", "properties": {}}),
    }
    return {**record, **{key: value for key, value in more.items() if value is not None}}


def shown_tools(folded: Folded) -> list[ShownTool]:
    """Return what the model sees, in order: the framework's own tools and the bridge's."""
    shown: list[ShownTool] = []
    for record in folded.tools:
        name = str(record["name"])
        role = folded.bridge.role(name)
        own = None if role else folded.catalog.find(name)
        parameters = dict(record.get("parameters") or {})
        shown.append(
            ShownTool(
                name if own is None else own.name,
                str(record.get("description") or ""),
                parameters,
                role is not None,
            )
        )
    return shown


def scope_for(scope: ScopeOf, run: Any) -> Scope:
    """Return which tools exist in a run, as the framework knows it."""
    return scope if isinstance(scope, Scope) else scope(run)


async def resolved(
    folded: Folded, name: str, arguments: Json, session: Session
) -> Answer | Invocation:
    """Return what a model's call comes to; beside the event loop where that may take long."""
    return await _DISPATCH.resolve(folded, name, arguments, session=session, origin=_ORIGIN)


def ranked_names(
    tools: Iterable[Mapping[str, Json] | Tool],
    queries: str | Sequence[str],
    *,
    limit: int,
    settings: Settings | None = None,
    scope: Scope = EVERYTHING,
    ranker: Ranker | None = None,
) -> list[str]:
    """Return the names of the tools that queries ask for: the best of each first, none by force.

    It is for frameworks with a search of their own that takes another ranking.

    Args:
        tools: The tools that may be found.
        queries: What the model wrote; each may hold several needs.
        limit: How many names each need may bring.
        settings: How to search.
        scope: Which of the tools exist for the caller.
        ranker: How to rank, in place of the settings' choice.
    """
    every = [tool for entry in read(tools) for tool in entry.tools]
    within = Catalog(tool for tool in every if tool in scope)
    bridge = Bridge.over(within, settings or Settings())
    bridge = bridge if ranker is None else replace(bridge, ranker=ranker)
    asked = [queries] if isinstance(queries, str) else queries
    needs = [need for query in asked for need in bridge.needs(query)]
    found = [[hit.name for hit in bridge.shown(need, limit)] for need in needs]
    in_turn = (name for names in zip_longest(*found) for name in names if name is not None)
    return list(dict.fromkeys(in_turn))


# ---- a session as JSON, for frameworks that keep the conversation's state themselves


def session_record(session: Session) -> dict[str, Json]:
    """Return a session as JSON."""
    return {"revealed": list(session.revealed), "fruitless": session.fruitless}


def session_of(record: Mapping[str, Any] | None) -> Session:
    """Return the session that a record was made of; a new one where there is none."""
    if not record:
        return Session()
    return Session(
        revealed=tuple(map(str, record.get("revealed") or ())),
        fruitless=int(record.get("fruitless") or 0),
    )


def joined_records(
    one: Mapping[str, Any] | None, other: Mapping[str, Any] | None
) -> dict[str, Json]:
    """Return what two steps that ran beside each other, or one after the other, came to."""
    first, last = session_of(one), session_of(other)
    return session_record(replace(first.reveal(last.revealed), fruitless=last.fruitless))


def missing(framework: str, extra: str) -> MissingExtraError:
    """Return the error that says how to install what an adapter translates for."""
    return MissingExtraError(f"the adapter for {framework}", extra)
