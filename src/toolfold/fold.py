"""Fold a list of tools into what the model sees.

`fold` is pure: tools, settings, scope and session in, a `Folded` out. Below the gate the
tools go out as they came in; above it the strategy says which leave, lose their parameters
or come in. The same input gives the same bytes.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, get_args

from toolfold import prompts
from toolfold._clashes import Renamed, renamed_entries, settled
from toolfold._costs import list_tokens, tool_costs
from toolfold._intake import intake
from toolfold.bridge import Bridge
from toolfold.catalog import Catalog
from toolfold.errors import ConfigError
from toolfold.folded import Assembly, Folded, Report
from toolfold.gate import GateVerdict, judge, say_unmatched
from toolfold.scope import EVERYTHING, Scope
from toolfold.search import Ranker, chosen_ranker
from toolfold.search.memory import SearchMemory
from toolfold.session import Session
from toolfold.settings import Settings
from toolfold.settings.check import suggestion
from toolfold.settings.model import StrategyName
from toolfold.strategy import STRATEGIES, strategy_of
from toolfold.tokens import TokenCounter, context_window, estimate
from toolfold.tool import Json, ProviderApi, Shape, Tool, is_mapping
from toolfold.wire import Entry
from toolfold.wire.assemble import default_shape

if TYPE_CHECKING:
    from toolfold.providers import Provider

__all__ = ["Folded", "Report", "fold"]

_log = logging.getLogger(__name__)


def fold(
    tools: Iterable[object] | Catalog,
    *,
    context_length: int | None = None,
    core: Iterable[str] = (),
    settings: Settings | None = None,
    scope: Scope = EVERYTHING,
    configured: Iterable[str] = (),
    session: Session | None = None,
    model: str | None = None,
    api: ProviderApi | None = None,
    host: str | None = None,
    shape: Shape | None = None,
    ranker: Ranker | None = None,
    count: TokenCounter = estimate,
    memory: SearchMemory | None = None,
) -> Folded:
    """Fold a list of tools into what the model sees.

    Example:
        folded = fold(tools, context_length=200_000, core={"read_file", "terminal"})
        reply = client.chat.completions.create(tools=folded.tools, ...)

    Args:
        tools: Tools in any wire shape, `Tool`s and functions, mixed; or a `Catalog`.
        context_length: The model's context window, in tokens.
        core: Names or patterns of tools that stay open, beside those of the settings.
        settings: How to fold. The defaults fold above 10 % of the window.
        scope: Which of the tools exist for this caller.
        configured: The names of all sources that there are for anybody, of those too that have
            no tool in the list: where that is one, a tool may be called by its bare name.
        session: The conversation so far.
        model: The model's name: its window is looked up where `context_length` is not given.
        api: The provider's API that the request is written for. It is a promise: that what was
            found goes back as `Folded.found_form` says, and that `Folded.session` is kept. The
            array of tools then only grows at its end, and `auto` may let the provider defer.
        host: The host, or the address, that the request goes to. Without it, or where it is not
            known to defer tools for this model, `auto` is the bridge.
        shape: The wire shape to write; by default the one in which the tools came.
        ranker: How to rank, in place of the settings' choice.
        count: Counts the tokens of a text, in place of characters over four.
        memory: What earlier searches led to: evidence in what searches find, and in nothing else.

    Raises:
        InvalidToolError: An entry is not a tool.
        NameClashError: Two tools without a source have one name, or one of them has the name
            of a bridge tool where something is folded.
        ConfigError: The settings cannot be used.
    """
    settings = _checked_settings(settings)
    _check_arguments(context_length, scope, shape)
    provider = None if api is None else _provider(api, host, model, shape)
    if provider is not None:
        shape = provider.shape
        tools = tools if isinstance(tools, Catalog) else list(tools)
    if core:
        settings = replace(settings, core=(*settings.core, *_names(core)))
    session = session or Session()
    context_length = context_length or context_window(model)
    lenient = settings.enabled == "off"
    entries, sources = intake(tools, settings, scope, shape, lenient=lenient)
    sources |= tools.configured if isinstance(tools, Catalog) else frozenset()
    sources |= frozenset(configured)
    out = shape or default_shape(entries)
    came = _tools_of(entries)
    bridge_names = prompts.bridge_names(settings.bridge_prefix)
    # A list with a bridge in it is folded already: that bridge is its own host's to answer.
    is_folded = prompts.holds_bridge(came, bridge_names) or (
        provider is not None and any(_is_tool_search(entry) for entry in entries)
    )
    name = _strategy_name(settings, provider, session, came)
    stays = provider is not None and session.sent is not None and bool(session.sent.records)
    if scope.holds_everything:
        say_unmatched(came, settings, sources)
    costs, tokens_before = tool_costs(entries, out, count), list_tokens(entries, out, count)
    served_as = settled(came, lenient=lenient)
    served = renamed_entries(entries, served_as)
    offered = _tools_of(served) if served_as else came
    verdict = judge(
        offered,
        costs,
        settings,
        context_length,
        is_folded=is_folded,
        stays=stays,
        whole=tokens_before,
    )
    if verdict.folded and not {tool.wire_name for tool in came}.isdisjoint(bridge_names.all):
        served_as = settled(came, bridge_names.all)
        served = renamed_entries(entries, served_as)
        offered = _tools_of(served)
        verdict = judge(offered, costs, settings, context_length, stays=stays, whole=tokens_before)
    stays = stays and settings.enabled != "off" and not is_folded
    if stays:
        verdict = _still_deferred(verdict, offered, session, (api, name))

    catalog = _catalog(offered, sources, lenient=lenient)
    strategy = strategy_of(settings, api, name)
    # A conversation that was folded stays so, even while nothing is left to fold.
    active = bool(verdict.folded) or stays
    if active and strategy.reveals and model:
        from toolfold.strategy.choice import warn_of_binding

        warn_of_binding(name, model)

    def anew(session: Session) -> Folded:
        return fold(
            tools,
            context_length=context_length,
            settings=settings,
            scope=scope,
            configured=configured,
            session=session,
            model=model,
            api=api,
            host=host,
            ranker=ranker,
            count=count,
            memory=memory,
        )

    assembly = Assembly(
        entries=served if active else entries,
        shape=out,
        strategy=name,
        provider=provider,
        anew=anew,
        verdict=verdict,
        context_length=context_length,
        tokens_before=tokens_before,
        tools_before=len(came),
        renamed=tuple(
            Renamed(came[i].source or "", came[i].name, name) for i, name in served_as.items()
        ),
        bridge=Bridge(
            catalog,
            _folded(catalog, verdict.folded),
            settings,
            strategy if active else None,
            ranker or chosen_ranker(settings, strategy.ranker),
            count,
            {name: came[i] for i, name in served_as.items()},
            memory=memory,
        ),
    )
    folded = assembly.shown(session)
    if folded.active:
        in_tokens = strategy.gate == "tokens"
        _log.info(
            "folding is active: %d kept, %d deferred (~%d tokens, threshold ~%d%s)",
            folded.report.kept,
            folded.report.deferred,
            folded.report.deferrable_tokens,
            folded.report.threshold_tokens if in_tokens else settings.threshold,
            "" if in_tokens else " tools",
        )
    return folded


def _provider(
    api: ProviderApi, host: str | None, model: str | None, shape: Shape | None
) -> Provider:
    from toolfold.providers import SHAPES, Provider

    if api not in SHAPES:
        raise ConfigError(f"`api` is {api!r}", hint=suggestion(str(api), list(SHAPES), what="APIs"))
    if shape not in (None, SHAPES[api]):
        raise ConfigError(
            f"`shape` is {shape!r}, and {api} takes tools as {SHAPES[api]!r}",
            hint="leave `shape` out",
        )
    return Provider.of(api, host, model)


def _strategy_name(
    settings: Settings, provider: Provider | None, session: Session, tools: Sequence[Tool]
) -> StrategyName:
    """Return the strategy that is used; who names no API does not pay for asking which."""
    if provider is None and (settings.strategy == "auto" or settings.strategy in STRATEGIES):
        return "bridge" if settings.strategy == "auto" else settings.strategy
    from toolfold.strategy.choice import chosen_strategy

    return chosen_strategy(settings, provider, session, tools)


def _still_deferred(
    verdict: GateVerdict, tools: Sequence[Tool], session: Session, now: tuple[str | None, str]
) -> GateVerdict:
    """Return a verdict that folds what the conversation's array defers, and goes on deferring.

    Listed as core by now, such a tool could only be reached by being found.

    Args:
        verdict: What folds by itself.
        tools: The tools of the scope.
        session: The conversation so far.
        now: The API and the strategy of this request.
    """
    sent = session.sent
    if sent is None or (sent.api, sent.strategy) != now or not sent.deferred:
        return verdict
    still = frozenset(tool.name for tool in tools if tool.wire_name in sent.deferred)
    return verdict if still <= verdict.folded else verdict._replace(folded=verdict.folded | still)


def _is_tool_search(entry: Entry) -> bool:
    """Whether an entry is a provider's own search over tools that it defers."""
    kind: Json = entry.raw.get("type") if is_mapping(entry.raw) and not entry.tools else None
    return isinstance(kind, str) and kind.startswith("tool_search")


def _checked_settings(settings: object) -> Settings:
    if settings is None:
        return Settings()
    if not isinstance(settings, Settings):
        raise ConfigError(
            f"`settings` is a {type(settings).__name__}",
            hint="write `Settings(threshold_pct=5)`, or read a file with `load_settings`",
        )
    return settings


def _check_arguments(context_length: object, scope: object, shape: object) -> None:
    if context_length is not None and not _is_count(context_length):
        raise ConfigError(
            f"`context_length` is {context_length!r}", hint="write a number of tokens, as 128_000"
        )
    if not isinstance(scope, Scope):
        raise ConfigError(f"`scope` is {scope!r}", hint='write `Scope(("github__*",))`')
    shapes = list(get_args(Shape))
    if shape is not None and shape not in shapes:
        hint = suggestion(str(shape), shapes, what="shapes")
        raise ConfigError(f"`shape` is {shape!r}", hint=hint)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _names(names: Iterable[str]) -> tuple[str, ...]:
    # A string is a sequence of one-letter names, and a set has no order of its own.
    if isinstance(names, str):
        raise ConfigError(f"`core` is the text {names!r}, not a list", hint=f"write [{names!r}]")
    return tuple(sorted(names) if isinstance(names, set | frozenset) else names)


def _tools_of(entries: Sequence[Entry]) -> tuple[Tool, ...]:
    return tuple(tool for entry in entries for tool in entry.tools)


def _catalog(tools: Sequence[Tool], sources: Iterable[str], *, lenient: bool) -> Catalog:
    unique = {tool.wire_name: tool for tool in tools}.values() if lenient else tools
    return Catalog(unique, configured=sources)


def _folded(catalog: Catalog, names: frozenset[str]) -> Catalog:
    """Return the part of a catalog that is folded; often, all of it."""
    if len(names) == len(catalog):
        return catalog
    return Catalog((tool for tool in catalog if tool.name in names), configured=catalog.configured)
