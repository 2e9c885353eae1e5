"""The body of an operation, read: which of its media types is sent, and as which arguments.

An object's properties become arguments of their own, so that a call is one flat object, as
models write best. Where a name is taken by a parameter, where the object takes names that
are not known, or where it is composed of alternatives, the body is one argument: `body`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from toolfold._bounds import one_line
from toolfold._json_values import Json, is_array, is_mapping, is_object
from toolfold.sources.openapi._argument_names import argument_name
from toolfold.sources.openapi._json_schemas import Schemas
from toolfold.sources.openapi.api_document import ApiDocument, DocumentFault, DocumentNode
from toolfold.sources.openapi.operation import Body, BodyProperty

__all__ = ["FORM", "MULTIPART", "ReadBody", "is_json", "read_body"]

FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"

_TEXTS = ("+xml", "/xml", "/yaml", "+yaml", "/graphql", "/x-ndjson")
_BYTES = "application/octet-stream"
_COMPOSED = ("allOf", "anyOf", "oneOf", "not", "if", "dependentSchemas", "patternProperties")
_FILE_NOTE = "The file's bytes, in base64."
_MERGES_AT_MOST = 20


class ReadBody(NamedTuple):
    """A body, and the schemas of its arguments."""

    body: Body
    arguments: dict[str, Json]
    required: tuple[str, ...]


def is_json(media_type: str) -> bool:
    """Whether a media type is JSON's."""
    essence = media_type.partition(";")[0].strip().lower()
    return essence == "application/json" or essence.endswith(("+json", "/json"))


def read_body(
    document: ApiDocument,
    schemas: Schemas,
    node: DocumentNode,
    taken: frozenset[str],
    *,
    is_get: bool = False,
) -> ReadBody | None:
    """Return the body of an operation, or None where it has none.

    Args:
        document: The document.
        schemas: Makes the schemas.
        node: The operation's `requestBody`.
        taken: What its other arguments are called.
        is_get: Whether its method has no use for a body, so that it has to be required.

    Raises:
        DocumentFault: It cannot be sent.
    """
    if node.value is None:
        return None
    node = document.resolved(node)
    content = node.at("content")
    if not is_mapping(content.value):
        raise DocumentFault("a body has no `content`", node)
    if not content.value:
        return None
    media_type = min(content.value, key=_preference)
    if not media_type.isprintable() or not media_type.isascii():
        raise DocumentFault("a media type cannot be sent", content)
    media = content.at(media_type)
    if "*" in media_type:
        # Whatever is sent has to say what it is: a text, or JSON.
        kind = document.resolved(media.at("schema")).mapping.get("type")
        media_type = "text/plain" if kind == "string" else "application/json"
    is_required = node.value.get("required") is True
    essence = media_type.partition(";")[0].strip().lower()
    whole = _merged(document, media.at("schema"))
    if not is_required and (is_get or _says_nothing(whole.value)):
        return None
    if essence in (FORM, MULTIPART) or is_json(media_type):
        flat = _flat(document, schemas, whole, media, essence, taken)
        if flat is not None:
            arguments, properties, required = flat
            body = Body(media_type, None, properties, is_required)
            return ReadBody(body, arguments, required if is_required else ())
    return _whole(document, schemas, node, media, media_type, taken)


def _whole(
    document: ApiDocument,
    schemas: Schemas,
    node: DocumentNode,
    media: DocumentNode,
    media_type: str,
    taken: frozenset[str],
) -> ReadBody:
    """Return a body that is one argument."""
    whole = _merged(document, media.at("schema"))
    essence = media_type.partition(";")[0].strip().lower()
    argument = argument_name("body", taken, "content")
    is_required = node.value.get("required") is True
    is_form = essence in (FORM, MULTIPART)
    is_text = essence.startswith("text/") or essence.endswith(_TEXTS)
    is_file = not (is_form or is_json(essence)) and (_is_file(whole, essence) or not is_text)
    schema = schemas.converted(media.at("schema"))
    if is_file:
        schema = _file_schema(schema)
    elif not is_json(essence) and not is_form:
        schema = {**_described(schema), "type": "string"}
    said = node.value.get("description")
    if isinstance(said, str) and said and is_mapping(schema) and "description" not in schema:
        schema = {**schema, "description": said}
    properties = dict(_properties(document, whole, media, essence)) if is_form else {}
    body = Body(media_type, argument, properties, is_required, is_file)
    return ReadBody(body, {argument: schema}, (argument,) if is_required else ())


def _says_nothing(schema: Json) -> bool:
    """Whether a schema is an object's that holds nothing."""
    return (
        is_mapping(schema)
        and schema.get("type") == "object"
        and (schema.get("properties") == {} and not schema.get("additionalProperties", False))
    )


def _preference(media_type: str) -> int:
    essence = media_type.partition(";")[0].strip().lower()
    # A patch as an object says what it means; as a list of steps, it needs more of a model.
    order = (
        essence == "application/json",
        essence == "application/merge-patch+json",
        is_json(essence) and essence != "application/json-patch+json",
        is_json(essence) or essence == "*/*",
        essence == FORM,
        essence == MULTIPART,
        essence.startswith("text/"),
    )
    return next((place for place, holds in enumerate(order, 1) if holds), len(order) + 1)


def _merged(document: ApiDocument, node: DocumentNode) -> DocumentNode:
    """Return the schema of a body; what is made of several plain objects, as one of them."""
    if not is_mapping(node.value):
        return node
    node = document.resolved(node)
    parts = node.value.get("allOf") if is_mapping(node.value) else None
    if not is_array(parts) or not 0 < len(parts) <= _MERGES_AT_MOST:
        return node
    if any(key in node.value for key in _COMPOSED if key != "allOf"):
        return node
    found = [
        document.resolved(DocumentNode(part, (*node.steps, "allOf", str(place))))
        for place, part in enumerate(parts)
    ]
    found.append(DocumentNode({k: v for k, v in node.value.items() if k != "allOf"}, node.steps))
    properties: dict[str, Json] = {}
    required: list[Json] = []
    for part in found:
        own = part.value
        if not is_mapping(own) or any(key in own for key in (*_COMPOSED, "additionalProperties")):
            return node
        named, needed = own.get("properties", {}), own.get("required", [])
        if not is_mapping(named) or not is_array(needed) or properties.keys() & named.keys():
            return node
        properties |= named
        required += needed
    return DocumentNode(
        {"type": "object", "properties": properties, "required": required}, node.steps
    )


def _flat(
    document: ApiDocument,
    schemas: Schemas,
    whole: DocumentNode,
    media: DocumentNode,
    essence: str,
    taken: frozenset[str],
) -> tuple[dict[str, Json], dict[str, BodyProperty], tuple[str, ...]] | None:
    """Return a body's properties as arguments, or None where it has to be one argument."""
    schema = whole.value
    named = schema.get("properties") if is_mapping(schema) else None
    if not is_mapping(named) or not named or any(key in schema for key in _COMPOSED):
        return None
    if schema.get("additionalProperties", False) is not False or schema.get("nullable") is True:
        return None
    converted = schemas.converted(whole)
    shown = converted.get("properties")
    if not is_object(shown) or not shown:
        return None
    needed = converted.get("required")
    names: dict[str, str] = {}
    for name in shown:
        argument = argument_name(name, names.values(), "body")
        if argument in taken:
            return None
        names[name] = argument
    arguments: dict[str, Json] = {}
    properties: dict[str, BodyProperty] = {}
    for name, read in _properties(document, whole, media, essence):
        if name in names:
            argument = names[name]
            properties[argument] = read
            arguments[argument] = _file_schema(shown[name]) if read.is_file else shown[name]
    required = tuple(names[n] for n in needed if n in names) if is_array(needed) else ()
    return arguments, properties, required


def _properties(
    document: ApiDocument, whole: DocumentNode, media: DocumentNode, essence: str
) -> list[tuple[str, BodyProperty]]:
    """Return what is known of a body's properties."""
    named = whole.at("properties")
    if not is_mapping(named.value):
        return []
    if is_json(essence):
        return [(name, BodyProperty(name)) for name in named.value]
    found: list[tuple[str, BodyProperty]] = []
    for name in named.value:
        if not name.isprintable():
            raise DocumentFault("a property's name cannot be sent", named)
        encoding = media.at("encoding").at(name).value
        said: Mapping[str, Json] = encoding if is_mapping(encoding) else {}
        style, explode = said.get("style", "form"), said.get("explode")
        if style not in ("form", "spaceDelimited", "pipeDelimited", "deepObject"):
            raise DocumentFault(
                f"the style {one_line(repr(style), 40)} is not known", media.at("encoding")
            )
        kind = said.get("contentType")
        try:
            schema = document.resolved(named.at(name))
        except DocumentFault:
            schema = named.at(name)
        found.append(
            (
                name,
                BodyProperty(
                    name,
                    essence == MULTIPART and _is_file(schema, ""),
                    kind if isinstance(kind, str) and kind.isprintable() else None,
                    style,
                    explode if isinstance(explode, bool) else style in ("form", "deepObject"),
                    said.get("allowReserved") is True,
                ),
            )
        )
    return found


def _is_file(node: DocumentNode, essence: str) -> bool:
    """Whether a schema means bytes: by its format in 3.0, by its media type in 3.1."""
    schema = node.value
    if not is_mapping(schema):
        return essence == _BYTES
    if schema.get("type") == "array" and is_mapping(schema.get("items")):
        return _is_file(node.at("items"), "")
    kind = schema.get("contentMediaType")
    return (
        essence == _BYTES
        or schema.get("format") == "binary"
        or (isinstance(kind, str) and not kind.startswith("text/"))
    )


def _file_schema(schema: Json) -> Json:
    """Return the schema of an argument that is bytes."""
    if is_mapping(schema) and schema.get("type") == "array":
        return {**schema, "items": _file_schema(schema.get("items"))}
    made = _described(schema)
    said = made.get("description", "")
    return {
        "type": "string",
        "contentEncoding": "base64",
        "description": f"{said} {_FILE_NOTE}".strip(),
    }


def _described(schema: Json) -> dict[str, Json]:
    keep = ("description", "title")
    return {k: schema[k] for k in keep if k in schema} if is_mapping(schema) else {}
