"""The operations of a document, read: each as a tool can be made of it.

One that cannot be used is left out and noted, with its place; the others are there all the
same. Only where not one is left is the document itself refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from toolfold._bounds import one_line
from toolfold._json_values import Json, is_array, is_mapping
from toolfold.sources.openapi._json_schemas import Schemas
from toolfold.sources.openapi._operation_names import Named, operation_names
from toolfold.sources.openapi._parameters import read_parameters
from toolfold.sources.openapi._request_bodies import is_json, read_body
from toolfold.sources.openapi._servers import origin_of, read_server
from toolfold.sources.openapi.api_document import ApiDocument, DocumentFault, DocumentNode
from toolfold.sources.openapi.operation import Operation, Requirement

__all__ = ["Reading", "read_operations"]

OPERATIONS_LIMIT = 20_000
"""How many operations of a document become tools."""

_METHODS = ("get", "put", "post", "delete", "patch")
_PATH = re.compile(r"/[^\s?#\\]*\Z")
_WORD = 60
_TAG = re.compile(
    r"</?(?:p|a|br|ul|ol|li|code|pre|b|i|em|strong|div|span|h[1-6]|table|t[rdh]|tbody|thead)"
    r"(?:\s[^<>]{0,500})?/?>"
)


@dataclass(frozen=True)
class Reading:
    """How a document is to be read, and what was found on the way."""

    base_url: str = ""
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    came_from: str = ""
    """The address that the document came from."""

    hidden: frozenset[tuple[str, str]] = frozenset()
    """ParameterLocation and name of parameters that the configuration fills in."""

    with_deprecated: bool = False
    with_outputs: bool = False


class ReadOperations(NamedTuple):
    """What was made of a document."""

    operations: tuple[Operation, ...]
    faults: tuple[DocumentFault, ...]
    """What is left out, and why; at most one of each place."""

    deprecated: int
    """How many are left out because the API itself gives them up."""

    cut: int
    """How many have a schema of which some parts stand for any value: it is too large."""


class _Found(NamedTuple):
    named: Named
    node: DocumentNode
    item: DocumentNode


def read_operations(document: ApiDocument, reading: Reading) -> ReadOperations:
    """Return the operations of a document.

    Args:
        document: The document.
        reading: How to read it.

    Raises:
        DocumentError: Not one of its operations can be used.
    """
    return _Reader(document, reading).read()


class _Reader:
    def __init__(self, document: ApiDocument, reading: Reading) -> None:
        self._document = document
        self._reading = reading
        self._faults: dict[tuple[str, ...], DocumentFault] = {}
        self._requests = Schemas(document, "request", self._note)
        self._responses = Schemas(document, "response", self._note)
        self._server = ""
        self._cut = 0

    def _note(self, fault: DocumentFault) -> None:
        self._faults.setdefault(fault.node.steps, fault)

    def read(self) -> ReadOperations:
        document = self._document
        try:
            self._server = self._server_of(document.node("servers"))
        except DocumentFault as fault:
            hint = f"give `base_url`, the address that paths follow: {fault}"
            raise document.error("its server cannot be used", fault.node, hint) from None
        found, deprecated = self._found()
        if len(found) > OPERATIONS_LIMIT:
            raise document.error(
                f"it has more than {OPERATIONS_LIMIT:,} operations",
                document.node("paths"),
                "give a part of it",
            )
        names = operation_names([each.named for each in found])
        operations: list[Operation] = []
        for name, each in zip(names, found, strict=True):
            try:
                operations.append(self._operation(name, each))
            except DocumentFault as fault:
                self._note(fault)
        if not operations:
            first = next(iter(self._faults.values()), None)
            if first is None:
                why = "all of its operations are deprecated" if deprecated else "it has none"
                raise document.error(
                    f"there is no operation to call: {why}",
                    document.node("paths"),
                    "give a document that has some, or `deprecated: true`",
                )
            raise document.error(
                f"there is no operation to call: {first}", first.node, "mend the document"
            )
        faults = tuple(self._faults.values())
        return ReadOperations(tuple(operations), faults, deprecated, self._cut)

    def _found(self) -> tuple[list[_Found], int]:
        """Return the operations that are there, in the document's order."""
        found: list[_Found] = []
        deprecated = 0
        paths = self._document.node("paths")
        for path in paths.value:
            if path.startswith("x-"):
                continue
            try:
                item = self._document.resolved(paths.at(path))
            except DocumentFault as fault:
                self._note(fault)
                continue
            if not is_mapping(item.value):
                self._note(DocumentFault("a path is no object", item))
                continue
            for method in _METHODS:
                node = item.at(method)
                if node.value is None:
                    continue
                if not is_mapping(node.value):
                    self._note(DocumentFault("an operation is no object", node))
                elif node.value.get("deprecated") is True and not self._reading.with_deprecated:
                    deprecated += 1
                else:
                    said = node.value.get("operationId")
                    own = said if isinstance(said, str) else ""
                    found.append(_Found(Named(own, method.upper(), path), node, item))
        return found, deprecated

    def _server_of(self, node: DocumentNode) -> str:
        reading = self._reading
        return read_server(
            self._document,
            node,
            base_url=reading.base_url,
            variables=reading.variables,
            came_from=reading.came_from,
        )

    def _operation(self, name: str, found: _Found) -> Operation:
        # What follows a `#` tells operations of one path apart, and is never sent.
        node, item, path = found.node, found.item, found.named.path.partition("#")[0]
        _check_path(path, item)
        read = read_parameters(
            self._document,
            self._requests,
            path,
            item.at("parameters"),
            node.at("parameters"),
            self._reading.hidden,
        )
        properties = {each.parameter.argument: each.schema for each in read}
        required = [each.parameter.argument for each in read if each.is_required]
        body = read_body(
            self._document,
            self._requests,
            node.at("requestBody"),
            frozenset(properties),
            is_get=found.named.method == "GET",
        )
        if body is not None:
            properties |= body.arguments
            required += body.required
        schema: dict[str, Json] = {"type": "object", "properties": properties}
        if required:
            schema["required"] = required
        defined = self._requests.definitions(properties)
        if defined.by_key:
            schema["$defs"] = defined.by_key
        self._cut += defined.is_cut
        summary, description = _text(node, "summary"), _text(node, "description")
        accept, output = self._answer(node)
        made = Operation(
            name,
            found.named.method,
            path,
            self._own_server(node, item),
            tuple(each.parameter for each in read),
            None if body is None else body.body,
            self._security(node),
            accept,
            title=one_line(summary, 200),
            description=_described(summary, description, found.named),
            schema=schema,
            output=output,
            tags=_tags(node),
        )
        if node.value.get("deprecated") is True:
            return replace(made, description=f"Deprecated. {made.description}")
        return made

    def _own_server(self, node: DocumentNode, item: DocumentNode) -> str:
        """Return the address of one operation: another path is its own business, a host is not."""
        for own in (node.at("servers"), item.at("servers")):
            if self._reading.base_url or not is_array(own.value) or not own.value:
                continue
            server = self._server_of(own)
            if origin_of(server) != origin_of(self._server):
                raise DocumentFault("it names a server of its own, on another host", own)
            return server
        return self._server

    def _security(self, node: DocumentNode) -> tuple[Requirement, ...] | None:
        said = node.at("security")
        if said.value is None:
            said = self._document.node("security")
        if not is_array(said.value):
            return None
        return tuple(tuple(each) for each in said.value if is_mapping(each))

    def _answer(self, node: DocumentNode) -> tuple[str, Mapping[str, Json] | None]:
        """Return what it is asked to answer with, and the schema of that where it is wanted."""
        responses = node.at("responses")
        codes = responses.mapping
        wanted = [c for c in codes if c.startswith("2")] or [c for c in codes if c == "default"]
        kinds: dict[str, None] = {}
        output: Mapping[str, Json] | None = None
        for code in wanted:
            try:
                response = self._document.resolved(responses.at(code))
            except DocumentFault as fault:
                self._note(fault)
                continue
            content = response.at("content")
            for kind in content.mapping:
                if kind.isprintable() and kind.isascii():
                    kinds[kind] = None
                if is_json(kind) and output is None and self._reading.with_outputs:
                    output = self._output(content.at(kind).at("schema"))
        best = sorted(kinds, key=lambda kind: not is_json(kind))
        accept = ", ".join([*best[:4], "*/*;q=0.1"]) if best else "application/json, */*;q=0.1"
        return accept, output

    def _output(self, node: DocumentNode) -> Mapping[str, Json] | None:
        """Return the schema of an answer, where it is an object's: MCP knows no others."""
        try:
            target = self._document.resolved(node)
        except DocumentFault:
            return None
        if not is_mapping(target.value) or target.value.get("type") != "object":
            return None
        schema = self._responses.converted(target)
        defined = self._responses.definitions(schema)
        return {**schema, "$defs": defined.by_key} if defined.by_key else schema


def _check_path(path: str, node: DocumentNode) -> None:
    if not _PATH.match(path) or not path.isprintable():
        raise DocumentFault("its path cannot be sent", node)
    if any(step in (".", "..") for step in re.sub("%2[eE]", ".", path).split("/")):
        raise DocumentFault("its path leads out of the API", node)
    if path.count("{") != path.count("}"):
        raise DocumentFault("a brace of its path is missing", node)


def _text(node: DocumentNode, key: str) -> str:
    value = node.value.get(key)
    return _TAG.sub("", value).strip() if isinstance(value, str) else ""


def _described(summary: str, description: str, named: Named) -> str:
    """Return what a tool says of itself: the summary first, where the rest does not repeat it."""
    if not summary and not description:
        return f"{named.method} {named.path}"
    if not summary or description.lower().startswith(summary.lower().rstrip(".")):
        return description
    end = "" if summary.endswith((".", "!", "?", ":")) else "."
    return f"{summary}{end}\n\n{description}" if description else f"{summary}{end}"


def _tags(node: DocumentNode) -> tuple[str, ...]:
    given = node.value.get("tags")
    words = (
        (one_line(tag, _WORD) for tag in given if isinstance(tag, str)) if is_array(given) else ()
    )
    return tuple(dict.fromkeys(word for word in words if word))[:8]
