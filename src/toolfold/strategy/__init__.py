"""How a catalog is shown and its tools are reached: one protocol, and the strategies by name.

The table is the one place that knows which strategies there are for every provider; those
that a provider takes part in are made for its API. Everything else asks the strategy that the
settings name.
"""

from collections.abc import Mapping

from toolfold.settings import Settings
from toolfold.settings.model import StrategyName
from toolfold.strategy.bridge import BridgeStrategy
from toolfold.strategy.protocol import FoundForm, ListChange, Strategy
from toolfold.strategy.reveal import RevealStrategy
from toolfold.strategy.stub import StubStrategy
from toolfold.tool import ProviderApi

__all__ = ["STRATEGIES", "FoundForm", "ListChange", "Strategy", "strategy_of"]

STRATEGIES: Mapping[StrategyName, Strategy] = {
    "bridge": BridgeStrategy(),
    "stub": StubStrategy(),
    "reveal": RevealStrategy(),
}
"""The strategies that need nothing of a provider, by the name that the setting gives."""


def strategy_of(
    settings: Settings, api: ProviderApi | None = None, name: StrategyName | None = None
) -> Strategy:
    """Return the strategy that settings ask for; the bridge where they leave it open.

    Args:
        settings: How to fold.
        api: The provider's API. The strategies that a provider takes part in need one.
        name: The strategy's name, where `toolfold.strategy.choice` has chosen one.
    """
    name = settings.strategy if name is None else name
    if api is None or name == "auto" or name in STRATEGIES:
        return STRATEGIES.get(name, STRATEGIES["bridge"])
    from toolfold.strategy.native import HostedStrategy, NativeStrategy

    return HostedStrategy(api) if name == "hosted" else NativeStrategy(api, inline=settings.inline)
