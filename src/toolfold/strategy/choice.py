"""Which strategy a conversation is held with: what `auto` comes to, and when native may not be."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from toolfold._memo import Memo
from toolfold.providers import Provider, binds_reasoning
from toolfold.session import Session
from toolfold.settings import Settings
from toolfold.settings.model import StrategyName
from toolfold.strategy import STRATEGIES
from toolfold.strategy.native import hosted_search
from toolfold.tool import Tool

__all__ = ["chosen_strategy", "warn_of_binding"]

_log = logging.getLogger(__name__)
_TOLD: Memo[tuple[str, ...], bool] = Memo(1_024)


def chosen_strategy(
    settings: Settings, provider: Provider | None, session: Session, tools: Sequence[Tool]
) -> StrategyName:
    """Return the strategy that is really used.

    `auto` is `native` where the table of providers has it, and `bridge` elsewhere;
    `native` and `hosted` that are asked for are obeyed wherever an API is named. After a
    provider has refused deferred tools, it gets the bridge.

    Args:
        settings: How to fold.
        provider: Whom the request goes to, where the host says so.
        session: The conversation so far.
        tools: The tools that there are.
    """
    name, count = settings.strategy, len(tools)
    if name in STRATEGIES:
        return name
    if provider is None:
        if name != "auto" and _is_new("api", name):
            _log.warning(
                "`strategy: %s` needs to know the provider: pass `api` to `fold`; without it the "
                "tools are folded behind the bridge",
                name,
            )
        return "bridge"
    if provider.key in session.refused:
        return "bridge"
    support = provider.support()
    if name == "auto":
        return "native" if support is not None and count <= support.tools_at_most else "bridge"
    if support is not None and count > support.tools_at_most:
        if _is_new("count", name):
            _log.warning(
                "`strategy: %s` takes %d tools at most and there are %d: they are folded behind "
                "the bridge",
                name,
                support.tools_at_most,
                count,
            )
        return "bridge"
    names = (tool.wire_name for tool in tools)
    if name == "hosted" and hosted_search(provider.api, names, session) is None:
        if _is_new("names", name):
            _log.warning(
                "`strategy: hosted` needs a name that tools of yours have, that of the provider's "
                "search: they are folded behind the bridge"
            )
        return "bridge"
    return name


def warn_of_binding(name: str, model: str | None) -> None:
    """Say once that a strategy which changes its list breaks a model's reasoning."""
    if binds_reasoning(model) and _is_new("binding", name, str(model)):
        _log.warning(
            "`strategy: %s` changes the list of tools within a conversation, and %s refuses a "
            "request that holds an earlier thinking block after such a change (400): use `auto`, "
            "`native` or `bridge`, or send no thinking back",
            name,
            model,
        )


def _is_new(*about: str) -> bool:
    """Whether something has not been said yet."""
    if _TOLD.get(about):
        return False
    _TOLD.put(about, True)
    return True
