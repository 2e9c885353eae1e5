"""Three tools in place of the folded ones. The list stays the same for a whole conversation."""

from __future__ import annotations

from typing import Literal

from toolfold import prompts
from toolfold._memo import Memo
from toolfold._render import listing_text
from toolfold.catalog import Catalog
from toolfold.session import Session
from toolfold.settings import Settings
from toolfold.strategy.protocol import ListChange
from toolfold.tokens import TokenCounter, estimate
from toolfold.tool import Tool

__all__ = ["BridgeStrategy", "search_tool_over"]

_SEARCH_TOOLS: Memo[tuple[str | int, ...], Tool] = Memo(64)


class BridgeStrategy:
    """Folded tools leave the list; `tool_search`, `tool_describe` and `tool_call` enter."""

    name = "bridge"
    ranker = "hybrid"
    gate: Literal["tokens", "tools"] = "tokens"
    answers = frozenset(prompts.BRIDGE_NAMES)
    reveals = False
    hits_foot = prompts.HITS_FOOT
    shows_definitions = False
    takes_one_need = False
    lists_names = False

    def limit(self, asked: float | None, settings: Settings) -> int:
        """Return what was asked for, within the settings' bound, or the settings' own number."""
        if asked is None:
            return settings.search_default_limit
        return int(min(asked, settings.max_search_limit))

    def change(
        self,
        folded: Catalog,
        catalog: Catalog,
        session: Session,
        settings: Settings,
        count: TokenCounter,
    ) -> ListChange:
        """Let the folded tools leave, and the bridge's come in."""
        bridge = prompts.bridge_names(settings.bridge_prefix)
        texts = prompts.texts_of(settings.bridge_texts, bridge)
        search = search_tool_over(folded, catalog, texts.search, settings, count)
        names = folded.names
        return ListChange(
            records=dict.fromkeys(names),
            added=(search, prompts.describe_tool(texts, bridge), prompts.call_tool(texts, bridge)),
            guidance=texts.guidance,
            hidden=names,
            left=len(names),
        )


def search_tool_over(
    folded: Catalog, catalog: Catalog, lead: str, settings: Settings, count: TokenCounter
) -> Tool:
    """Return the search tool over folded tools, made once for each content.

    Args:
        folded: The tools that it finds.
        catalog: Every tool of the scope.
        lead: What its description says first.
        settings: What it lists, and how much its parameters say.
        count: Counts the tokens of the list.
    """

    def made() -> Tool:
        budget = settings.listing_max_tokens
        listing = listing_text(folded, catalog, settings.listing, budget, count)
        names = prompts.bridge_names(settings.bridge_prefix)
        texts = prompts.texts_of(settings.bridge_texts, names)
        return prompts.search_tool(lead, len(folded), listing, texts, names)

    if count is not estimate:
        return made()
    kind = (
        lead,
        settings.listing,
        settings.listing_max_tokens,
        settings.bridge_texts,
        settings.bridge_prefix,
    )
    tools = (folded.fingerprint, catalog.fingerprint, catalog.is_of_one_source)
    return _SEARCH_TOOLS.get_or((*tools, *kind), made)
