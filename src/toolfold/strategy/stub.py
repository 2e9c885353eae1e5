"""Names and descriptions without parameters, until a search loads them.

A tool whose parameters are no longer than what would stand for them keeps them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from toolfold import prompts
from toolfold._json_values import compact
from toolfold._memo import Memo
from toolfold.catalog import Catalog
from toolfold.search.keyword import HITS_AT_MOST
from toolfold.session import Session
from toolfold.settings import Settings
from toolfold.strategy.protocol import FoundForm, ListChange
from toolfold.tokens import TokenCounter
from toolfold.tool import Tool

__all__ = ["StubStrategy"]

_SHORTER: Memo[str, bool] = Memo(16_384)


class StubStrategy:
    """Folded tools stay in their places and lose their parameters; `tool_search` enters."""

    name = "stub"
    ranker = "keyword"
    gate: Literal["tokens", "tools"] = "tools"
    answers = frozenset({prompts.TOOL_SEARCH})
    reveals = True
    hits_foot = prompts.REVEALED_FOOT
    names_lead = ""
    shows_definitions = True
    takes_one_need = True
    lists_names = True
    lists_call = False
    found_form: FoundForm = "text"
    headers: Mapping[str, str] = MappingProxyType({})

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
        hidden = [t.name for t in folded if t.name not in revealed and _is_shorter(t)]
        return ListChange(
            records=dict.fromkeys(hidden, prompts.STUB_PARAMETERS),
            added=(prompts.stub_search_tool(len(folded), texts, bridge),),
            guidance=texts.stub_guidance,
            hidden=hidden,
            left=0,
        )


def _is_shorter(tool: Tool) -> bool:
    """Whether a stub is shorter than the parameters that it would stand for."""
    return _SHORTER.get_or(
        tool.digest, lambda: len(compact(tool.parameters)) > len(compact(prompts.STUB_PARAMETERS))
    )
