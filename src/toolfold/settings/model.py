"""The settings themselves: every key, its default, its range and its meaning.

This is the one declaration. The environment's names, the file's keys, the command line's
flags and the reference page are derived from it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

from toolfold.errors import ConfigError
from toolfold.scope import matches
from toolfold.settings.declared import check_fields, setting
from toolfold.settings.frozen import FrozenMapping
from toolfold.tool import Tool

__all__ = ["PRESETS", "MemorySettings", "Reranker", "Settings", "StrategyName"]

StrategyName: TypeAlias = Literal["auto", "bridge", "native", "reveal", "stub", "hosted"]
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
        "claude-code": (
            "Agent", "AskUserQuestion", "Bash", "BashOutput", "Edit", "EnterPlanMode",
            "ExitPlanMode", "Glob", "Grep", "KillShell", "LSP", "MultiEdit", "NotebookEdit",
            "Read", "SendMessage", "Skill", "SlashCommand", "StructuredOutput", "Task*",
            "TodoWrite", "ToolSearch", "WebFetch", "WebSearch", "Write",
        ),
        "codex": (
            "apply_patch", "close_agent", "exec", "exec_command", "grep_files", "list_dir",
            "list_mcp_resource*", "local_shell", "read_file", "read_mcp_resource",
            "request_user_input", "resume_agent", "send_input", "shell", "shell_command",
            "spawn_agent", "update_plan", "view_image", "wait*", "web_search", "write_stdin",
        ),
        "opencode": (
            "apply_patch", "bash", "batch", "edit", "glob", "grep", "invalid", "list", "lsp*",
            "multiedit", "patch", "question", "read", "skill", "task", "todoread", "todowrite",
            "webfetch", "websearch", "write",
        ),
        "goose": (
            "developer__*", "dynamic_task__*", "extensionmanager__*", "final_output",
            "platform__*", "recipe__*", "subagent*", "todo__*",
        ),
    }
)  # fmt: skip
"""Ready-made core lists. `preset:hermes` is the one of Hermes Agent, `preset:small` that part
of it which a model of a few billion parameters can handle; the others are clients' own tools, which
the proxy keeps open where it knows the client."""


@dataclass(frozen=True, slots=True)
class Reranker:
    """An embedding endpoint that reorders what the embedded search found."""

    enabled: bool = setting(False, "Whether to ask the endpoint at all.", named=True)
    endpoint: str = setting(
        "http://localhost:11434/v1/embeddings",
        "An OpenAI-compatible embeddings endpoint.",
        named=True,
    )
    model: str = setting("nomic-embed-text-v2-moe", "The model to ask for.")
    mode: Literal["rerank", "rrf"] = setting(
        "rerank", "`rerank` orders the shortlist by similarity; `rrf` fuses both orders by rank."
    )
    rrf_k: int = setting(10, "The constant of reciprocal rank fusion.", low=1, high=1000)
    floor: float = setting(
        0.0,
        "How similar the endpoint must find its best hit, from 0 to 1, to lift a need over "
        "`relevance_floor` that the embedded search would have refused. 0: it only reorders.",
        low=0,
        high=1,
    )
    query_prefix: str = setting("search_query: ", "Written before a query.")
    doc_prefix: str = setting("search_document: ", "Written before a tool's text.")
    timeout: float = setting(
        2.0, "Seconds after which the embedded order stands.", low=0.01, high=60
    )
    api_key_env: str = setting(
        "", "The environment variable that holds the endpoint's key, if it wants one.", named=True
    )

    def __post_init__(self) -> None:
        check_fields(self, "reranker.")


@dataclass(frozen=True, slots=True)
class MemorySettings:
    """What searches led to, and what becomes of that."""

    enabled: Literal["auto", "on", "off"] = setting(
        "auto",
        "Whether what searches lead to is remembered and counts in later ones: `auto` in "
        "`toolfold serve`, `proxy` and `chat`, and not in a host of your own, which gives `fold` "
        "or `Agent` a memory itself; `off` nowhere.",
        false="off",
        named=True,
    )
    path: str = setting(
        "auto",
        "The file that it is kept in; `auto` is `memory.sqlite` in the folder for what is "
        "remembered between runs.",
        named=True,
    )
    share: Literal["auto", "principal", "all"] = setting(
        "auto",
        "Whose searches count: everybody's own (`principal`), or those of all who ask (`all`). "
        "`auto` is `principal` where there are tokens or an issuer of them, else `all`. Shared, "
        "another's calls may rank a tool of yours; they never show one that is not yours, nor a "
        "word of theirs.",
        named=True,
    )
    max_records: int = setting(
        20_000, "How many requests are kept; the oldest leave first.", low=10, high=1_000_000
    )
    max_age_days: int = setting(180, "For how many days a request is kept.", low=1, high=36_500)

    def __post_init__(self) -> None:
        check_fields(self, "memory.")


_NO_MEMORY = MemorySettings()
_NO_RERANKER = Reranker()
_PREFIX = re.compile(r"[A-Za-z0-9_-]{1,32}")


@dataclass(frozen=True, slots=True)
class Settings:
    """How to fold. Frozen and checked: a `Settings` that exists can be used."""

    enabled: Literal["auto", "on", "off"] = setting(
        "auto",
        "`auto` folds above the threshold, `on` whenever something is deferrable, `off` never.",
    )
    threshold_pct: float = setting(
        10.0,
        "`auto`, bridge and reveal: the share of the context window, in per cent, that the "
        "deferrable schemas must take. 0 folds whenever something is deferrable; 0.5 suits a "
        "window of 1M.",
        low=0,
        high=100,
    )
    threshold_tokens: int = setting(
        0,
        "`auto`, bridge and reveal: what the deferrable schemas may take at most, however large "
        "or unknown the context window is. 0 sets no such bound.",
        low=0,
        high=1_000_000,
    )
    search_default_limit: int = setting(
        5, "Hits for each need of a search that names no limit.", low=1, high=50
    )
    max_search_limit: int = setting(20, "The most hits a search may ask for.", low=1, high=50)
    strategy: StrategyName = setting(
        "auto",
        "`bridge` puts three tools in place of the folded ones; `native` lets the provider defer "
        "them, and our search says which are loaded; `auto` is `native` where the host names an "
        "API whose provider and model are known to take it, else `bridge`; `reveal` adds what a "
        "search finds to the list, to be called directly; `stub` keeps names and descriptions "
        "and drops parameters until they are revealed; `hosted` lets the provider search too.",
    )
    inline: bool = setting(
        False,
        "`native` on Anthropic's API: definitions come in behind what found them, in place of "
        "standing in the list, deferred. The provider calls it a beta.",
    )
    core: tuple[str, ...] = setting(
        (),
        "Tools that are never folded: names, patterns, `@toolset`, `preset:hermes`, "
        "`preset:small`, and what clients bring themselves: `preset:claude-code`, "
        "`preset:codex`, `preset:opencode`, `preset:goose`.",
        united=True,
    )
    never_defer: tuple[str, ...] = setting(
        (), "More tools that are never folded, united with `core`.", united=True
    )
    defer: tuple[str, ...] = setting(
        (),
        "Tools that may be folded though `core` names them or their owner keeps them open; "
        "`never_defer` wins over it.",
    )
    always_defer: tuple[str, ...] = setting((), "Tools that are folded below the threshold too.")
    threshold: int = setting(
        15,
        "`auto`, stub: the number of tools from which on to fold.",
        low=1,
        high=100_000,
    )
    listing: Literal["off", "sources", "names"] = setting(
        "sources",
        "What the search tool's description lists: nothing, the sources with counts, or the "
        "names by source. Hermes Agent's `auto` and `on` are `names`.",
        false="off",
        words={
            "auto": "names",
            "on": "names",
            "true": "names",
            "yes": "names",
            "1": "names",
            "no": "off",
            "false": "off",
            "0": "off",
        },
    )
    listing_max_tokens: int = setting(
        2_000,
        "The budget of that list. Beyond it the largest sources shrink to a count first.",
        low=50,
        high=60_000,
    )
    bridge_texts: Literal["full", "short"] = setting(
        "full",
        "How much the bridge's tools, the stubs and the guidance say: `short` is for small models.",
    )
    bridge_prefix: str = setting(
        "tool",
        "What the names of the bridge's tools begin with: `tool` makes `tool_search`, "
        "`tool_describe` and `tool_call`. For a list that has a tool of such a name itself.",
    )
    search_max_tokens: int = setting(
        1_500, "The budget of one search's answer.", low=100, high=60_000
    )
    describe_max_tokens: int = setting(
        8_000, "The budget of one describe's answer.", low=200, high=200_000
    )
    unknown_arguments: Literal["refuse", "pass"] = setting(
        "refuse",
        "What happens to a call of a folded tool with an argument that its schema does not name: "
        "it is refused with the nearest name, or the argument passes. A schema that says that "
        "there may be more, or names none, takes all.",
    )
    aliases: Mapping[str, tuple[str, ...]] = setting(
        FrozenMapping[tuple[str, ...]](), "More words under which a tool is found, by its name."
    )
    enriched: str = setting(
        "auto",
        "A file of requests and synonyms for tools, as `toolfold enrich` writes it: search takes "
        "them in, and nothing else does. `auto` is the file beside the configuration or the "
        "catalog, if there is one (`toolfold.words.jsonl`); `off` is none.",
        false="off",
        named=True,
    )
    annotations: Mapping[str, Mapping[str, bool]] = setting(
        FrozenMapping[FrozenMapping[bool]](),
        "What tools do, said over what they say themselves: by name, pattern or `@toolset`, "
        "MCP's `readOnlyHint`, `destructiveHint`, `idempotentHint`, `openWorldHint`. Of two "
        "patterns that match, the later wins.",
        named=True,
    )
    ranker: Literal["default", "hybrid", "bm25", "keyword"] = setting(
        "default",
        "How to rank: `hybrid` by words and meaning, `bm25` by words, `keyword` by words in the "
        "name; `default` is the strategy's own: `keyword` for stubs, `hybrid` for the others.",
    )
    relevance_floor: float = setting(
        0.2,
        "How probable it must be, from 0 to 1, that the best hit serves a need; below, the need "
        "has no match. 0 keeps every hit. Rankers without probabilities pass it over.",
        low=0,
        high=1,
    )
    prefetch: Literal["off", "sure", "always"] = setting(
        "sure",
        "When the likely tools are named behind the user's message, where the host sees it (agent "
        "and proxy), so that the model need not search: `sure` where a right one is very likely "
        "among them, `always` wherever a search finds something. It is for the bridge.",
        false="off",
    )
    cache_dir: str = setting(
        "auto",
        "Where the index of a catalog of 1,000 tools or more is kept between runs: a folder, "
        "`auto` for the user's own cache folder, or `off`.",
        false="off",
        named=True,
    )
    reranker: Reranker = setting(_NO_RERANKER, "The endpoint reranker; a block of its own.")
    memory: MemorySettings = setting(
        _NO_MEMORY, "What searches led to, as evidence for later ones; a block of its own."
    )

    def __post_init__(self) -> None:
        check_fields(self, "")
        if not _PREFIX.fullmatch(self.bridge_prefix):
            raise ConfigError(
                f"`bridge_prefix` is {self.bridge_prefix!r}",
                hint="write 1 to 32 letters, digits, `_` and `-`",
            )
        if self.search_default_limit > self.max_search_limit:
            raise ConfigError(
                f"`search_default_limit` is {self.search_default_limit}, above "
                f"`max_search_limit`, which is {self.max_search_limit}",
                hint="lower the first or raise the second",
            )

    def applied(self, tool: Tool) -> Tool:
        """Return a tool with the aliases and the hints that the settings have for it.

        Applied twice, it is the same tool.
        """
        if self.aliases:
            tool = tool.with_aliases(self.aliases)
        return tool.with_annotations(hints) if (hints := self.hints(tool)) else tool

    def hints(self, tool: Tool) -> Mapping[str, bool]:
        """Return what `annotations` says of a tool: the host's own words, not the tool's."""
        found: dict[str, bool] = {}
        for pattern, hints in self.annotations.items() if self.annotations else ():
            if matches(tool, (pattern,)):
                found |= hints
        return found

    @property
    def open_tools(self) -> tuple[str, ...]:
        """The patterns of the tools that stay open, presets spelt out."""
        return _spelt_out((*self.core, *self.never_defer))

    @property
    def never_folded(self) -> tuple[str, ...]:
        """The patterns of `never_defer`, presets spelt out: nothing wins over them."""
        return _spelt_out(self.never_defer)


def _spelt_out(patterns: Iterable[str]) -> tuple[str, ...]:
    spelt: list[str] = []
    for pattern in patterns:
        preset = PRESETS.get(pattern.removeprefix("preset:"), ())
        spelt.extend(preset if pattern.startswith("preset:") else (pattern,))
    return tuple(spelt)
