"""The parameters of an operation, read: those in its path, query, headers and cookies."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, get_args

from toolfold._bounds import one_line
from toolfold._json_values import Json, is_array, is_mapping
from toolfold.sources.openapi._argument_names import argument_name
from toolfold.sources.openapi._json_schemas import Schemas
from toolfold.sources.openapi.api_document import ApiDocument, DocumentFault, DocumentNode
from toolfold.sources.openapi.operation import Parameter, ParameterLocation

__all__ = ["ReadParameter", "read_parameters", "template_names"]

PARAMETERS_LIMIT = 300
"""How many parameters an operation may have."""

_LOCATIONS: tuple[ParameterLocation, ...] = get_args(ParameterLocation)
_STYLES: Mapping[ParameterLocation, tuple[str, ...]] = {
    "path": ("simple", "label", "matrix"),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form",),
}
_NOT_A_MODELS = re.compile(
    r"(?:accept|content-type|authorization|host|content-length|transfer-encoding|connection|"
    r"keep-alive|te|trailer|upgrade|expect|cookie|set-cookie|via|forwarded|x-forwarded-.*|"
    r"proxy-.*|x-real-ip|x-http-method(?:-override)?|x-method-override)\Z",
    re.IGNORECASE,
)
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+\Z")
_TEMPLATE = re.compile(r"\{([^{}]*)\}")


class ReadParameter(NamedTuple):
    """A parameter, and the schema of its argument."""

    parameter: Parameter
    schema: Json
    is_required: bool


def template_names(path: str) -> list[str]:
    """Return the names in braces of a path, each once."""
    return list(dict.fromkeys(_TEMPLATE.findall(path)))


def read_parameters(
    document: ApiDocument,
    schemas: Schemas,
    path: str,
    shared: DocumentNode,
    own: DocumentNode,
    hidden: frozenset[tuple[str, str]],
) -> list[ReadParameter]:
    """Return an operation's parameters, and those that its path has for all operations.

    Args:
        document: The document.
        schemas: Makes the schemas.
        path: The path, whose names in braces all have to be there.
        shared: The path's own list.
        own: The operation's, which wins.
        hidden: ParameterLocation and name of those that the configuration fills in.

    Raises:
        DocumentFault: A parameter cannot be used.
    """
    by_place: dict[tuple[str, str], DocumentNode] = {}
    for node in (*_listed(document, shared), *_listed(document, own)):
        name, location = node.value.get("name"), node.value.get("in")
        if location not in _LOCATIONS:
            raise DocumentFault(f"`in` is {one_line(repr(location), 40)}", node)
        if not isinstance(name, str) or not name or not name.isprintable():
            raise DocumentFault("a parameter has no name that can be written", node)
        by_place[location, name.lower() if location == "header" else name] = node
    if len(by_place) > PARAMETERS_LIMIT:
        raise DocumentFault(f"it has more than {PARAMETERS_LIMIT} parameters", own)
    wanted = template_names(path)
    for name in wanted:
        if not name.isprintable() or not name:
            raise DocumentFault("a name in braces cannot be written", own)
        by_place.setdefault(("path", name), DocumentNode({"name": name, "in": "path"}, own.steps))
    read: list[ReadParameter] = []
    taken: set[str] = set()
    for (location, key), node in by_place.items():
        if (location, key) in hidden or (location == "path" and node.value["name"] not in wanted):
            continue
        made = _read(document, schemas, node, taken)
        if made is not None:
            taken.add(made.parameter.argument)
            read.append(made)
    return read


def _listed(document: ApiDocument, node: DocumentNode) -> Iterator[DocumentNode]:
    if node.value is None:
        return
    if not is_array(node.value):
        raise DocumentFault("`parameters` is no list", node)
    for place, each in enumerate(node.value):
        found = document.resolved(DocumentNode(each, (*node.steps, str(place))))
        if not is_mapping(found.value):
            raise DocumentFault("a parameter is no object", found)
        yield found


def _read(
    document: ApiDocument, schemas: Schemas, node: DocumentNode, taken: set[str]
) -> ReadParameter | None:
    given: Mapping[str, Any] = node.value
    name: str = given["name"]
    location: ParameterLocation = given["in"]
    if location == "header":
        if _NOT_A_MODELS.match(name):
            return None  # such headers are the connection's and the configuration's
        if not _TOKEN.match(name):
            raise DocumentFault("a header's name cannot be sent", node)
    media_type, schema_node = None, node.at("schema")
    content = node.at("content")
    if is_mapping(content.value) and content.value:
        media_type = next(iter(content.value))
        schema_node = content.at(media_type).at("schema")
    style = given.get("style", _STYLES[location][0])
    if style not in _STYLES[location]:
        raise DocumentFault(f"the style {one_line(repr(style), 40)} is none of {location}", node)
    explode = given.get("explode")
    schema: Json = schemas.converted(schema_node)
    if schema == {}:
        schema = {"type": "string"} if location == "path" else {}
    described = given.get("description")
    if isinstance(described, str) and described and schema is not True:
        schema = {**(schema if is_mapping(schema) else {}), "description": described}
    if given.get("deprecated") is True and is_mapping(schema):
        schema = {**schema, "deprecated": True}
    parameter = Parameter(
        argument_name(name, taken, location),
        name,
        location,
        style,
        # The only style with another default is `form`; `deepObject` has no other form.
        explode if isinstance(explode, bool) else style in ("form", "deepObject"),
        given.get("allowReserved") is True,
        media_type,
    )
    return ReadParameter(parameter, schema, location == "path" or given.get("required") is True)
