"""Nested names in brackets, `a[b][0]=c`, read back: what Stripe's servers do.

openapi-core reads one level of objects in them and no lists, so for a document that uses
`deepObject` for more, the judge reads the brackets itself, and openapi-core the value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

FORM = "application/x-www-form-urlencoded"
_STEP = re.compile(r"\[([^\[\]]*)\]")


def nested(pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return what pairs come to; texts that are numbers or truths are read as such."""
    root: dict[str, Any] = {}
    for name, value in pairs:
        base = name.partition("[")[0]
        steps = [base, *_STEP.findall(name)]
        here = root
        for step in steps[:-1]:
            here = here.setdefault(step, {})
        here[steps[-1]] = _read(value)
    return {key: _lists(value) for key, value in root.items()}


def as_json(item: dict[str, Any]) -> dict[str, Any]:
    """Return a path of a document in which what is in brackets is JSON."""
    made = json.loads(json.dumps(item))
    for operation in made.values():
        if not isinstance(operation, dict):
            continue
        for parameter in operation.get("parameters", ()):
            if parameter.get("style") == "deepObject":
                for key in ("style", "explode"):
                    parameter.pop(key, None)
                parameter["content"] = {"application/json": {"schema": parameter.pop("schema")}}
        content = operation.get("requestBody", {}).get("content", {})
        if FORM in content:
            content["application/json"] = {"schema": content.pop(FORM)["schema"]}
    return made


def _lists(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    inner = {key: _lists(each) for key, each in value.items()}
    if inner and all(key.isdecimal() for key in inner):
        return [inner[key] for key in sorted(inner, key=int)]
    return inner


def _read(text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, bool | int | float) else text
