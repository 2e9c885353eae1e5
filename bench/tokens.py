"""Exact token counts by o200k_base, without a network, and what whole conversations cost by them.

`tiktoken` fetches its ranks on first use. The `litellm` package carries them in one of its folders
under the very names that tiktoken's cache uses, so pointing `TIKTOKEN_CACHE_DIR` there is enough.
litellm is looked up and never imported: its import takes seconds.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from toolfold import Answer, Folded, Settings, Tool, fold
from toolfold.tokens import estimate
from toolfold.tool import ProviderApi

__all__ = ["conversation_rows", "exact_counter", "why_not_exact"]

# The SHA-1 of the address that tiktoken loads o200k_base from: its file name in a cache.
_O200K = "fb374d419588a4632f3f557e76b4b70aebbca790"


def why_not_exact() -> str | None:
    """Return why there is no exact counter here, or None where there is one."""
    if find_spec("tiktoken") is None:
        return "no exact token counts: tiktoken is not installed"
    if _ranks() is None:
        return (
            "no exact token counts: the o200k_base ranks are not on this machine; install "
            "litellm, which carries them, or point TIKTOKEN_CACHE_DIR at a folder that does"
        )
    return None


def exact_counter() -> Callable[[str], int] | None:
    """Return a function that counts a text's tokens, or None, with the reason on stderr."""
    reason = why_not_exact()
    ranks = _ranks()
    if reason or ranks is None:
        sys.stderr.write(f"{reason}\n")
        return None
    import tiktoken

    before = os.environ.get("TIKTOKEN_CACHE_DIR")
    os.environ["TIKTOKEN_CACHE_DIR"] = str(ranks)
    try:
        encoding = tiktoken.get_encoding("o200k_base")
    finally:
        # Left set, a download of other ranks would be written into litellm's folder.
        del os.environ["TIKTOKEN_CACHE_DIR"]
        if before is not None:
            os.environ["TIKTOKEN_CACHE_DIR"] = before
    # Text that looks like a control token is counted as the plain text it is.
    return lambda text: len(encoding.encode(text, disallowed_special=()))


def _ranks() -> Path | None:
    """Return the folder that holds the ranks: the cache that is set, else litellm's."""
    named = os.environ.get("TIKTOKEN_CACHE_DIR")
    litellm = find_spec("litellm")
    places = (litellm.submodule_search_locations if litellm else None) or ()
    folders = [Path(named)] if named else []
    folders += [Path(place) / "litellm_core_utils" / "tokenizers" for place in places]
    return next((folder for folder in folders if (folder / _O200K).is_file()), None)


# ---- a conversation of ten messages, each of which needs one tool

_TURNS = 10
_CLAUDE: tuple[ProviderApi, str, str] = (
    "anthropic-messages",
    "api.anthropic.com",
    "claude-sonnet-5-5",
)
_GPT: tuple[ProviderApi, str, str] = ("openai-responses", "api.openai.com", "gpt-6-sol")
_WAYS: dict[str, tuple[Settings, tuple[ProviderApi, str, str]]] = {
    "unfolded, Anthropic": (Settings(enabled="off"), _CLAUDE),
    "unfolded, OpenAI": (Settings(enabled="off"), _GPT),
    "bridge, Anthropic": (Settings(enabled="on", strategy="bridge"), _CLAUDE),
    "bridge, OpenAI": (Settings(enabled="on", strategy="bridge"), _GPT),
    "native, Anthropic": (Settings(enabled="on"), _CLAUDE),
    "native, Anthropic inline": (Settings(enabled="on", inline=True), _CLAUDE),
    "native, OpenAI": (Settings(enabled="on"), _GPT),
}
_RESULT = "Done. " + "One line of what the tool returned, as such lines are. " * 4
_REPLY = "That is done; here is what came of it, in a sentence or two for the person who asked."


def conversation_rows(
    records: Sequence[dict[str, Any]], count: Callable[[str], int] | None
) -> list[dict[str, Any]]:
    """Return what a conversation of ten messages costs to read, one row for each way to fold.

    Every message needs one tool, evenly spread over the catalog; the model asks for it in words
    of its description, takes the first hit, and answers. What is billed of a request: the tools
    that are not deferred, what a search loaded (once, from then on), the guidance and the
    messages. Tokens are those of every request together, before any cache, and of the last.

    Args:
        records: The catalog.
        count: Counts tokens; characters over four without it.
    """
    rows = [_row(name, records, count or estimate) for name in _WAYS]
    whole = {row["what"].split()[-1]: row["read in all"] for row in rows[:2]}
    for row in rows[2:]:
        provider = "OpenAI" if "OpenAI" in row["what"] else "Anthropic"
        row["saved"] = f"{100 * (1 - row['read in all'] / whole[provider]):.1f} %"
    return rows


def _row(
    name: str, records: Sequence[dict[str, Any]], count: Callable[[str], int]
) -> dict[str, Any]:
    settings, (api, host, model) = _WAYS[name]
    folded = fold(records, settings=settings, api=api, host=host, model=model)
    talk = _Talk(folded, count)
    tools = folded.catalog.tools
    for number in range(_TURNS):
        talk.turn(tools[(2 * number + 1) * len(tools) // (2 * _TURNS)])
    return {
        "what": name,
        "round trips": talk.trips,
        "first request": talk.sizes[0],
        "last request": talk.sizes[-1],
        "read in all": sum(talk.sizes),
    }


@dataclass
class _Talk:
    """A conversation, and what each of its requests was billed."""

    folded: Folded
    count: Callable[[str], int]
    said: list[Any] = field(default_factory=list[Any])
    sizes: list[int] = field(default_factory=list[int])
    loaded: set[str] = field(default_factory=set[str])
    trips: int = 0

    def turn(self, tool: Tool) -> None:
        """Hold one message: search where that is needed, call, answer."""
        words = " ".join(tool.description.split()[:8]) or tool.name
        self.said.append({"role": "user", "content": f"Please: {words}"})
        if self.folded.active:
            self.search(words)
        arguments = dict.fromkeys(tool.parameters.get("required", ()), "example")
        name: str = tool.wire_name
        if self.folded.active and self.folded.found_form == "text":
            name, arguments = "tool_call", {"name": name, "arguments": arguments}
        self.asked()
        namespace = self.folded.namespace(name)
        call = {"name": name, "arguments": arguments, **({"namespace": name} if namespace else {})}
        self.said += [call, {"result": _RESULT}]
        self.asked()
        self.said.append({"role": "assistant", "content": _REPLY})

    def search(self, words: str) -> None:
        """Search, and hear what was found as the provider is told of it."""
        self.asked()
        query = {"query": words}
        self.said.append({"name": "tool_search", "arguments": query})
        answer = self.folded.resolve("tool_search", query)
        assert isinstance(answer, Answer)
        self.folded = self.folded.for_session(answer.session)
        match self.folded.found_form:
            case "tool_reference":
                self.said += answer.result_content()
                self._load(answer, "anthropic-messages")
            case "tool_search_output":
                self.said.append({"type": "tool_search_output", "call_id": "call_1"})
                self._load(answer, "openai-responses")
            case "tool_addition":
                text, message = answer.additions(self.loaded)
                self.said += [{"result": text}, *([message] if message else [])]
                self.loaded |= {tool.wire_name for tool in answer.found}
            case _:
                self.said.append({"result": answer.text})

    def _load(self, answer: Answer, api: ProviderApi) -> None:
        """Add the definitions of what was found, where they are not there yet."""
        from toolfold.wire.deferred import definition

        new = [tool for tool in answer.found if tool.wire_name not in self.loaded]
        self.said += [definition(tool, api) for tool in new]
        self.loaded |= {tool.wire_name for tool in new}

    def asked(self) -> None:
        """Send a request."""
        seen = [tool for tool in self.folded.tools if not tool.get("defer_loading")]
        self.trips += 1
        self.sizes.append(self.count(_text([seen, self.folded.guidance or "", self.said])))


def _text(parts: Iterable[Any]) -> str:
    return "\n".join(
        part
        if isinstance(part, str)
        else json.dumps(part, ensure_ascii=False, separators=(",", ":"))
        for part in parts
    )
