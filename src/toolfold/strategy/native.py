"""The provider defers the folded tools, and our search says which of them are loaded.

A folded tool's definition goes out with the request, or comes in with what found it, and the
model calls the tool by its own name. The list only ever grows at its end, so a provider's
cache holds, and so does reasoning that is bound to what was sent before it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

from toolfold import prompts
from toolfold.catalog import Catalog
from toolfold.session import Session
from toolfold.settings import Settings
from toolfold.strategy.bridge import BridgeStrategy
from toolfold.strategy.protocol import FoundForm, ListChange
from toolfold.tokens import TokenCounter
from toolfold.tool import Json, ProviderApi
from toolfold.wire.deferred import search_entry

__all__ = ["INLINE_BETA", "HostedStrategy", "NativeStrategy", "hosted_search"]

INLINE_BETA = "inline-tools-2026-09-15"
"""What Anthropic's header `anthropic-beta` says where definitions come in with messages."""

Way: TypeAlias = Literal["references", "injection", "inline"]

_HOSTED: dict[ProviderApi, tuple[dict[str, Json], ...]] = {
    "anthropic-messages": (
        {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"},
        {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"},
    ),
    "openai-responses": ({"type": "tool_search"},),
}
"""The providers' own searches. Their names are fixed, and no two tools may have one name."""
_FORMS: dict[Way, FoundForm] = {
    "references": "tool_reference",
    "injection": "tool_search_output",
    "inline": "tool_addition",
}


def hosted_search(
    api: ProviderApi, names: Iterable[str], session: Session
) -> dict[str, Json] | None:
    """Return the entry of a provider's own search, or None where its names are all taken.

    Args:
        api: The provider's API.
        names: The names on the wire of the tools that there are.
        session: The conversation so far; a tool that went keeps its name until the end of it.
    """
    taken = set(names)
    if session.sent is not None:
        taken.update(name for name, _ in session.sent.records)
    return next((dict(own) for own in _HOSTED[api] if own.get("name") not in taken), None)


class NativeStrategy(BridgeStrategy):
    """Folded tools are deferred by the provider; `tool_search` enters, and is answered by us.

    Args:
        api: The provider's API.
        inline: Whether Anthropic gets definitions behind what found them, instead of all of
            them, deferred, in the list.
    """

    name = "native"
    hits_foot = prompts.LOADED_FOOT
    names_lead = prompts.ALSO_UNLOADED
    lists_call = False

    def __init__(self, api: ProviderApi, *, inline: bool = False) -> None:
        self.api: ProviderApi = api
        if api == "openai-responses":
            self._way: Way = "injection"
        else:
            self._way = "inline" if inline else "references"
        self.found_form: FoundForm = _FORMS[self._way]
        self.headers = {"anthropic-beta": INLINE_BETA} if self._way == "inline" else {}

    def change(
        self,
        folded: Catalog,
        catalog: Catalog,
        session: Session,
        settings: Settings,
        count: TokenCounter,
    ) -> ListChange:
        """Let the folded tools leave, the search come in, and what is deferred behind it."""
        names = prompts.bridge_names(settings.bridge_prefix)
        texts, search = self._face(folded, catalog, settings, count)
        rest = (prompts.describe_tool(texts, names), prompts.call_tool(texts, names))
        is_entry = self._way == "injection"
        return ListChange(
            records=dict.fromkeys(folded.names),
            added=(
                *(() if is_entry else (search,)),
                *(rest if self._was_bridged(session, names) else ()),
            ),
            guidance=texts.native_guidance,
            hidden=folded.names,
            left=len(folded),
            provided=(search_entry(search),) if is_entry else (),
            deferred=folded.tools if self._way == "references" else (),
        )

    def _was_bridged(self, session: Session, names: prompts.BridgeNames) -> bool:
        """Whether earlier calls went through the bridge: replayed, they need its definitions."""
        sent = session.sent
        if sent is None or (sent.api, sent.strategy) != (self.api, self.name):
            return session.bridged
        return any(key == names.call for key, _ in sent.records)

    def _lead(self, texts: prompts.Texts) -> str:
        return texts.native_search


class HostedStrategy(BridgeStrategy):
    """Folded tools are deferred by the provider, whose own search loads them.

    Args:
        api: The provider's API.
    """

    name = "hosted"
    lists_call = False

    def __init__(self, api: ProviderApi) -> None:
        self.api: ProviderApi = api

    def change(
        self,
        folded: Catalog,
        catalog: Catalog,
        session: Session,
        settings: Settings,
        count: TokenCounter,
    ) -> ListChange:
        """Let the folded tools be deferred, and the provider's search come in."""
        search = hosted_search(self.api, (tool.wire_name for tool in catalog), session)
        return ListChange(
            records=dict.fromkeys(folded.names),
            added=(),
            guidance="",
            hidden=folded.names,
            left=len(folded),
            provided=() if search is None else (search,),
            deferred=folded.tools,
        )
