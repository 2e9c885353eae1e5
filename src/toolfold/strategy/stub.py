"""Names and descriptions without parameters, until a search loads them."""

from __future__ import annotations

from typing import Literal

from toolfold import prompts
from toolfold.catalog import Catalog
from toolfold.search.keyword import HITS_AT_MOST
from toolfold.session import Session
from toolfold.settings import Settings
from toolfold.strategy.protocol import ListChange
from toolfold.tokens import TokenCounter

__all__ = ["StubStrategy"]


class StubStrategy:
    """Folded tools stay in their places and lose their parameters; `tool_search` enters."""

    name = "stub"
    ranker = "keyword"
    gate: Literal["tokens", "tools"] = "tools"
    answers = frozenset({prompts.TOOL_SEARCH})
    reveals = True
    hits_foot = prompts.REVEALED_FOOT
    shows_definitions = True
    takes_one_need = True
    lists_names = True

    def limit(self, asked: float | None, settings: Settings) -> int:
        """Return what was asked for, within how much a search reveals at once."""
        return HITS_AT_MOST if asked is None else int(min(asked, HITS_AT_MOST))

    def change(
        self,
        folded: Catalog,
        catalog: Catalog,
        session: Session,
        settings: Settings,
        count: TokenCounter,
    ) -> ListChange:
        """Let the folded tools lose their parameters, but for those that are revealed."""
        bridge = prompts.bridge_names(settings.bridge_prefix)
        texts = prompts.texts_of(settings.bridge_texts, bridge)
        revealed = frozenset(session.revealed)
        hidden = [name for name in folded.names if name not in revealed]
        return ListChange(
            records=dict.fromkeys(hidden, texts.stub_parameters),
            added=(prompts.stub_search_tool(len(folded), texts, bridge),),
            guidance=texts.stub_guidance,
            hidden=hidden,
            left=0,
        )
