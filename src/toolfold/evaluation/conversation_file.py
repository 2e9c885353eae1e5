"""Conversations that a file holds, as a person reads them, whoever wrote the file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from toolfold.errors import CatalogError
from toolfold.evaluation.ab.run_record import Run, from_json
from toolfold.evaluation.proxy_traffic import SavedRequest, saved_request
from toolfold.runtime.message_json import message_from_json
from toolfold.runtime.messages import Message
from toolfold.tool import Json

__all__ = ["ConversationKind", "RecordedConversation", "read_conversation", "text_of"]

ConversationKind = Literal["chat", "ab", "proxy"]
"""What wrote it: `toolfold chat --transcript`, `toolfold ab`, `toolfold proxy --save`."""


@dataclass(frozen=True, slots=True)
class RecordedConversation:
    """What was said, in its order."""

    kind: ConversationKind
    messages: tuple[Message, ...]
    run: Run | None = None
    """What `toolfold ab` counted, where it wrote the file."""

    saved: SavedRequest | None = None
    """What `toolfold proxy` kept beside what was said, where it wrote the file."""


def read_conversation(file: Path) -> RecordedConversation:
    """Return the conversation that a file holds.

    Raises:
        CatalogError: It holds none, or cannot be read.
    """
    text = text_of(file)
    where = f"`{file}`"
    if '"toolfold_ab"' in text[:200]:
        run = from_json(_value(text, where), where)
        said = tuple(message for turn in run.turns for message in turn.messages)
        return RecordedConversation("ab", said, run)
    if (saved := saved_request(text, where)) is not None:
        return RecordedConversation("proxy", tuple(saved.messages), saved=saved)
    lines = [(i, line) for i, line in enumerate(text.splitlines(), 1) if line.strip()]
    messages = tuple(_message(line, f"{where}, line {i}") for i, line in lines)
    return RecordedConversation("chat", messages)


def text_of(file: Path) -> str:
    """Return what a file holds.

    Raises:
        CatalogError: It cannot be read.
    """
    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        raise CatalogError(f"cannot read `{file}`: {why}", hint="check the path") from None


def _message(line: str, where: str) -> Message:
    try:
        return message_from_json(_value(line, where))
    except ValueError as error:
        hint = "give what `toolfold chat`, `toolfold ab` or `toolfold proxy` wrote"
        raise CatalogError(f"{where}: {error}", hint=hint) from None


def _value(text: str, where: str) -> Json:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise CatalogError(f"{where}: {error.msg}", hint="it is no JSON") from None
