"""An OpenAPI document: read within bounds, and every fault with its place.

JSON or YAML, versions 3.0 and 3.1. What is wrong is told with the JSON pointer of the place
and, where the text is at hand, its line. References are followed inside the document and
nowhere else: nothing a document says makes anything be fetched or opened.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import unquote

from toolfold._bounds import one_line
from toolfold._json_values import Json, is_array, is_mapping
from toolfold.errors import ConfigError
from toolfold.sources.openapi._yaml_values import YamlError, lines_at, yaml_value

__all__ = ["ApiDocument", "DocumentError", "DocumentNode", "pointer_of", "read_document"]

SIZE_LIMIT = 32 * 1024 * 1024
"""The longest document in JSON, in bytes; GitHub's has 13 million."""

YAML_LIMIT = 16 * 1024 * 1024
"""The longest in YAML, which takes longer to read."""

_CHAIN = 16
_LINES_LIMIT = 2 * 1024 * 1024
_SHOWN = 120
_VERSION = re.compile(r"3\.([01])(?:\.|\Z)")
_CONVERTERS = "convert it to 3.0, as `npx swagger2openapi FILE` or editor.swagger.io does"


class DocumentError(ConfigError):
    """An OpenAPI document cannot be used. Its text names the place."""


class DocumentNode(NamedTuple):
    """A value of a document, and where it stands."""

    value: Json
    steps: tuple[str, ...]

    def at(self, key: str) -> DocumentNode:
        """Return what stands below it under a key; None where nothing does."""
        value = self.value.get(key) if is_mapping(self.value) else None
        return DocumentNode(value, (*self.steps, key))

    @property
    def mapping(self) -> Mapping[str, Json]:
        """Its values by key; none where it is no object."""
        return self.value if is_mapping(self.value) else {}

    @property
    def pointer(self) -> str:
        """Where it stands, as a JSON pointer."""
        return pointer_of(self.steps)


class DocumentFault(Exception):
    """Something of a document cannot be used.

    Args:
        problem: What is wrong with it, as a clause.
        node: What it is.
    """

    def __init__(self, problem: str, node: DocumentNode) -> None:
        super().__init__(problem)
        self.node = node


@dataclass(frozen=True, slots=True)
class ApiDocument:
    """A document of a version that is read here."""

    root: Mapping[str, Json] = field(repr=False)

    label: str
    """What an error calls it: its path or address."""

    minor: int
    """1 for OpenAPI 3.1, whose schemas are JSON Schema's own; 0 for 3.0."""

    text: str = field(default="", repr=False)
    """Its text, to find lines in."""

    def node(self, *steps: str) -> DocumentNode:
        """Return what stands at a place."""
        found = DocumentNode(self.root, ())
        for step in steps:
            found = found.at(step)
        return found

    def resolved(self, node: DocumentNode) -> DocumentNode:
        """Return a node, or what its `$ref` leads to in this document, however many follow.

        Raises:
            DocumentFault: The reference leads out of the document, nowhere, or round and round.
        """
        start = node
        for _ in range(_CHAIN):
            if not is_mapping(node.value) or not isinstance(node.value.get("$ref"), str):
                return node
            node = self.target(node.at("$ref"))
        raise DocumentFault("its reference leads round and round", start)

    def target(self, reference: DocumentNode) -> DocumentNode:
        """Return what the text of a reference leads to.

        Raises:
            DocumentFault: It leads out of the document, or nowhere.
        """
        text = str(reference.value)
        shown = one_line(text, _SHOWN)
        if not text.startswith("#"):
            raise DocumentFault(f"the reference `{shown}` leads out of the document", reference)
        if text != "#" and not text.startswith("#/"):
            raise DocumentFault(f"the reference `{shown}` is no JSON pointer", reference)
        found = DocumentNode(self.root, ())
        for raw in text.split("/")[1:]:
            step = unquote(raw).replace("~1", "/").replace("~0", "~")
            value: Json = None
            if is_mapping(found.value):
                value = found.value.get(step)
            elif is_array(found.value) and step.isdecimal() and int(step) < len(found.value):
                value = found.value[int(step)]
            found = DocumentNode(value, (*found.steps, step))
        if found.value is None:
            raise DocumentFault(f"the reference `{shown}` leads nowhere", reference)
        return found

    def places(self, nodes: Sequence[DocumentNode]) -> list[str]:
        """Return where things stand, for a person: the file, the line, the pointer."""
        lines = [0] * len(nodes)
        # JSON is YAML, too; in one long line, a line says nothing.
        if nodes and len(self.text) <= _LINES_LIMIT and "\n" in self.text:
            lines = lines_at(self.text, [node.steps for node in nodes])
        return [
            f"`{self.label}`{f', line {line}' if line else ''}, at `{one_line(node.pointer, 200)}`"
            for node, line in zip(nodes, lines, strict=True)
        ]

    def error(self, problem: str, node: DocumentNode, hint: str) -> DocumentError:
        """Return the error about something that makes the whole document useless."""
        return DocumentError(f"{self.places([node])[0]}: {problem}", hint=hint)


def pointer_of(steps: tuple[str, ...]) -> str:
    """Return steps as a JSON pointer."""
    return "#" + "".join(f"/{step.replace('~', '~0').replace('/', '~1')}" for step in steps)


def read_document(text: str | bytes, label: str) -> ApiDocument:
    """Return the document that a text holds.

    Args:
        text: JSON or YAML.
        label: What an error calls it.

    Raises:
        DocumentError: It cannot be read, is too large, or is no OpenAPI 3.0 or 3.1.
    """
    if len(text) > SIZE_LIMIT:
        raise DocumentError(
            f"`{label}` has more than {SIZE_LIMIT:,} bytes", hint="give a smaller document"
        )
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise DocumentError(
                f"`{label}` is not UTF-8: byte {error.start:,}", hint="save it as UTF-8"
            ) from None
    text = text.removeprefix("\ufeff")
    root = _json(text, label) if text.lstrip()[:1] == "{" else _yaml(text, label)
    return checked_document(root, label, text)


def checked_document(root: Json, label: str, text: str = "") -> ApiDocument:
    """Return what a value holds as a document.

    Raises:
        DocumentError: It is no OpenAPI 3.0 or 3.1, or describes no paths.
    """
    if not is_mapping(root):
        raise DocumentError(f"`{label}` is no object", hint="give an OpenAPI document")
    made = ApiDocument(root, label, 0, text)
    version = root.get("openapi")
    if version is None and "swagger" in root:
        said = one_line(str(root["swagger"]), 20)
        raise made.error(f"it is Swagger {said}", made.node("swagger"), _CONVERTERS)
    match = _VERSION.match(str(version))
    if match is None:
        said = "no `openapi`" if version is None else f"OpenAPI {one_line(str(version), 20)!r}"
        node = made.node() if version is None else made.node("openapi")
        raise made.error(f"it is {said}", node, "give a document of OpenAPI 3.0 or 3.1")
    if not is_mapping(root.get("paths")):
        raise made.error("it has no `paths`", made.node(), "give a document that describes some")
    return ApiDocument(root, label, int(match[1]), text)


def _json(text: str, label: str) -> Json:
    import orjson

    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        if "recursion" in str(error).lower():
            raise DocumentError(f"`{label}` nests too deep", hint="flatten it") from None
        raise DocumentError(
            f"`{label}`, line {error.lineno}: {error.msg}", hint="mend the JSON"
        ) from None


def _yaml(text: str, label: str) -> Json:
    if len(text) > YAML_LIMIT:
        raise DocumentError(
            f"`{label}` has more than {YAML_LIMIT:,} characters of YAML",
            hint="give it as JSON, which is read up to twice that size",
        )
    try:
        return yaml_value(text)
    except YamlError as error:
        line = f", line {error.line}" if error.line else ""
        raise DocumentError(f"`{label}`{line}: {error}", hint="mend the YAML") from None
