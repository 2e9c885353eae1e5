"""A client's own search and deferral, said so that any upstream understands it.

Where the upstream defers tools itself, such a request passes as it is. Elsewhere deferred
definitions become plain tools, references and the provider's own search items become text, and
what comes in with the conversation stands among the tools. All of it depends on nothing but the
items themselves, so that the same item is the same bytes in every request.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from toolfold import prompts
from toolfold._json_values import compact, sendable
from toolfold.proxy.json_spans import Edit, Element, elements, members
from toolfold.proxy.offered import Lowered, Offered, offered
from toolfold.proxy.request import ProxiedRequest
from toolfold.tool import Json, is_array, is_object

__all__ = [
    "has_own_search",
    "lowered_messages",
    "lowered_responses",
    "namespaced",
    "spread",
    "unseen_tools",
]

_SEARCH_BLOCKS = ("tool_reference", "server_tool_use", "tool_search_tool_result")
_OTHER_TOOLS = frozenset({"functions", "mcp_servers"})
_SEARCH_ITEMS = ("tool_search_call", "tool_search_output", "additional_tools")


def has_own_search(request: ProxiedRequest) -> bool:
    """Whether a client brings a search over deferred tools of its own."""
    for tool in request.tools:
        record = tool.value
        if not is_object(record):
            continue
        kind = record.get("type")
        if record.get("defer_loading") is True:
            return True
        if isinstance(kind, str) and kind.startswith("tool_search"):
            return True
    return any(
        is_object(item.value) and item.value.get("type") in _SEARCH_ITEMS for item in request.items
    ) or any(True for found in (_references, _additions) for _ in found(request))


def unseen_tools(request: ProxiedRequest) -> str:
    """Return where a request brings tools that nobody can tell by name here; empty for nowhere."""
    for key, member in request.document.members.items():
        plain = key.casefold()
        if plain in _OTHER_TOOLS or (plain == "tools" and key != "tools"):
            return f"`{plain}` cannot be read"
        if key == "tools" and member.value is not None and not is_array(member.value):
            return "`tools` is no list"
    for tool in request.tools:
        kind = tool.value.get("type") if is_object(tool.value) else None
        if isinstance(kind, str) and (kind.startswith("mcp") or "custom" in tool.value):
            return f"a tool of the type `{kind[:40]}` cannot be told by name"
        if kind == "namespace" and any(not made.own_name for made in namespaced(tool.value)):
            return "a namespace holds what is no function"
    if request.items_key == "input" and is_object(request.document.get("prompt")):
        return "its `prompt` may bring tools"
    return ""


def spread(request: ProxiedRequest) -> Lowered:
    """Return the tools of a request, those in a namespace each by itself."""
    tools: list[Offered] = []
    is_changed = False
    for tool in request.tools:
        if _is_namespace(tool.value):
            tools += namespaced(tool.value)
            is_changed = True
        else:
            tools.append(Offered(tool.value, tool.text(request.text)))
    return Lowered(tuple(tools), (), is_changed)


def namespaced(record: Mapping[str, Json]) -> Iterator[Offered]:
    """Yield the functions of a namespace, under names that say where they stand.

    What else is in it, such as a tool that is called with plain text, stays in the namespace.
    """
    space = str(record.get("name") or "")
    inner = record.get("tools")
    others: list[Json] = []
    for tool in inner if is_array(inner) else ():
        name = tool.get("name") if is_object(tool) else None
        if not is_object(tool) or not isinstance(name, str) or tool.get("type") != "function":
            others.append(tool)
            continue
        yield offered(_plain({**tool, "name": f"{space}__{name}" if space else name}), space, name)
    if others:
        yield offered({**record, "tools": others})


def lowered_messages(request: ProxiedRequest) -> Lowered:
    """Return a request to the Messages API without deferral."""
    tools: list[Offered] = []
    is_changed = False
    for tool in request.tools:
        record = tool.value
        kind = record.get("type") if is_object(record) else None
        if isinstance(kind, str) and kind.startswith("tool_search_tool"):
            is_changed = True
        elif is_object(record) and "defer_loading" in record:
            tools.append(offered(_plain(record)))
            is_changed = True
        else:
            tools.append(Offered(record, tool.text(request.text)))
    edits: list[tuple[int, Edit]] = []
    for place, block, said in _references(request):
        edits.append((place, Edit(block.start, block.end, said)))
    for place, additions in _additions(request):
        edits += [(place, edit) for edit, _ in additions]
        known = {_name(tool.record) for tool in tools}
        tools += [made for _, made in additions if made and _name(made.record) not in known]
        is_changed = True
    return Lowered(tuple(tools), tuple(edits), is_changed)


def lowered_responses(request: ProxiedRequest) -> Lowered:
    """Return a request to the Responses API without deferral, namespaces and late tools."""
    tools: list[Offered] = []
    edits: list[tuple[int, Edit]] = []
    is_changed = False
    for tool in request.tools:
        made = _lowered_tool(tool.value)
        is_changed = is_changed or made is not None
        tools += [Offered(tool.value, tool.text(request.text))] if made is None else made
    for place, item in enumerate(request.items):
        value = item.value
        kind = value.get("type") if is_object(value) else None
        if kind in ("additional_tools", "tool_search_output"):
            _add(tools, value.get("tools"))
            is_changed = True
        if kind in ("tool_search_call", "tool_search_output"):
            edits.append((place, Edit(item.start, item.end, _search_item(value))))
        elif kind == "function_call" and value.get("namespace"):
            flat = {k: v for k, v in value.items() if k != "namespace"}
            flat["name"] = f"{value['namespace']}__{value.get('name')}"
            edits.append((place, Edit(item.start, item.end, sendable(flat).decode())))
    edits += _removals(request, "additional_tools")
    return Lowered(tuple(tools), tuple(edits), is_changed)


def _removals(request: ProxiedRequest, kind: str) -> Iterator[tuple[int, Edit]]:
    """Yield what takes the items of a kind out, where they are not all that there is."""
    kinds = [is_object(item.value) and item.value.get("type") == kind for item in request.items]
    if all(kinds):
        return
    for is_kind, run in groupby(range(len(kinds)), kinds.__getitem__):
        if is_kind:
            places = list(run)
            yield places[0], request.removal(places[0], places[-1] + 1)


def flat_names(request: ProxiedRequest, names: Iterable[tuple[str, str]]) -> list[tuple[int, Edit]]:
    """Return what names calls in a conversation as their tools are named without namespaces.

    Args:
        request: The request.
        names: The namespaces and names of the tools that are offered without one.
    """
    known = set(names)
    edits: list[tuple[int, Edit]] = []
    for place, item in enumerate(request.items):
        value = item.value
        if not is_object(value) or value.get("type") != "function_call":
            continue
        space, own = value.get("namespace"), value.get("name")
        if isinstance(space, str) and isinstance(own, str) and (space, own) in known:
            flat = {k: v for k, v in value.items() if k != "namespace"} | {
                "name": f"{space}__{own}"
            }
            edits.append((place, Edit(item.start, item.end, sendable(flat).decode())))
    return edits


def _lowered_tool(record: Json) -> list[Offered] | None:
    """Return what stands in place of an entry, or None where it stays as it is."""
    if not is_object(record):
        return None
    kind = record.get("type")
    if kind == "namespace":
        return list(namespaced(record))
    if kind == "tool_search":
        return []
    return [offered(_plain(record))] if "defer_loading" in record else None


def _add(tools: list[Offered], more: Json) -> None:
    """Add tools that came in with a conversation, each once."""
    known = {_name(tool.record) for tool in tools}
    for record in more if is_array(more) else ():
        made = _lowered_tool(record)
        for tool in [offered(record)] if made is None else made:
            name = _name(tool.record)
            if is_object(tool.record) and name not in known:
                known.add(name)
                tools.append(tool)


def _search_item(item: Mapping[str, Json]) -> str:
    """Return a search of the provider's own kind as a call of a function, and its answer so."""
    call_id = item.get("call_id") or item.get("id") or "call_tool_search"
    if item.get("type") == "tool_search_call":
        given = item.get("arguments")
        text = given if isinstance(given, str) else compact(given if given is not None else {})
        call = {"type": "function_call", "call_id": call_id, "name": prompts.TOOL_SEARCH}
        return sendable({**call, "arguments": text}).decode()
    tools = item.get("tools")
    names = [n for t in (tools if is_array(tools) else ()) for n in _names_in(t)]
    output = {
        "type": "function_call_output",
        "call_id": call_id,
        "output": prompts.found_by_name(names),
    }
    return sendable(output).decode()


def _names_in(record: Json) -> list[str]:
    if _is_namespace(record):
        return [_name(tool.record) for tool in namespaced(record) if tool.own_name]
    name = _name(record)
    return [name] if name else []


def _references(request: ProxiedRequest) -> Iterator[tuple[int, Element, str]]:
    """Yield the blocks that only an upstream with deferral understands, and what they say."""
    if not any(kind in request.text for kind in _SEARCH_BLOCKS):
        return
    for place, item in enumerate(request.items):
        text = item.text(request.text)
        if not any(kind in text for kind in _SEARCH_BLOCKS):
            continue
        for block in _blocks(request, item):
            kind = block.value.get("type") if is_object(block.value) else None
            name = block.value.get("name") if is_object(block.value) else None
            if kind == "tool_search_tool_result":
                yield place, block, _text_block(prompts.found_by_name(_found(block.value)))
            elif kind == "server_tool_use" and str(name).startswith("tool_search"):
                yield place, block, _text_block(compact(block.value.get("input")))
            elif kind == "tool_result":
                yield from ((place, inner, said) for inner, said in _inner(request, block))


def _inner(request: ProxiedRequest, block: Element) -> Iterator[tuple[Element, str]]:
    for part in _blocks(request, block):
        if is_object(part.value) and part.value.get("type") == "tool_reference":
            yield part, _text_block(prompts.found_by_name([str(part.value.get("tool_name"))]))


def _additions(
    request: ProxiedRequest,
) -> Iterator[tuple[int, list[tuple[Edit, Offered | None]]]]:
    """Yield the definitions that come in with messages, and what stands there instead."""
    if "tool_addition" not in request.text:
        return
    for place, item in enumerate(request.items):
        if "tool_addition" not in item.text(request.text):
            continue
        made: list[tuple[Edit, Offered | None]] = []
        for block in _blocks(request, item):
            if not is_object(block.value) or block.value.get("type") != "tool_addition":
                continue
            tool = block.value.get("tool")
            record = tool.get("definition") if is_object(tool) else None
            said = _text_block(prompts.found_by_name([_name(record)]))
            edit = Edit(block.start, block.end, said)
            made.append((edit, offered(_plain(record)) if is_object(record) else None))
        if made:
            yield place, made


def _found(value: Json) -> list[str]:
    """Return the names of the tools that are referred to anywhere in a value."""
    if is_object(value):
        own = [str(value.get("tool_name"))] if value.get("type") == "tool_reference" else []
        return own + [name for inner in value.values() for name in _found(inner)]
    return [name for inner in value for name in _found(inner)] if is_array(value) else []


def _blocks(request: ProxiedRequest, item: Element) -> Sequence[Element]:
    if not is_object(item.value) or not is_array(item.value.get("content")):
        return ()
    return elements(request.text, members(request.text, item.start).members["content"].start)


def _text_block(text: str) -> str:
    return sendable({"type": "text", "text": text}).decode()


def _plain(record: Mapping[str, Json]) -> dict[str, Json]:
    return {key: value for key, value in record.items() if key != "defer_loading"}


def _is_namespace(record: Json) -> bool:
    return is_object(record) and record.get("type") == "namespace"


def _name(record: Json) -> str:
    name = record.get("name") if is_object(record) else None
    return name if isinstance(name, str) else ""
