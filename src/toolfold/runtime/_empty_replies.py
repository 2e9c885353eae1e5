"""Replies that say nothing and call nothing.

A model that ends so is asked once more. The transcript keeps what happened; what is sent of
it leaves the reply out, since no provider takes an empty one, and has our word right behind
what the model was asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from toolfold.runtime._lenient import after_thoughts
from toolfold.runtime.messages import Message, ModelMessage, UserMessage

__all__ = ["is_empty", "without_empty_replies"]


def is_empty(message: ModelMessage) -> bool:
    """Whether a model has said nothing, but for thoughts, and called nothing."""
    return not message.calls and not message.text[after_thoughts(message.text) :].strip()


def without_empty_replies(messages: Sequence[Message]) -> list[Message]:
    """Return a transcript without the replies that were asked for once more."""
    asked = [message for message in messages if isinstance(message, UserMessage)]
    if all(message.text for message in asked):
        return list(messages)
    sent: list[Message] = []
    for message in messages:
        if not isinstance(message, UserMessage) or message.text or not _ends_empty(sent):
            sent.append(message)
            continue
        sent.pop()
        before = sent[-1] if sent else None
        if isinstance(before, UserMessage):
            notes = "\n\n".join(note for note in (before.note, message.note) if note)
            sent[-1] = replace(before, note=notes)
        else:
            sent.append(message)
    return sent


def _ends_empty(messages: Sequence[Message]) -> bool:
    last = messages[-1] if messages else None
    return isinstance(last, ModelMessage) and is_empty(last)
