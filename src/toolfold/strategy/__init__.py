"""How a catalog is shown and its tools are reached: one protocol, and the strategies by name.

The table is the one place that knows which strategies there are; everything else asks the
strategy that the settings name.
"""

from collections.abc import Mapping

from toolfold.settings import Settings
from toolfold.settings.model import StrategyName
from toolfold.strategy.bridge import BridgeStrategy
from toolfold.strategy.protocol import ListChange, Strategy
from toolfold.strategy.reveal import RevealStrategy
from toolfold.strategy.stub import StubStrategy

__all__ = ["STRATEGIES", "ListChange", "Strategy", "strategy_of"]

STRATEGIES: Mapping[StrategyName, Strategy] = {
    "bridge": BridgeStrategy(),
    "stub": StubStrategy(),
    "reveal": RevealStrategy(),
}
"""The strategies, by the name that the setting `strategy` gives."""


def strategy_of(settings: Settings) -> Strategy:
    """Return the strategy that settings ask for."""
    return STRATEGIES[settings.strategy]
