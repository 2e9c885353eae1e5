"""Whether to fold, and what: decided anew on every assembly.

Open tools (core, never-defer, policy `never`) stay. The others are deferrable: those with
policy `always` fold whenever folding is not off, the rest when the gate opens.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

from toolfold._memo import Memo
from toolfold.prompts import plural
from toolfold.scope import matches
from toolfold.settings import Settings
from toolfold.strategy import strategy_of
from toolfold.tool import Policy, Tool

__all__ = ["UNKNOWN_WINDOW_TOKENS", "GateVerdict", "judge", "say_unmatched"]

_log = logging.getLogger(__name__)
_LOOKED_AT: Memo[str, bool] = Memo(4_096)

UNKNOWN_WINDOW_TOKENS = 20_000
"""What the deferrable schemas may take where the context window is not known."""


class GateVerdict(NamedTuple):
    """What folds, and why."""

    folded: frozenset[str]
    """The names of the tools to fold. Empty: the tools pass through."""

    reason: str
    """Why, as one clause for a person."""

    deferrable_tokens: int
    """What they cost."""

    threshold_tokens: int
    """From what cost on the bridge folds in `auto`."""


def judge(
    tools: Sequence[Tool],
    tokens: Sequence[int],
    settings: Settings,
    context_length: int | None,
    *,
    is_folded: bool = False,
    stays: bool = False,
    whole: int | None = None,
) -> GateVerdict:
    """Return what folds, given the tools of the scope and what each costs.

    Args:
        tools: The tools of the scope.
        tokens: What each costs.
        settings: How to fold.
        context_length: The model's window, if it is known.
        is_folded: Whether the list holds an earlier fold's bridge.
        stays: Whether the conversation was folded before, and stays so unless folding is off.
        whole: What the whole list costs; its parts, each rounded up, cost no more together.
    """
    policies = policies_of(tools, settings)
    deferrable = [i for i, own in enumerate(policies) if own != "never"]
    cost = sum(tokens[i] for i in deferrable)
    cost = cost if whole is None else min(cost, whole)
    threshold = threshold_tokens(settings, context_length)

    def verdict(which: Literal["all", "always", "none"], reason: str) -> GateVerdict:
        chosen = deferrable if which != "none" else []
        folded = frozenset(
            tools[i].name for i in chosen if which == "all" or policies[i] == "always"
        )
        return GateVerdict(folded, reason, cost, threshold)

    if settings.enabled == "off":
        return verdict("none", "folding is off")
    if is_folded:
        return verdict("none", "the list is folded already")
    if not deferrable:
        return verdict("none", "no tool is deferrable")
    if settings.enabled == "on":
        return verdict("all", "folding is on")
    if stays:
        return verdict("all", "the conversation was folded before")
    if strategy_of(settings).gate == "tools":
        opens = len(tools) >= settings.threshold
        count, side = plural(len(tools), "tool"), "at least" if opens else "fewer than"
        compared = f"{count}, {side} the threshold"
        reason = f"{compared} of {settings.threshold}"
    else:
        opens = cost >= _exact_threshold(settings, context_length)
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


def say_unmatched(tools: Sequence[Tool], settings: Settings, sources: Collection[str]) -> None:
    """Say, once for each, which patterns of open tools match none of the tools.

    Presets are left out: they name what some host has, not what must be there. Nothing is said
    while a source has no tools: it may be about to list what a pattern names.

    Args:
        tools: All the tools there are, whoever may use them.
        settings: How to fold.
        sources: The names of all sources.
    """
    if not settings.core and not settings.never_defer:
        return
    if set(sources) - {tool.source for tool in tools}:
        return
    for key, patterns in (("core", settings.core), ("never_defer", settings.never_defer)):
        for pattern in patterns if tools else ():
            if pattern.startswith("preset:") or _LOOKED_AT.get(pattern):
                continue
            _LOOKED_AT.put(pattern, True)
            if not any(matches(tool, (pattern,)) for tool in tools):
                said = "`%s` names %r, which is none of the tools (%d)"
                _log.warning(said, key, pattern, len(tools))


def policies_of(tools: Sequence[Tool], settings: Settings) -> list[Policy]:
    """Return each tool's policy: the user's settings over its owner's word."""
    open_tools, always, defer = settings.open_tools, settings.always_defer, settings.defer
    if not open_tools and not always and not defer:
        return [tool.policy for tool in tools]

    never = settings.never_folded

    def policy(tool: Tool) -> Policy:
        may_fold = bool(defer) and matches(tool, defer) and not matches(tool, never)
        if not may_fold and matches(tool, open_tools):
            return "never"
        if matches(tool, always):
            return "always"
        return "automatic" if may_fold and tool.policy == "never" else tool.policy

    return [policy(tool) for tool in tools]


def threshold_tokens(settings: Settings, context_length: int | None) -> int:
    """Return the cost of deferrable tools from which on the bridge folds in `auto`."""
    return int(_exact_threshold(settings, context_length))


def _exact_threshold(settings: Settings, context_length: int | None) -> float:
    share = _share(settings, context_length)
    return min(share, settings.threshold_tokens) if settings.threshold_tokens else share


def _share(settings: Settings, context_length: int | None) -> float:
    """Return what the deferrable tools may take of the context window."""
    if settings.threshold_pct and context_length is None:
        return UNKNOWN_WINDOW_TOKENS
    return (context_length or 0) * settings.threshold_pct / 100


def threshold_text(settings: Settings, context_length: int | None, threshold: int) -> str:
    """Return the threshold in words."""
    if settings.threshold_pct == 0:
        return "0 (any will do)"
    if 0 < settings.threshold_tokens < _share(settings, context_length):
        return f"{threshold:,} (`threshold_tokens`)"
    if context_length is None:
        return f"{threshold:,} (the context window is not known)"
    return f"{threshold:,} ({settings.threshold_pct:g} % of {context_length:,})"
