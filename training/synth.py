"""Requests made from tools: a description's first sentence, said the way a person might ask for it."""

from __future__ import annotations

import random
import re

from catalog import Tool
from text import lead, words

VERBS: dict[str, tuple[str, ...]] = {
    "get": (
        "show me {r}",
        "what is {r}?",
        "what are {r}?",
        "can you find {r}",
        "I need {r}",
        "give me {r}",
        "{r}",
        "I'd like to see {r}",
        "tell me {r}",
        "look up {r}",
        "where can I find {r}",
        "I want to know {r}",
        "could you check {r} for me?",
        "pull up {r}",
        "help me find {r}",
        "do you know {r}?",
        "is there {r}?",
    ),
    "create": (
        "make {r}",
        "I want to add {r}",
        "please set up {r}",
        "I need {r}",
        "start {r}",
        "create {r} for me",
        "can you generate {r}?",
        "put together {r}",
        "add {r}",
        "I'd like to register {r}",
        "build {r}",
    ),
    "update": (
        "change {r}",
        "can you update {r}",
        "I want to edit {r}",
        "adjust {r}",
        "fix {r}",
        "set {r}",
        "modify {r}",
    ),
    "delete": (
        "remove {r}",
        "get rid of {r}",
        "I don't need {r} anymore",
        "cancel {r}",
        "please delete {r}",
        "drop {r}",
    ),
    "compute": (
        "what is {r}?",
        "work out {r}",
        "how much is {r}?",
        "help me calculate {r}",
        "find {r}",
        "determine {r}",
        "I need to know {r}",
        "figure out {r}",
        "how do I compute {r}?",
    ),
    "": (
        "{v} {r}",
        "please {v} {r}",
        "can you {v} {r}?",
        "I'd like to {v} {r}",
        "help me {v} {r}",
        "I want to {v} {r}",
        "how can I {v} {r}?",
        "could you {v} {r} for me",
        "we need to {v} {r}",
    ),
}
_KIND = {
    **dict.fromkeys(
        """
    get retrieve fetch return list show find search lookup query read view obtain provide
    display describe
    """.split(),
        "get",
    ),
    **dict.fromkeys(
        ["create", "add", "insert", "make", "generate", "register", "post", "build", "new"],
        "create",
    ),
    **dict.fromkeys(["update", "modify", "edit", "change", "set", "patch", "replace"], "update"),
    **dict.fromkeys(["delete", "remove", "cancel", "drop", "destroy", "clear"], "delete"),
    **dict.fromkeys(["calculate", "compute", "evaluate", "determine", "estimate"], "compute"),
}
VALUES = (
    "42",
    "3.5",
    "2024-05-01",
    "John Smith",
    "Alice",
    "New York",
    "Paris",
    "Tokyo",
    "London",
    "USD",
    "EUR",
    "Apple",
    "Tesla",
    "AB12345",
    "rOBhSVKG",
    "user_123",
    "true",
    "high",
    "medium",
    "weekly",
    "next Monday",
    "tomorrow at 9 am",
    "10 km",
    "blue",
    "English",
    "Spanish",
    "example.com",
    "jane@example.com",
    "my project",
    "Germany",
    "California",
    "last month",
    "5 people",
    "100 dollars",
    "Inception",
    "report.pdf",
    "v2",
    "555-0100",
    "Main Street",
    "Brazil",
    "pizza",
    "Taylor Swift",
    "Lakers",
    "daily",
    "large",
    "Q3 2023",
)
_PREAMBLE = re.compile(
    r"^(this (endpoint|api|tool|function|method|operation|call)?\s*(will|can|is used to|allows you to|lets you|enables you to)?"
    r"|use this \w+ to|(a|the) tool (that|to|for)|allows? (you )?to|api to|endpoint to|used to|tool that)\s+",
    re.IGNORECASE,
)
_VAGUE = re.compile(
    r"\b(a specific|the specified|specified|specific|a given|the given|given|a particular|an existing)\b"
)


def base(verb: str) -> str:
    """Undo the third person of a verb: retrieves, searches, identifies."""
    if verb.endswith("ies") and len(verb) > 4:
        return verb[:-3] + "y"
    if verb.endswith(("ches", "shes", "sses", "xes")):
        return verb[:-2]
    return verb[:-1] if verb.endswith("s") and not verb.endswith("ss") and len(verb) > 3 else verb


def requests(
    tool: Tool, synonyms: dict[str, list[str]], random_: random.Random, count: int
) -> list[str]:
    """Make `count` requests that the tool serves."""
    sentence, rest_of = lead(tool.description)
    sentence = _PREAMBLE.sub("", sentence.strip().rstrip(".:"))
    tokens = sentence.split()
    named = words(tool.name)
    found = []
    for _ in range(count):
        draw = random_.random()
        if draw < 0.12 and named:
            verb, rest = base(named[0]), " ".join(named[1:])
        elif draw < 0.22 and len(words(rest_of)) > 6:
            verb, rest = "", " ".join(rest_of.split()[:24])
        else:
            verb, rest = (base(tokens[0].lower()) if tokens else ""), " ".join(tokens[1:])
        kind = _KIND.get(verb, "")
        replacement = random_.choice(("my", "this", "the", "a", ""))
        rest = _VAGUE.sub(replacement, rest)
        if tool.parameters and random_.random() < 0.15:
            rest += (
                " "
                + random_.choice(("with", "by", "for", "using"))
                + " "
                + " ".join(words(random_.choice(tool.parameters)[0]))
            )
        if tool.parameters and random_.random() < 0.3:
            for name, _ in random_.sample(
                tool.parameters, min(len(tool.parameters), random_.choice((1, 1, 2)))
            ):
                rest += random_.choice(
                    (", {p} {x}", " with {p} {x}", " for {x}", ' where the {p} is "{x}"')
                ).format(p=" ".join(words(name)), x=random_.choice(VALUES))
        template = random_.choice(VERBS[kind] if verb or kind else ("{r}",))
        asked = template.format(v=verb, r=rest).split()
        kept = []
        for word in asked[:40]:
            if random_.random() < 0.10:
                continue
            options = synonyms.get(word.lower())
            kept.append(random_.choice(options) if options and random_.random() < 0.15 else word)
        if tool.server and random_.random() < 0.2:
            kept += ["on", tool.server]
        found.append(" ".join(kept) or sentence)
    return found


JOINTS = (
    " and ",
    ". Also, ",
    ". Then ",
    " and then ",
    "; ",
    ". ",
    ". Additionally, ",
    ", and also ",
    ". After that, ",
    "? ",
)


def joined(requests_: list[str], random_: random.Random) -> str:
    """Put several requests into one."""
    text = requests_[0].rstrip(" .?!")
    for other in requests_[1:]:
        text += random_.choice(JOINTS) + other.rstrip(" .?!")
    return text + random_.choice((".", "?", ""))


def first_senses(glosses: list[list[str]]) -> dict[str, list[str]]:
    """Map a word to its single-word synonyms, for words with few senses."""
    senses: dict[str, list[list[str]]] = {}
    for lemmas, _, _ in glosses:
        members = [m for m in lemmas.lower().split(", ") if m.isalpha()]
        for member in members:
            senses.setdefault(member, []).append([m for m in members if m != member])
    return {
        w: [m for sense in s for m in sense]
        for w, s in senses.items()
        if len(w) > 3 and len(s) <= 2 and any(s)
    }
