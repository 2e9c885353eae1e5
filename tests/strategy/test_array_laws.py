"""What holds for the array of tools over whole conversations, whatever happens in them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from support.judges import judged_anthropic, judged_openai
from support.talks import CHAT, CLAUDE, GPT, INLINE, NANO, ROUTED, Model, Talk, references
from toolfold import Settings, Tool

SUBJECTS = ("mail", "room", "flight", "invoice", "photo", "song", "stock", "recipe", "tide")
VERBS = ("book", "send", "list", "delete")
NAMES = [f"{verb}_{subject}" for verb in VERBS for subject in SUBJECTS]
MODELS = (CLAUDE, INLINE, GPT, NANO, ROUTED, CHAT)
MARK = {"type": "ephemeral"}


def tool(name: str, version: int = 0, *, marked: bool = False) -> Tool:
    verb, subject = name.split("_")
    takes = {"type": "object", "properties": {f"v{version}": {"type": "string"}}}
    text = f"{verb.title()} a {subject}." + " In full." * version
    if not marked:
        return Tool(name, text, takes)
    raw = {"name": name, "description": text, "input_schema": takes, "cache_control": MARK}
    return Tool(name, text, takes, shape="anthropic", raw=raw)


PLACES = st.integers(0, 40)
KINDS: dict[str, st.SearchStrategy[Any]] = {
    "search": PLACES,
    "call": PLACES,
    "wrong": st.sampled_from(["nobody", "tool_search", "quark"]),
    "add": st.sampled_from(NAMES),
    "drop": PLACES,
    "change": PLACES,
    "switch": st.sampled_from([CLAUDE, GPT, *MODELS]),
    "refuse": st.none(),
    "compact": st.none(),
}
STEPS = st.sampled_from(["search", "search", "search", "call", "call", "call", *KINDS]).flatmap(
    lambda kind: st.tuples(st.just(kind), KINDS[kind])
)


@dataclass
class Watched:
    """A conversation whose every request is compared with the one before."""

    talk: Talk
    breaks: int = 0
    array: list[str] | None = None
    kind: tuple[Any, ...] = ()
    live: list[str] = field(default_factory=list)
    parts: list[list[Any]] = field(default_factory=list)

    def look(self) -> None:
        talk, folded = self.talk, self.talk.folded
        if talk.model.api is None:
            self.parts, self.kind = [], (*self.kind[:2], None)
            return
        array = [json.dumps(entry) for entry in folded.tools]
        live = [f"{own.name} {own.digest}" for own in talk.tools]
        shown = folded.report.strategy if folded.active else ""
        kind = (talk.model.api, shown, folded.found_form)
        if self.array is not None:
            self.breaks += array != self.array
            if folded.active and kind[:2] == self.kind[:2]:
                assert array[: len(self.array)] == self.array
            if live == self.live and kind == self.kind:
                assert array == self.array
        assert folded.report.breaks == talk.session.breaks == self.breaks
        check_request(talk.request(), talk.model)
        self.compare_parts(kind)
        self.array, self.kind, self.live = array, kind, live

    def compare_parts(self, kind: tuple[Any, ...]) -> None:
        """Nothing that was said is said otherwise, but what a search answered in words."""
        parts = self.talk.parts()
        if kind == self.kind:
            for turn, old, new in zip([None, *self.talk.turns], self.parts, parts, strict=False):
                if turn is None or turn.found is None or not is_in_words(new):
                    assert old == new
        self.parts = parts


def is_in_words(part: list[Any]) -> bool:
    written = json.dumps(part)
    return not any(word in written for word in ("tool_reference", "tool_addition", '"strict"'))


def check_request(request: dict[str, Any], model: Model) -> None:
    tools = request["tools"]
    deferred = [entry for entry in tools if entry.get("defer_loading")]
    assert not any("cache_control" in entry for entry in deferred)
    assert sum("cache_control" in entry for entry in tools) <= 4
    assert not tools or len(deferred) < len(tools)
    names = [entry.get("name") for entry in tools if entry.get("name")]
    assert len(set(names)) == len(names)
    if model.api == "anthropic-messages":
        assert set(references(request["messages"])) <= {entry["name"] for entry in deferred}
    else:
        check_calls(request, set(names))


def judge(talk: Talk) -> None:
    if talk.model.api == "anthropic-messages":
        judged_anthropic(talk.request(), beta=talk.model.inline)
    elif talk.model.api is not None:
        judged_openai(talk.request())


def check_calls(request: dict[str, Any], listed: set[str]) -> None:
    """Every replayed call is of a tool that is listed, or says in which namespace it was loaded."""
    loaded: set[str] = set()
    is_deferring = any(entry["type"] == "tool_search" for entry in request["tools"])
    for item in request["input"]:
        if item.get("type") == "tool_search_output":
            loaded |= {entry["name"] for entry in item["tools"]}
        elif item.get("type") == "function_call" and item["name"] != "nobody" and is_deferring:
            if item["name"] in listed:
                assert "namespace" not in item
            else:
                assert item["namespace"] == item["name"]
                assert item["name"] in loaded


def call_found(talk: Talk, about: int) -> None:
    """Let the model call something that it knows: by its name, if that is defined for it."""
    found = [name for turn in talk.turns for name in turn.found or ()]
    if talk.folded.found_form != "text":
        found = [own.name for own in talk.folded.replayed("", found).found]
    if not found:
        return
    name = found[about % len(found)]
    if talk.folded.found_form == "text" and talk.folded.active:
        talk.call("tool_call", name=name, arguments={})
    else:
        talk.call(name)


def change_list(talk: Talk, kind: str, about: Any) -> None:
    if kind == "add":
        if about not in {own.name for own in talk.tools}:
            talk.tools.append(tool(about))
    elif talk.tools:
        place = about % len(talk.tools)
        changed = [tool(talk.tools[place].name, about + 1)] if kind == "change" else []
        talk.tools[place : place + 1] = changed


def step(talk: Talk, kind: str, about: Any) -> None:
    match kind:
        case "search" if talk.folded.active and talk.tools:
            name = talk.tools[about % len(talk.tools)].name
            talk.call("tool_search", query=name if about % 3 else name.split("_")[1])
        case "call":
            call_found(talk, about)
        case "wrong" if talk.folded.active:
            if about == "quark":
                talk.call("tool_search", query=about)
            else:
                talk.call(about)
        case "switch":
            talk.model = about
        case "refuse" if talk.folded.is_native:
            talk.refuse()
        case "compact":
            talk.compact()
        case "add" | "drop" | "change":
            change_list(talk, kind, about)
        case _:
            pass
    talk.assemble()


@given(
    start=st.lists(st.sampled_from(NAMES), min_size=1, max_size=12, unique=True),
    marked=st.integers(0, 7),
    first=st.sampled_from([CLAUDE, GPT, *MODELS]),
    gate=st.sampled_from([("on", None), ("on", None), ("auto", 1_000)]),
    core=st.sampled_from([(), (), ("book_*",)]),
    steps=st.lists(STEPS, min_size=12, max_size=20),
)
def test_a_conversation_of_twenty_turns_keeps_the_laws(
    start: list[str],
    marked: int,
    first: Model,
    gate: tuple[Any, int | None],
    core: tuple[str, ...],
    steps: list[tuple[str, Any]],
) -> None:
    chosen = Settings(enabled=gate[0], core=core, ranker="bm25", cache_dir="off")
    tools = [tool(name, marked=i < marked) for i, name in enumerate(start)]
    watched = Watched(Talk(tools, chosen, first, gate[1]))
    watched.look()
    for kind, about in steps:
        if kind == "switch":
            judge(watched.talk)
        step(watched.talk, kind, about)
        watched.look()
    judge(watched.talk)
