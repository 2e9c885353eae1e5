"""The tools of one request, folded: what goes up in place of them, and what calls come to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from toolfold import prompts
from toolfold._json_values import sendable
from toolfold.answer import Answer, Invocation
from toolfold.errors import ToolfoldError
from toolfold.fold import Folded, fold
from toolfold.proxy.json_spans import Element
from toolfold.proxy.presets import open_names
from toolfold.scope import Scope
from toolfold.session import Session
from toolfold.settings import Settings
from toolfold.strategy import FoundForm
from toolfold.tool import Json, Shape, Tool, is_object

__all__ = ["FoldedTools", "ToolsRefusedError", "folded_tools"]

_OTHER_PREFIXES = ("toolfold", "toolfold_tools", "tf_proxy")


class ToolsRefusedError(Exception):
    """The tools of a request cannot be read, and a scope says which of them there are."""


@dataclass(slots=True)
class FoldedTools:
    """The tools of one request, folded."""

    folded: Folded
    tools: tuple[str, ...]
    """What goes up, as JSON texts; those of the client that stay, as they came."""

    aside: frozenset[str]
    """The names of tools that folding does not touch: they are called as without it."""

    session: Session = field(default_factory=Session)

    @property
    def is_changed(self) -> bool:
        """Whether anything but the client's own list goes up."""
        return (
            self.folded.active or self.folded.report.tools_before != self.folded.report.tools_after
        )

    def is_open(self, name: str) -> bool:
        """Whether a call of this name is the client's own business, whatever its arguments."""
        bridge = self.folded.bridge
        if name in self.aside:
            return True
        return bridge.role(name) is None and name in bridge.catalog and name not in bridge.folded

    @property
    def found_form(self) -> FoundForm:
        """How what a search found is said to the model."""
        return self.folded.found_form

    def client_name(self, tool: Tool) -> str:
        """Return the name under which the client knows a tool."""
        return tool.name

    def is_folded(self, name: str) -> bool:
        """Whether a tool of this name is one that the model does not see in full."""
        return name in self.folded.bridge.folded

    def resolve(self, name: str, arguments: Json) -> Answer | Invocation:
        """Return what a call comes to."""
        resolved = self.folded.resolve(name, arguments, session=self.session)
        self.session = resolved.session
        return resolved


def folded_tools(
    text: str,
    tools: Sequence[Element],
    *,
    settings: Settings,
    scope: Scope,
    shape: Shape,
    headers: Mapping[str, str],
    forced: str = "",
    model: str = "",
    context_length: int | None = None,
) -> FoldedTools | None:
    """Return the tools of a request, folded; None where they go up as they came.

    Args:
        text: The request.
        tools: Its tools.
        settings: How to fold.
        scope: Which of the tools exist for this caller.
        shape: The wire shape of the dialect.
        headers: The request's headers: a client is known by them.
        forced: The name of the tool that must be called, if one must.
        model: The model that is asked.
        context_length: Its window, where that is known.

    Raises:
        ToolsRefusedError: They cannot be read, and the scope does not hold all.
    """
    given: list[Json] = [tool.value for tool in tools]
    names = frozenset(name for record in given if (name := name_of(record)))
    aside = frozenset(name for name in names if is_gateways(name))
    fresh = [record for record in given if name_of(record) not in aside]
    settings = _with_prefix(replace(settings, strategy="bridge"), names)
    try:
        folded = fold(
            fresh,
            settings=settings,
            scope=scope,
            core=(*open_names(sorted(names), headers), *((forced,) if forced else ())),
            model=model or None,
            context_length=context_length,
            shape=shape,
        )
    except (ToolfoldError, RecursionError) as error:
        if scope.holds_everything:
            return None
        raise ToolsRefusedError(str(error)) from None
    if not folded.active and scope.holds_everything:
        return None
    texts = {id(tool.value): tool.text(text) for tool in tools}
    kept = {id(record) for record in folded.tools}
    theirs = [
        texts[id(record)] for record in given if id(record) in kept or name_of(record) in aside
    ]
    ours = [sendable(record).decode() for record in folded.tools if id(record) not in texts]
    made = FoldedTools(folded, (*theirs, *ours), aside, folded.session)
    return made if made.is_changed else None


def name_of(record: Json) -> str:
    """Return the name of a tool's record; empty where it has none."""
    if not is_object(record):
        return ""
    function = record.get("function")
    name = function.get("name") if is_object(function) else record.get("name")
    return name if isinstance(name, str) else ""


def is_gateways(name: str) -> bool:
    """Whether a name is that of our own gateway's bridge under a client's prefix."""
    head, _, own = name.rpartition("__")
    return own in prompts.BRIDGE_NAMES and bool(head) and "toolfold" in head.lower()


def _with_prefix(settings: Settings, names: frozenset[str]) -> Settings:
    """Return settings whose bridge has names that no tool of the list has."""
    for prefix in (settings.bridge_prefix, *_OTHER_PREFIXES):
        if names.isdisjoint(prompts.bridge_names(prefix).all):
            return (
                settings
                if prefix == settings.bridge_prefix
                else replace(settings, bridge_prefix=prefix)
            )
    return settings
