"""Recorded conversations, as the page shows them: the real calls open, the bridge folded away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from toolfold.errors import CatalogError
from toolfold.evaluation.ab.run_record import Run, TurnRecord
from toolfold.evaluation.ab.transcript_reading import made, real_call, searched_needs, turns_of
from toolfold.evaluation.conversation_file import read_conversation
from toolfold.runtime.messages import Message, ModelMessage, ResultMessage, UserMessage
from toolfold.tokens import estimate

__all__ = ["conversation_view", "conversations_view", "recorded_files"]

_FILES_AT_MOST = 2_000
_TEXT_AT_MOST = 20_000
_SIZE_AT_MOST = 32 * 1024 * 1024
_ENDINGS = (".json", ".jsonl")


def recorded_files(paths: Sequence[str]) -> tuple[Path, ...]:
    """Return the files that paths name, those of folders included.

    Raises:
        CatalogError: A path is not there.
    """
    found: list[Path] = []
    for text in paths:
        path = Path(text).expanduser()
        if path.is_dir():
            found += sorted(file for file in path.rglob("*") if file.suffix in _ENDINGS)
        elif path.is_file():
            found.append(path)
        else:
            raise CatalogError(f"there is no `{text}`", hint="give files, or folders of them")
    return tuple(found[:_FILES_AT_MOST])


def conversations_view(files: Sequence[Path]) -> dict[str, Any]:
    """Return what conversations there are, by number."""
    return {
        "conversations": [
            {"id": i, "name": file.name, "folder": str(file.parent)} for i, file in enumerate(files)
        ]
    }


def conversation_view(files: Sequence[Path], number: int) -> dict[str, Any] | None:
    """Return one conversation: each turn with its calls, and what was found and used.

    Raises:
        CatalogError: Its file cannot be read.
    """
    if not 0 <= number < len(files):
        return None
    file = files[number]
    if file.stat().st_size > _SIZE_AT_MOST:
        raise CatalogError(f"`{file}` is larger than 32 MB", hint="split it")
    read = read_conversation(file)
    turns = turns_of(read.messages)
    counted = read.run.turns if read.run is not None else ()
    return {
        "name": file.name,
        "kind": read.kind,
        "run": None if read.run is None else _run(read.run),
        "turns": [
            _turn(turn, counted[i] if i < len(counted) else None) for i, turn in enumerate(turns)
        ],
    }


def _run(run: Run) -> dict[str, Any]:
    about = {"scenario": run.scenario, "arm": run.arm, "model": run.model, "error": run.error}
    return {key: value for key, value in about.items() if value}


def _turn(messages: Sequence[Message], counted: TurnRecord | None) -> dict[str, Any]:
    said = messages[0]
    results = {id(item.call): item.result for item in made(messages)}
    steps: list[dict[str, Any]] = []
    for message in messages:
        if not isinstance(message, ModelMessage):
            continue
        if message.text.strip():
            steps.append({"kind": "text", "text": _cut(message.text)})
        steps += list(_calls(message, results))
    return {
        "user": _cut(said.text) if isinstance(said, UserMessage) else "",
        "note": _cut(said.note) if isinstance(said, UserMessage) else "",
        "steps": steps,
        "found": sorted({name for m in messages for name in _found(m)}),
        "used": [step["tool"] for step in steps if step["kind"] == "call"],
        **({} if counted is None else _counts(counted)),
    }


def _counts(turn: TurnRecord) -> dict[str, Any]:
    return {
        "seconds": round(turn.seconds, 2),
        "round_trips": turn.round_trips,
        "tokens": turn.usage.prompt + turn.usage.completion,
        "stop": turn.stop,
    }


def _calls(
    message: ModelMessage, results: dict[int, ResultMessage | None]
) -> Iterator[dict[str, Any]]:
    for call in message.calls:
        result = results.get(id(call))
        real = real_call(call)
        yield {
            "kind": "bridge" if real is None else "call",
            "tool": call.name if real is None else real[0],
            "needs": list(searched_needs(call)),
            "arguments": _cut(call.arguments) if real is None else real[1],
            "via": None if real is None or call.name == real[0] else call.name,
            "recovered": call.recovered,
            "result": None if result is None else _cut(result.text),
            "is_error": bool(result and result.is_error),
            "tokens": 0 if result is None else estimate(result.text),
        }


def _found(message: Message) -> tuple[str, ...]:
    return (message.found or ()) if isinstance(message, ResultMessage) else ()


def _cut(text: str) -> str:
    rest = len(text) - _TEXT_AT_MOST
    return text if rest <= 0 else f"{text[:_TEXT_AT_MOST]}… ({rest:,} more characters)"
