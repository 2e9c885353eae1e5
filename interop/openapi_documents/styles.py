"""A document of our own with every place, style and kind of value, for the judge to read."""

from __future__ import annotations

from typing import Any

_KINDS: dict[str, tuple[Any, Any]] = {
    "text": ({"type": "string"}, "a b&c"),
    "number": ({"type": "integer"}, 7),
    "list": ({"type": "array", "items": {"type": "string"}}, ["blue", "black"]),
    "object": (
        {
            "type": "object",
            "properties": {"R": {"type": "integer"}, "G": {"type": "integer"}},
            "required": ["R", "G"],
        },
        {"R": 100, "G": 200},
    ),
}
_STYLES = {
    "path": ("simple", "label", "matrix"),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form",),
}


def cases() -> dict[str, tuple[dict[str, Any], str, Any]]:
    """Return operations by name: the parameter, the path, and the value to send."""
    found: dict[str, tuple[dict[str, Any], str, Any]] = {}
    for place, styles in _STYLES.items():
        for style in styles:
            for kind, (schema, value) in _KINDS.items():
                for explode in (True, False):
                    if not _is_defined(style, kind, explode):
                        continue
                    name = f"{place}_{style}_{kind}_{'exploded' if explode else 'whole'}"
                    parameter = {
                        "name": "color",
                        "in": place,
                        "required": True,
                        "style": style,
                        "explode": explode,
                        "schema": schema,
                    }
                    path = f"/{name}/{{color}}" if place == "path" else f"/{name}"
                    found[name] = (parameter, path, value)
    return found


def _is_defined(style: str, kind: str, explode: bool) -> bool:
    if style in ("spaceDelimited", "pipeDelimited"):
        return kind in ("list",) and not explode
    return style != "deepObject" or (kind == "object" and explode)


def segment_of(parameter: dict[str, Any]) -> str:
    """Return what openapi-core calls a segment of a path, where it is not its name."""
    mark = {"label": ".", "matrix": ";"}.get(parameter["style"])
    return f"{mark}color{'*' if parameter['explode'] else ''}" if mark else ""


def document() -> dict[str, Any]:
    """Return the document."""
    return {
        "openapi": "3.0.3",
        "info": {"title": "Styles", "version": "1"},
        "paths": {
            path: {
                "get": {
                    "operationId": name,
                    "parameters": [parameter],
                    "responses": {"200": {"description": "ok"}},
                }
            }
            for name, (parameter, path, _) in cases().items()
        },
    }
