"""Three tools in place of the folded ones. The list stays the same for a whole conversation."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from toolfold import prompts
from toolfold._memo import Memo
from toolfold._render import listing_text
from toolfold.catalog import Catalog
from toolfold.session import Session
from toolfold.settings import Settings
from toolfold.strategy.protocol import FoundForm, ListChange
from toolfold.tokens import TokenCounter, estimate
from toolfold.tool import Tool

__all__ = ["BridgeStrategy"]

_FACES: Memo[tuple[str | int, ...], tuple[prompts.Texts, Tool]] = Memo(64)


class BridgeStrategy:
    """Folded tools leave the list; `tool_search`, `tool_describe` and `tool_call` enter."""

    name = "bridge"
    ranker = "hybrid"
    gate: Literal["tokens", "tools"] = "tokens"
    answers = frozenset(prompts.BRIDGE_NAMES)
    reveals = False
    hits_foot = prompts.HITS_FOOT
    names_lead = prompts.ALSO
    shows_definitions = False
    takes_one_need = False
    lists_names = False
    lists_call = True
    found_form: FoundForm = "text"
    headers: Mapping[str, str] = MappingProxyType({})

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
        """Let the folded tools leave, and the bridge's come in; behind them, what was revealed."""
        bridge = prompts.bridge_names(settings.bridge_prefix)
        texts, search = self._face(folded, catalog, settings, count)
        describe, call = prompts.describe_tool(texts, bridge), prompts.call_tool(texts, bridge)
        names = folded.names
        remembered = session.revealed if self.reveals else ()
        revealed = [folded[name] for name in remembered if name in folded]
        shown = {tool.name for tool in revealed}
        return ListChange(
            records=dict.fromkeys(names),
            added=(search, describe) if self.reveals else (search, describe, call),
            guidance=texts.reveal_guidance if self.reveals else texts.guidance,
            hidden=[name for name in names if name not in shown],
            left=len(names),
            revealed=revealed,
        )

    def _face(
        self, folded: Catalog, catalog: Catalog, settings: Settings, count: TokenCounter
    ) -> tuple[prompts.Texts, Tool]:
        """Return the texts of the bridge and its search tool, made once for each content."""

        def made() -> tuple[prompts.Texts, Tool]:
            budget = settings.listing_max_tokens
            listing = listing_text(folded, catalog, settings.listing, budget, count)
            names = prompts.bridge_names(settings.bridge_prefix)
            texts = prompts.texts_of(settings.bridge_texts, names, named=listing.has_names)
            return texts, prompts.search_tool(
                self._lead(texts), len(folded), listing.text, texts, names
            )

        if count is not estimate:
            return made()
        kind = (
            self.name,
            settings.listing,
            settings.listing_max_tokens,
            settings.bridge_texts,
            settings.bridge_prefix,
        )
        tools = (folded.fingerprint, catalog.fingerprint, catalog.is_of_one_source)
        return _FACES.get_or((*tools, *kind), made)

    def _lead(self, texts: prompts.Texts) -> str:
        """Return how the search tool says to use what it finds."""
        return texts.reveal_search if self.reveals else texts.search
