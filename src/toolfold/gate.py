"""Whether to fold, and what: decided anew on every assembly.

Open tools (core, never-defer, policy `never`) stay. The others are deferrable: those with
policy `always` fold whenever folding is not off, the rest when the gate opens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from toolfold.scope import matches
from toolfold.settings import Settings
from toolfold.tool import Policy, Tool

__all__ = ["UNKNOWN_WINDOW_TOKENS", "Verdict", "judge"]

UNKNOWN_WINDOW_TOKENS = 20_000
"""What the deferrable schemas may take where the context window is not known."""


class Verdict(NamedTuple):
    """What folds, and why."""

    folded: frozenset[str]
    """The names of the tools to fold. Empty: the tools pass through."""

    reason: str
    """Why, as one clause for a person."""

    deferrable: int
    """How many tools could be folded."""

    deferrable_tokens: int
    """What they cost."""

    threshold_tokens: int
    """From what cost on the bridge folds in `auto`."""


def judge(
    tools: Sequence[Tool],
    tokens: Sequence[int],
    settings: Settings,
    context_length: int | None,
) -> Verdict:
    """Return what folds, given the tools of the scope and what each costs."""
    policies = [policy(tool, settings) for tool in tools]
    deferrable = [i for i, own in enumerate(policies) if own != "never"]
    cost = sum(tokens[i] for i in deferrable)
    threshold = threshold_tokens(settings, context_length)

    def verdict(which: Literal["all", "always", "none"], reason: str) -> Verdict:
        chosen = deferrable if which != "none" else []
        folded = frozenset(
            tools[i].name for i in chosen if which == "all" or policies[i] == "always"
        )
        return Verdict(folded, reason, len(deferrable), cost, threshold)

    if settings.enabled == "off":
        return verdict("none", "folding is off")
    if not deferrable:
        return verdict("none", "no tool is deferrable")
    if settings.enabled == "on":
        return verdict("all", "folding is on")
    if settings.strategy == "stub":
        opens = len(tools) >= settings.threshold
        compared = f"{len(tools)} tools, {'at least' if opens else 'fewer than'} the threshold"
        reason = f"{compared} of {settings.threshold}"
    else:
        opens = cost >= threshold
        compared = "at least" if opens else "less than"
        reason = (
            f"deferrable tools take {cost:,} tokens, {compared} "
            f"{threshold_text(settings, context_length, threshold)}"
        )
    if opens:
        return verdict("all", reason)
    if any(own == "always" for own in policies):
        return verdict("always", f"{reason}; tools with policy `always` fold all the same")
    return verdict("none", reason)


def policy(tool: Tool, settings: Settings) -> Policy:
    """Return a tool's policy: the user's settings over its owner's word."""
    if settings.open_tools and matches(tool, settings.open_tools):
        return "never"
    if settings.always_defer and matches(tool, settings.always_defer):
        return "always"
    return tool.policy


def threshold_tokens(settings: Settings, context_length: int | None) -> int:
    """Return the cost of deferrable tools from which on the bridge folds in `auto`."""
    if settings.threshold_pct == 0:
        return 0
    if context_length is None:
        return UNKNOWN_WINDOW_TOKENS
    return int(context_length * settings.threshold_pct / 100)


def threshold_text(settings: Settings, context_length: int | None, threshold: int) -> str:
    """Return the threshold in words."""
    if context_length is None:
        return f"{threshold:,} (the context window is not known)"
    return f"{threshold:,} ({settings.threshold_pct:g} % of {context_length:,})"
