"""The tools of one request, folded: what goes up in place of them, and what calls come to."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from toolfold import prompts
from toolfold._json_values import sendable
from toolfold._memo import Memo
from toolfold.answer import Answer, Invocation
from toolfold.errors import InvalidToolError, ToolfoldError
from toolfold.fold import Folded, fold
from toolfold.providers import Provider
from toolfold.proxy.conversation import FoldedConversation, sample_of
from toolfold.proxy.offered import Offered, name_of
from toolfold.proxy.presets import open_names
from toolfold.scope import Scope
from toolfold.search import SearchMemory
from toolfold.session import Session
from toolfold.settings import Settings
from toolfold.strategy import FoundForm
from toolfold.tool import Json, Shape, Tool, is_object
from toolfold.wire import read

__all__ = ["ClientName", "FoldedTools", "Folding", "ToolsRefusedError"]

_OTHER_PREFIXES = ("toolfold", "toolfold_tools", "toolfold_proxy")


class ToolsRefusedError(Exception):
    """The tools of a request cannot be read, and a scope says which of them there are."""


class ClientName(NamedTuple):
    """What a client calls a tool."""

    name: str
    namespace: str = ""


@dataclass(slots=True)
class FoldedTools:
    """The tools of one request, folded."""

    folded: Folded
    tools: tuple[str, ...]
    """What goes up, as JSON texts; those of the client that stay, as they came."""

    ours: tuple[str, ...]
    """Those of them that are our own."""

    aside: frozenset[str]
    """The names of tools that folding does not touch: they are called as without it."""

    spaced: Mapping[str, ClientName]
    """What the client calls a tool that goes up under another name."""

    session: Session = field(default_factory=Session)
    sample: tuple[str, ...] = ()
    """Marks of some of the client's tools."""

    memory: SearchMemory | None = None
    """What earlier searches led to, as the client may know it."""

    @property
    def found_form(self) -> FoundForm:
        """How what a search found is said to the model."""
        return self.folded.found_form

    @property
    def conversation(self) -> FoldedConversation:
        """What the conversation's later requests go on with."""
        prefix = self.folded.bridge.settings.bridge_prefix
        ours = () if self.folded.is_native else self.ours
        return FoldedConversation(prefix, ours, self.session, self.sample)

    def is_open(self, name: str) -> bool:
        """Whether a call of this name is the client's own business, whatever its arguments."""
        bridge = self.folded.bridge
        if name in self.aside:
            return True
        if bridge.role(name) is not None or name in self.spaced:
            return False
        return name in bridge.catalog and name not in bridge.folded

    def is_known(self, name: str) -> bool:
        """Whether a call of this name would be one of something that is offered."""
        bridge = self.folded.bridge
        return name in self.aside or bridge.role(name) is not None or name in bridge.catalog

    def is_folded(self, name: str) -> bool:
        """Whether a tool of this name is one that the model does not see in full."""
        return name in self.folded.bridge.folded

    def client_name(self, tool: Tool) -> ClientName:
        """Return what the client calls a tool."""
        return self.spaced.get(tool.name, ClientName(tool.name))

    def resolve(self, name: str, arguments: Json) -> Answer | Invocation:
        """Return what a call comes to."""
        resolved = self.folded.resolve(name, arguments, session=self.session, memory=self.memory)
        self.session = resolved.session
        return resolved


@dataclass(frozen=True, slots=True)
class Folding:
    """How the tools of one request are folded."""

    tools: Sequence[Offered]
    settings: Settings
    scope: Scope
    shape: Shape
    headers: Mapping[str, str]
    """The request's headers: a client is known by them."""

    forced: Sequence[str]
    """The names of tools that must or may be called by name."""

    provider: Provider | None
    """Whom the request goes to, where the dialect has providers that defer tools."""

    model: str
    context_length: int | None
    conversation: FoldedConversation | None
    """How the conversation's tools were folded before."""

    def folded(self, *, is_native: bool = True) -> FoldedTools | None:
        """Return the tools, folded; None where they go up as they came.

        Args:
            is_native: Whether the upstream may be asked to defer.

        Raises:
            ToolsRefusedError: They cannot be read, and the scope does not hold all.
        """
        try:
            before = self.conversation
            if is_native and self._provider(before.session if before else Session()) is not None:
                return self._folded(is_native=True)
            made = _MADE.get_or(self._key(), self._made)
            return made.tools and replace(made.tools, session=made.tools.folded.session)
        except (ToolfoldError, RecursionError) as error:
            if self.scope.holds_everything:
                return None
            raise ToolsRefusedError(str(error)) from None

    def _made(self) -> _Made:
        return _Made(self._folded(is_native=False), sum(len(tool.text) for tool in self.tools))

    def _key(self) -> Hashable:
        """Return all that a fold without a provider's help depends on."""
        digest = hashlib.sha1(usedforsecurity=False)
        for tool in self.tools:
            whole = "\0".join((tool.namespace, tool.own_name, tool.text, "\n"))
            digest.update(whole.encode("utf-8", "surrogatepass"))
        before = self.conversation
        return (
            digest.digest(),
            self.settings,
            self.scope,
            self.shape,
            self._core(),
            self.model,
            self.context_length,
            None if before is None else (before.prefix, before.ours),
        )

    def plain(self) -> FoldedTools | None:
        """Return the tools as they are, for a request in which something else is changed."""
        try:
            return self._written(
                self._fold(replace(self.settings, enabled="off"), None), frozenset()
            )
        except (ToolfoldError, RecursionError):
            return None

    def _folded(self, *, is_native: bool) -> FoldedTools | None:
        came: list[Tool] = []
        for entry in read([tool.record for tool in self.tools]):
            if entry.tools and entry.shape != self.shape:
                raise InvalidToolError("a tool is in the shape of another API")
            came += entry.tools
        if prompts.holds_bridge(came) and self.scope.holds_everything:
            return None  # another fold's, whose host answers it
        names = frozenset(name for tool in self.tools if (name := name_of(tool.record)))
        aside = frozenset(name for name in names if is_gateways(name) and Tool(name) in self.scope)
        settings = self._settings(names - aside)
        before = self.conversation
        session = before.session if before is not None else Session()
        provider = self._provider(session) if is_native else None
        if before is not None and settings.enabled == "auto":
            settings = replace(settings, enabled="on")  # a conversation stays as it began
        folded = self._fold(settings, provider, session, aside)
        if not folded.active and before is None and self._is_whole(folded, aside):
            return None
        return self._written(folded, aside)

    def _fold(
        self,
        settings: Settings,
        provider: Provider | None,
        session: Session | None = None,
        aside: frozenset[str] = frozenset(),
    ) -> Folded:
        fresh: list[Json] = [t.record for t in self.tools if name_of(t.record) not in aside]
        return fold(
            fresh,
            settings=settings if provider is None else replace(settings, strategy="native"),
            scope=self.scope,
            core=self._core(),
            session=session,
            model=self.model or None,
            api=None if provider is None else provider.api,
            host=None if provider is None else provider.host,
            context_length=self.context_length,
            shape=self.shape if provider is None else None,
        )

    def _is_whole(self, folded: Folded, aside: frozenset[str]) -> bool:
        """Whether a scope leaves every tool."""
        given = sum(name_of(tool.record) not in aside for tool in self.tools)
        return len(folded.tools) == given

    def _written(self, folded: Folded, aside: frozenset[str]) -> FoldedTools:
        texts = {id(tool.record): tool.text for tool in self.tools}
        kept = {id(record) for record in folded.tools}
        if folded.is_native:
            gone = [t.text for t in self.tools if name_of(t.record) in aside]
            theirs = [texts.get(id(record)) or _text(record) for record in folded.tools]
            tools, ours = (*gone, *theirs), ()
        else:
            own = [t.text for t in self.tools if self._stays(t.record, folded, kept, aside)]
            mine = folded.bridge.names.all if folded.active else ()
            ours = self._ours([t for t in folded.tools if name_of(t) in mine], kept)
            before = self.conversation
            if before is not None and before.ours and self._goes_on(folded, before):
                ours = before.ours
            tools = (*own, *ours)
        spaced = {
            name_of(tool.record): ClientName(tool.own_name, tool.namespace)
            for tool in self.tools
            if tool.own_name
        }
        sample = sample_of(name_of(tool.record) for tool in self.tools)
        return FoldedTools(folded, tools, ours, aside, spaced, folded.session, sample)

    def _stays(self, record: Json, folded: Folded, kept: Set[int], aside: frozenset[str]) -> bool:
        """Whether one of the client's entries goes up as it came."""
        name, bridge = name_of(record), folded.bridge
        return (
            id(record) in kept
            or name in aside
            or (name in bridge.catalog and name not in bridge.folded)
        )

    def _ours(self, records: Sequence[Json], kept: Set[int]) -> tuple[str, ...]:
        """Return our tools; a mark for the cache that leaves with a folded tool is on the last."""
        marks = [
            tool.record["cache_control"]
            for tool in self.tools
            if id(tool.record) not in kept
            and is_object(tool.record)
            and "cache_control" in tool.record
        ]
        *others, last = records or [None]
        if last is not None and marks:
            last = {**last, "cache_control": marks[-1]}
        return tuple(map(_text, others if last is None else (*others, last)))

    def _settings(self, names: frozenset[str]) -> Settings:
        """Return the settings, with names for the bridge that no tool of the list has."""
        settings = replace(self.settings, strategy="bridge", inline=False)
        before = () if self.conversation is None else (self.conversation.prefix,)
        for prefix in (*before, settings.bridge_prefix, *_OTHER_PREFIXES):
            if names.isdisjoint(prompts.bridge_names(prefix).all):
                return replace(settings, bridge_prefix=prefix)
        return settings

    def _provider(self, session: Session) -> Provider | None:
        """Return whom to ask to defer the tools, if that is to be."""
        provider = self.provider
        if provider is None or self.settings.strategy not in ("auto", "native"):
            return None
        support = provider.support()
        if support is None and self.settings.strategy == "auto":
            return None
        if support is not None and len(self.tools) > support.tools_at_most:
            return None
        return None if provider.key in session.refused else provider

    def _core(self) -> tuple[str, ...]:
        names = {name for tool in self.tools if (name := name_of(tool.record))}
        spaced = frozenset(name_of(tool.record) for tool in self.tools if tool.own_name)
        return (*open_names(sorted(names), self.headers, spaced), *self.forced)

    def _goes_on(self, folded: Folded, before: FoldedConversation) -> bool:
        return folded.bridge.settings.bridge_prefix == before.prefix


class _Made(NamedTuple):
    """What a list of tools came to; nothing where it goes up as it came."""

    tools: FoldedTools | None
    size: int


_MADE: Memo[Hashable, _Made] = Memo(64, room=32 * 1024 * 1024, size=lambda made: made.size)
"""Lists of tools, folded: clients send the same one with every request."""


def is_gateways(name: str) -> bool:
    """Whether a name is that of our own gateway's bridge under a client's prefix."""
    head, _, own = name.rpartition("__")
    return own in prompts.BRIDGE_NAMES and "toolfold" in head.lower()


def _text(record: Json) -> str:
    return sendable(record).decode()
