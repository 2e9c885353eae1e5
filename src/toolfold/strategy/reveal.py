"""What a search finds joins the list, and is called directly.

Revealed tools come in behind everything else, in the order of their first time, so that
what a model was shown before stays as it was, to the byte. A conversation remembers a
bounded number of them: beyond it the oldest leave again, and can be found again.
"""

from __future__ import annotations

from toolfold import prompts
from toolfold.catalog import Catalog
from toolfold.session import Session
from toolfold.settings import Settings
from toolfold.strategy.bridge import BridgeStrategy, search_tool_over
from toolfold.strategy.protocol import ListChange
from toolfold.tokens import TokenCounter

__all__ = ["RevealStrategy"]


class RevealStrategy(BridgeStrategy):
    """Folded tools leave the list; `tool_search` and `tool_describe` enter, then what is found.

    `tool_call` is not listed. A model that knows it from elsewhere is answered all the same.
    """

    name = "reveal"
    reveals = True
    hits_foot = prompts.LISTED_FOOT

    def change(
        self,
        folded: Catalog,
        catalog: Catalog,
        session: Session,
        settings: Settings,
        count: TokenCounter,
    ) -> ListChange:
        """Let the folded tools leave, and those come in again that were revealed."""
        bridge = prompts.bridge_names(settings.bridge_prefix)
        texts = prompts.texts_of(settings.bridge_texts, bridge)
        search = search_tool_over(folded, catalog, texts.reveal_search, settings, count)
        names = folded.names
        revealed = [folded[name] for name in session.revealed if name in folded]
        shown = {tool.name for tool in revealed}
        return ListChange(
            records=dict.fromkeys(names),
            added=(search, prompts.describe_tool(texts, bridge)),
            guidance=texts.reveal_guidance,
            hidden=[name for name in names if name not in shown],
            left=len(names),
            revealed=revealed,
        )
