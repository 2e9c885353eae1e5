"""Messages as JSON: how a transcript is written down, and read again.

What is empty is left out, but for a message's role and text; what is not there is read as
empty. So a message that was written and read is the same message.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from toolfold.runtime.messages import Call, Message, ModelMessage, ResultMessage, UserMessage
from toolfold.tool import Json, is_array, is_object

__all__ = ["message_from_json", "message_to_json"]

T = TypeVar("T", str, bool)


def message_to_json(message: Message) -> dict[str, Json]:
    """Return a message as a JSON object.

    Example:
        assert message_to_json(UserMessage("Hi.")) == {"role": "user", "text": "Hi."}
    """
    if isinstance(message, UserMessage):
        return {"role": "user", "text": message.text, **_filled(note=message.note)}
    if isinstance(message, ResultMessage):
        # That a search found nothing is told from a result of another kind by the list.
        found = {} if message.found is None else {"found": list(message.found)}
        return {
            "role": "result",
            **_filled(name=message.name, call_id=message.call_id),
            "text": message.text,
            **_filled(is_error=message.is_error),
            **found,
            **_filled(note=message.note),
        }
    calls = [_call_to_json(call) for call in message.calls]
    return {
        "role": "model",
        "text": message.text,
        **_filled(calls=calls, native=list(message.native), origin=message.origin),
    }


def message_from_json(value: Json) -> Message:
    """Return the message that a JSON object holds. Keys that are not known are passed over.

    Raises:
        ValueError: It holds none. The error says why, as a clause.
    """
    if not is_object(value):
        raise ValueError(f"a message is {value!r}")
    match value.get("role"):
        case "user":
            return UserMessage(_read(value, "text", ""), _read(value, "note", ""))
        case "model":
            calls = tuple(map(_call_from_json, _list(value, "calls")))
            return ModelMessage(
                _read(value, "text", ""),
                calls,
                tuple(_list(value, "native")),
                _read(value, "origin", ""),
            )
        case "result":
            found = None if value.get("found") is None else tuple(map(str, _list(value, "found")))
            return ResultMessage(
                _read(value, "text", ""),
                _read(value, "call_id", ""),
                _read(value, "name", ""),
                _read(value, "is_error", False),
                found,
                _read(value, "note", ""),
            )
        case role:
            raise ValueError(f"a message has the role {role!r}")


def _call_to_json(call: Call) -> dict[str, Json]:
    written: dict[str, Json] = {"name": call.name, "arguments": call.arguments}
    return {**written, **_filled(id=call.id, recovered=call.recovered)}


def _call_from_json(value: Json) -> Call:
    if not is_object(value) or "name" not in value:
        raise ValueError(f"a call is {value!r}")
    return Call(
        _read(value, "name", ""),
        _read(value, "arguments", "{}"),
        _read(value, "id", ""),
        _read(value, "recovered", False),
    )


def _filled(**values: Json) -> dict[str, Json]:
    return {key: value for key, value in values.items() if value}


def _read(value: Mapping[str, Json], key: str, empty: T) -> T:
    found = value.get(key, empty)
    if not isinstance(found, type(empty)):
        raise ValueError(f"`{key}` of a message is {found!r}")
    return found


def _list(value: Mapping[str, Json], key: str) -> list[Json]:
    found = value.get(key, [])
    if not is_array(found):
        raise ValueError(f"`{key}` of a message is {found!r}")
    return list(found)
