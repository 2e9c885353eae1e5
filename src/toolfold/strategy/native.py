"""The provider defers the folded tools, and our search says which of them are loaded.

A folded tool's definition goes out with the request, or comes in with what found it, and the
model calls the tool by its own name. The list only ever grows at its end, so a provider's
cache holds, and so does reasoning that is bound to what was sent before it.
"""

from __future__ import annotations

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

__all__ = ["INLINE_BETA", "HostedStrategy", "NativeStrategy"]

INLINE_BETA = "inline-tools-2026-09-15"
"""What Anthropic's header `anthropic-beta` says where definitions come in with messages."""

Way: TypeAlias = Literal["references", "injection", "inline"]

_HOSTED: dict[ProviderApi, dict[str, Json]] = {
    "anthropic-messages": {
        "type": "tool_search_tool_bm25_20251119",
        "name": "tool_search_tool_bm25",
    },
    "openai-responses": {"type": "tool_search"},
}
_FORMS: dict[Way, FoundForm] = {
    "references": "tool_reference",
    "injection": "tool_search_output",
    "inline": "tool_addition",
}


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
        return ListChange(
            records=dict.fromkeys(folded.names),
            added=(),
            guidance="",
            hidden=folded.names,
            left=len(folded),
            provided=(dict(_HOSTED[self.api]),),
            deferred=folded.tools,
        )
