"""What a client with a narrow token may try, and what befalls meanwhile what it may not see."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from support.servers.twins import CONTENT, VAULT
from toolfold.sources.mcp._exposed_names import exposed_name


def every_name() -> Iterator[tuple[str, Any]]:
    """Ask in every way for everything that there is or will be."""
    for name in (*TOOLS, *OWN_NAMES):
        yield _call("tool_search", {"query": name})
        yield _call("tool_describe", {"name": name})
        if _ends(name):
            yield _call("tool_call", {"name": name, "arguments": {}})
            yield _call(name, {"x": "a"})
    for word in WORDS:
        yield _call("tool_search", {"query": word, "limit": 50})
    for name in (*PROMPTS, *OWN_NAMES):
        yield "prompts/get", {"name": name}
        ref = {"type": "ref/prompt", "name": name}
        yield "completion/complete", {"ref": ref, "argument": {"name": "who", "value": "a"}}
    prefixes = ("", *(f"toolfold:{server}:" for server in SERVERS))
    for uri in [prefix + uri for prefix in prefixes for uri in (*URIS, *TEMPLATES)]:
        yield "resources/read", {"uri": uri}
        ref = {"type": "ref/resource", "uri": uri}
        yield "completion/complete", {"ref": ref, "argument": {"name": "name", "value": "a"}}
    for kind in ("tools", "prompts", "resources", "resources/templates"):
        yield f"{kind}/list", {}


def weighted(*choices: tuple[int, st.SearchStrategy[Any]]) -> st.SearchStrategy[Any]:
    """One of several, some more often; `one_of` itself leaves out what is there twice."""
    table = [made for weight, made in choices for _ in range(weight)]
    return st.integers(0, len(table) - 1).flatmap(table.__getitem__)


def _all(key: str, name: str) -> list[tuple[str, str]]:
    """Everything of a kind that there is or will be, with its server."""
    return [
        (server, record[name])
        for server, content in CONTENT.items()
        for records in (content.get(key, ()), content.get("later", {}).get(key, ()))
        for record in records
    ]


TOOLS = sorted({exposed_name(*pair) for pair in _all("tools", "name")})
OWN_NAMES = sorted({name for _, name in _all("tools", "name")})
PROMPTS = sorted({exposed_name(*pair) for pair in _all("prompts", "name")})
URIS = sorted({uri for _, uri in _all("resources", "uri")})
TEMPLATES = sorted({uri for _, uri in _all("resourceTemplates", "uriTemplate")})
SERVERS = [*CONTENT, "aaa_vault", "aaa%20vault"]
WORDS = sorted(
    {
        word
        for content in CONTENT.values()
        for records in (content["tools"], content.get("later", {}).get("tools", ()))
        for record in records
        for word in re.findall(r"[A-Za-z]+", f"{record['name']} {record['description']}")
    }
)
PATTERNS = [
    "", " ", "*", ".*", "aaa.*", "^aaa", "[a-z]+", "secret*", "@aaa vault", "@mixed", "vault|open",
    "source:aaa_vault", "server:mixed", "tools", "all tools", "|", "a|b|c", "%", "\\", "'", "\x00",
]  # fmt: skip

names = st.one_of(
    st.sampled_from([*TOOLS, *OWN_NAMES, *PROMPTS, "tool_search", "tool_call", "aaa_vault__x"]),
    st.builds(lambda n, k: n[:k], st.sampled_from(TOOLS), st.integers(1, 30)),
    st.builds(lambda n, s: n + s, st.sampled_from(TOOLS), st.text(max_size=3)),
    st.builds(str.upper, st.sampled_from(TOOLS)),
    st.builds(", ".join, st.lists(st.sampled_from(TOOLS), max_size=4)),
)
queries = st.one_of(
    st.builds(" ".join, st.lists(st.sampled_from(WORDS), min_size=1, max_size=5)),
    st.builds(" | ".join, st.lists(st.sampled_from([*WORDS, *TOOLS]), min_size=2, max_size=4)),
    names,
    st.sampled_from(PATTERNS),
    st.text(max_size=40),
    st.just(" ".join(WORDS) * 40),
)
addresses = st.one_of(
    st.sampled_from([*URIS, *TEMPLATES]),
    st.builds("toolfold:{}:{}".format, st.sampled_from(SERVERS), st.sampled_from(URIS)),
    st.builds(lambda t, n: t.replace("{name}", n), st.sampled_from(TEMPLATES), st.text(max_size=5)),
    st.text(max_size=20),
)
junk = st.one_of(
    st.none(), st.integers(), st.text(max_size=5), st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=5), st.integers(), max_size=2),
)  # fmt: skip
arguments = st.one_of(
    st.fixed_dictionaries({}, optional={"x": st.sampled_from([*URIS, "a"]), "amount": st.just(7)}),
    junk,
)


def _call(name: Any, given: Any) -> tuple[str, Any]:
    return "tools/call", {"name": name, "arguments": given}


def _ends(name: Any) -> bool:
    """Whether a tool answers by itself; others wait for what a fuzzer does not do."""
    return not any(word in str(name).lower() for word in ("wait", "ask"))


searches = st.builds(
    lambda query, more: _call("tool_search", {"query": query, **more}),
    st.one_of(queries, junk),
    st.fixed_dictionaries({}, optional={"limit": st.sampled_from([0, 1, 5, 50, 10**9, "many"])}),
)
describes = st.builds(lambda name: _call("tool_describe", {"name": name}), st.one_of(names, junk))
bridged = st.builds(
    lambda name, given: _call("tool_call", {"name": name, "arguments": given}),
    st.one_of(names.filter(_ends), junk),
    arguments,
)
direct = st.builds(_call, st.one_of(names.filter(_ends), junk), arguments)
lists = st.tuples(
    st.sampled_from(["tools", "prompts", "resources", "resources/templates"]).map("{}/list".format),
    st.one_of(st.none(), st.fixed_dictionaries({"cursor": st.text(max_size=5)}), junk),
)
reads = st.tuples(
    st.sampled_from(["resources/read"] * 3 + ["resources/subscribe", "resources/unsubscribe"]),
    st.fixed_dictionaries({"uri": st.one_of(addresses, junk)}),
)
gets = st.tuples(st.just("prompts/get"), st.fixed_dictionaries({"name": st.one_of(names, junk)}))
completes = st.builds(
    lambda ref, value: ("completion/complete", {"ref": ref, "argument": value}),
    st.one_of(
        st.fixed_dictionaries({"type": st.just("ref/prompt"), "name": names}),
        st.fixed_dictionaries({"type": st.just("ref/resource"), "uri": addresses}),
        junk,
    ),
    st.just({"name": "who", "value": "a"}),
)
odd = st.tuples(
    st.sampled_from([
        "ping", "server/discover", "tools/describe", "tools/search", "roots/list", "tasks/list",
        "sampling/createMessage", "elicitation/create", "logging/setLevel", "vault/open", "",
        "notifications/cancelled", "notifications/progress", "notifications/roots/list_changed",
    ]),
    st.one_of(
        junk,
        st.fixed_dictionaries({"requestId": st.integers(0, 50)}),
        st.fixed_dictionaries({"progressToken": st.integers(0, 9), "progress": st.just(1)}),
        st.fixed_dictionaries({"level": st.sampled_from(["debug", "error", "all"])}),
    ),
)  # fmt: skip
continuations = st.builds(
    lambda name, state: ("tools/call", {"name": name, "arguments": {}, "requestState": state}),
    names.filter(_ends),
    st.sampled_from(["toolfold-", "toolfold-" + "A" * 32, "st-1", ""]),
)
asked = weighted(
    (4, searches), (2, describes), (2, bridged), (2, direct), (2, lists), (4, reads), (2, gets),
    (2, completes), (1, odd), (1, continuations),
)  # fmt: skip
happened = st.one_of(
    st.tuples(st.just("speak"), st.sampled_from([VAULT, "mixed"])),
    st.tuples(st.just("kill"), st.just(VAULT)),
    st.tuples(
        st.just("use"),
        st.sampled_from([
            ("tools/call", {"name": exposed_name(VAULT, "zeppelin_link"), "arguments": {"x": u}})
            for u in (*URIS, "doc:///linked")
        ] + [
            ("tools/call", {"name": "tool_search", "arguments": {"query": "payroll zurich"}}),
            ("tools/call", {"name": "mixed__secret_audit", "arguments": {}}),
            ("prompts/get", {"name": "mixed__secret_plan"}),
            ("resources/read", {"uri": "mixed:///ledger"}),
            ("prompts/list", {}), ("resources/list", {}), ("tools/list", {}),
        ]),
    ),
)  # fmt: skip
steps = st.lists(
    weighted(
        (5, st.tuples(st.sampled_from(["old", "modern"]), asked)),
        (1, happened),
    ),
    min_size=5,
    max_size=25,
)
