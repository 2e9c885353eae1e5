"""The settings themselves: every key, its default, its range and its meaning.

This is the one declaration. The environment's names, the file's keys, the command line's
flags and the reference page are derived from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, get_args

from toolfold.errors import ConfigError
from toolfold.settings.check import Aliases, Kind, check

__all__ = ["PRESETS", "Reranker", "Settings", "StrategyName"]

StrategyName: TypeAlias = Literal["bridge", "stub", "reveal"]
"""The names of the strategies; `toolfold.strategy` says what each does."""

PRESETS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "hermes": (
            "terminal", "read_file", "write_file", "patch", "search_files", "todo", "memory",
            "browser_*", "web_search", "web_extract", "clarify", "execute_code",
            "delegate_task", "session_search", "send_message",
        ),
        "small": (
            "memory", "terminal", "session_search", "read_file", "write_file", "search_files",
            "patch", "todo", "clarify",
        ),
    }
)  # fmt: skip
"""Ready-made core lists. `preset:hermes` is the one of Hermes Agent, `preset:small` that part
of it which a model of a few billion parameters can handle."""


def _setting(default: Any, meaning: str, kind: Kind) -> Any:
    metadata = {"meaning": meaning, "kind": kind}
    return field(default=default, metadata=metadata)


def _check_fields(settings: Any, prefix: str) -> None:
    for item in fields(settings):
        kind: Kind = item.metadata["kind"]
        value = check(prefix + item.name, getattr(settings, item.name), kind)
        object.__setattr__(settings, item.name, value)


@dataclass(frozen=True, slots=True)
class Reranker:
    """An embedding endpoint that reorders what the embedded search found."""

    enabled: bool = _setting(False, "Whether to ask the endpoint at all.", Kind("boolean"))
    endpoint: str = _setting(
        "http://localhost:11434/v1/embeddings",
        "An OpenAI-compatible embeddings endpoint.",
        Kind("text"),
    )
    model: str = _setting("nomic-embed-text-v2-moe", "The model to ask for.", Kind("text"))
    mode: Literal["rerank", "rrf"] = _setting(
        "rerank",
        "`rerank` orders the shortlist by similarity; `rrf` fuses both orders by rank.",
        Kind("choice", choices=("rerank", "rrf")),
    )
    rrf_k: int = _setting(
        10, "The constant of reciprocal rank fusion.", Kind("integer", low=1, high=1000)
    )
    query_prefix: str = _setting("search_query: ", "Written before a query.", Kind("text"))
    doc_prefix: str = _setting("search_document: ", "Written before a tool's text.", Kind("text"))
    timeout: float = _setting(
        2.0, "Seconds after which the embedded order stands.", Kind("number", low=0.01, high=60)
    )
    api_key_env: str = _setting(
        "", "The environment variable that holds the endpoint's key, if it wants one.", Kind("text")
    )

    def __post_init__(self) -> None:
        _check_fields(self, "reranker.")


_NO_RERANKER = Reranker()


@dataclass(frozen=True, slots=True)
class Settings:
    """How to fold. Frozen and checked: a `Settings` that exists can be used."""

    enabled: Literal["auto", "on", "off"] = _setting(
        "auto",
        "`auto` folds above the threshold, `on` whenever something is deferrable, `off` never.",
        Kind("switch", choices=("auto", "on", "off")),
    )
    threshold_pct: float = _setting(
        10.0,
        "`auto`, bridge and reveal: the share of the context window, in per cent, that the "
        "deferrable schemas must take. 0 folds whenever something is deferrable; 0.5 suits a "
        "window of 1M.",
        Kind("number", low=0, high=100),
    )
    search_default_limit: int = _setting(
        5, "Hits for each need of a search that names no limit.", Kind("integer", low=1, high=50)
    )
    max_search_limit: int = _setting(
        20, "The most hits a search may ask for.", Kind("integer", low=1, high=50)
    )
    strategy: StrategyName = _setting(  # noqa: RUF009 - a name of literals
        "bridge",
        "`bridge` puts three tools in place of the folded ones; `stub` keeps names and "
        "descriptions and drops parameters until they are revealed; `reveal` adds what a search "
        "finds to the list, to be called directly.",
        Kind("choice", choices=get_args(StrategyName)),
    )
    core: tuple[str, ...] = _setting(
        (),
        "Tools that are never folded: names, patterns, `@toolset`, `preset:hermes`, "
        "`preset:small`.",
        Kind("names"),
    )
    never_defer: tuple[str, ...] = _setting(
        (), "More tools that are never folded, united with `core`.", Kind("names")
    )
    always_defer: tuple[str, ...] = _setting(
        (), "Tools that are folded below the threshold too.", Kind("names")
    )
    threshold: int = _setting(
        15,
        "`auto`, stub: the number of tools from which on to fold.",
        Kind("integer", low=1, high=100_000),
    )
    listing: Literal["off", "sources", "names"] = _setting(
        "sources",
        "What the search tool's description lists: nothing, the sources with counts, or the "
        "names by source.",
        Kind("choice", choices=("off", "sources", "names"), false="off"),
    )
    listing_max_tokens: int = _setting(
        2_000,
        "The budget of that list. Beyond it the largest sources shrink to a count first.",
        Kind("integer", low=50, high=60_000),
    )
    bridge_texts: Literal["full", "short"] = _setting(
        "full",
        "How much the bridge's tools, the stubs and the guidance say: `short` is for small models.",
        Kind("choice", choices=("full", "short")),
    )
    search_max_tokens: int = _setting(
        1_500, "The budget of one search's answer.", Kind("integer", low=100, high=60_000)
    )
    describe_max_tokens: int = _setting(
        8_000, "The budget of one describe's answer.", Kind("integer", low=200, high=200_000)
    )
    aliases: Mapping[str, tuple[str, ...]] = _setting(
        Aliases(), "More words under which a tool is found, by its name.", Kind("aliases")
    )
    ranker: str = _setting(
        "default",
        "How to rank: `hybrid` by words and meaning, `bm25` by words, `keyword` by words in the "
        "name; `default` is the strategy's own: `keyword` for stubs, `hybrid` for the others.",
        Kind("choice", choices=("default", "hybrid", "bm25", "keyword")),
    )
    relevance_floor: float = _setting(
        0.2,
        "How probable it must be, from 0 to 1, that the best hit serves a need; below, the need "
        "has no match. 0 keeps every hit. Rankers without probabilities pass it over.",
        Kind("number", low=0, high=1),
    )
    cache_dir: str = _setting(
        "auto",
        "Where the index of a catalog of 1,000 tools or more is kept between runs: a folder, "
        "`auto` for the user's own cache folder, or `off`.",
        Kind("text", false="off"),
    )
    reranker: Reranker = field(
        default=_NO_RERANKER,
        metadata={
            "meaning": "The endpoint reranker; a block of its own.",
            "kind": Kind("block", type=Reranker),
        },
    )

    def __post_init__(self) -> None:
        _check_fields(self, "")
        if self.search_default_limit > self.max_search_limit:
            raise ConfigError(
                f"`search_default_limit` is {self.search_default_limit}, above "
                f"`max_search_limit`, which is {self.max_search_limit}",
                hint="lower the first or raise the second",
            )

    @property
    def open_tools(self) -> tuple[str, ...]:
        """The patterns of the tools that are never folded, presets spelt out."""
        patterns: list[str] = []
        for pattern in (*self.core, *self.never_defer):
            preset = PRESETS.get(pattern.removeprefix("preset:"), ())
            patterns.extend(preset if pattern.startswith("preset:") else (pattern,))
        return tuple(patterns)
