"""What a search finds joins the list, and is called directly.

Revealed tools come in behind everything else, in the order of their first time, so that
what a model was shown before stays as it was, to the byte. A conversation remembers a
bounded number of them: beyond it the oldest leave again, and can be found again.
"""

from __future__ import annotations

from toolfold import prompts
from toolfold.strategy.bridge import BridgeStrategy

__all__ = ["RevealStrategy"]


class RevealStrategy(BridgeStrategy):
    """Folded tools leave the list; `tool_search` and `tool_describe` enter, then what is found.

    `tool_call` is not listed. A model that knows it from elsewhere is answered all the same.
    """

    name = "reveal"
    reveals = True
    lists_call = False
    hits_foot = prompts.LISTED_FOOT
    names_lead = prompts.ALSO_UNLISTED
