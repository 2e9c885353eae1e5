"""Recorded conversations, as the page shows them: the real calls open, the bridge folded away.

`toolfold proxy --save` writes a file for each request, and each request holds all that was said
before. So requests that begin alike are one conversation: the last one is shown, and what the
others counted is the time and the tokens of its turns.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolfold._bounds import cut, one_line
from toolfold.errors import CatalogError, ToolfoldError
from toolfold.evaluation.ab.run_record import Run, TurnRecord
from toolfold.evaluation.ab.transcript_reading import discovered, turns_of, users_own
from toolfold.evaluation.ab.turn_reading import ReadCall, ReadText, found_in, steps_of
from toolfold.evaluation.conversation_file import (
    RecordedConversation,
    read_conversation,
    text_of,
)
from toolfold.inspector.audit_reading import audit_view, is_audit
from toolfold.runtime.messages import Message, ModelMessage, UserMessage
from toolfold.tokens import estimate
from toolfold.tool import Json

__all__ = ["Conversations", "recorded_files"]

_FILES_AT_MOST = 2_000
_READ_AT_MOST = 400
_TEXT_AT_MOST = 20_000
_SIZE_AT_MOST = 32 * 1024 * 1024
_ENDINGS = (".json", ".jsonl", ".log")


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


@dataclass(frozen=True, slots=True)
class _Read:
    """What the list says of one file."""

    kind: str
    title: str = ""
    turns: int = 0
    model: str = ""
    beginning: tuple[str, ...] = ()
    """What it has in common with other requests of one conversation."""

    error: str = ""


class Conversations:
    """The files of conversations. A file is read again once it has changed.

    Args:
        files: The files.
    """

    def __init__(self, files: Sequence[Path] = ()) -> None:
        self._files = tuple(files)
        self._read: dict[Path, tuple[tuple[int, int], _Read]] = {}

    def view(self) -> dict[str, Any]:
        """Return what conversations there are; the number of each is its place."""
        groups: dict[tuple[str, ...], list[int]] = defaultdict(list)
        about: dict[int, _Read] = {}
        for number, file in enumerate(self._files):
            about[number] = self._about(file, number)
            key = about[number].beginning or (str(number),)
            groups[key].append(number)
        return {"conversations": [self._row(numbers, about) for numbers in groups.values()]}

    def conversation(self, number: int) -> dict[str, Any] | None:
        """Return one conversation: each turn with its calls, and what was found and used.

        Raises:
            CatalogError: Its file cannot be read.
        """
        if not 0 <= number < len(self._files):
            return None
        file = self._files[number]
        if not file.is_file() or file.stat().st_size > _SIZE_AT_MOST:
            raise CatalogError(f"`{file}` is not there or larger than 32 MB", hint="split it")
        if self._about(file, 0).kind == "audit":
            return audit_view(file)
        read = _conversation_in(file)
        turns = turns_of(read.messages)
        counted = [*_counted(read, len(turns))]
        if read.kind == "proxy":
            counted = self._requests_of(number, len(turns))
        return {
            "name": file.name,
            "kind": read.kind,
            "about": _run(read.run) if read.run is not None else _model(read),
            "error": read.run.error if read.run is not None else None,
            "turns": [{**_turn(turn), **counted[i]} for i, turn in enumerate(turns)],
        }

    def _row(self, numbers: list[int], about: dict[int, _Read]) -> dict[str, Any]:
        last = max(numbers, key=lambda i: (about[i].turns, i))
        file, read = self._files[last], about[last]
        return {
            "id": last,
            "name": file.name,
            "folder": str(file.parent),
            "kind": read.kind,
            "title": read.title,
            "turns": read.turns,
            "model": read.model,
            "requests": len(numbers) if read.kind == "proxy" else None,
            "error": read.error,
        }

    def _about(self, file: Path, number: int) -> _Read:
        if number >= _READ_AT_MOST:
            return _Read("", file.name)
        try:
            status = file.stat()
        except OSError as error:
            return _Read("", error=error.strerror or "it is not there")
        state = status.st_mtime_ns, status.st_size
        known = self._read.get(file)
        if known is None or known[0] != state:
            known = state, _looked_at(file, status.st_size)
            self._read[file] = known
        return known[1]

    def _requests_of(self, number: int, turns: int) -> list[dict[str, Any]]:
        """Return what the requests of one conversation counted, by turn."""
        found: list[dict[str, Any]] = [{} for _ in range(turns)]
        beginning = self._about(self._files[number], 0).beginning
        for i, file in enumerate(self._files[:_READ_AT_MOST]):
            own = self._about(file, i)
            if own.beginning != beginning or not 0 < own.turns <= turns:
                continue
            saved = _conversation_in(file).saved
            if saved is not None:
                _add(found[own.turns - 1], saved.counted)
        return found


def _conversation_in(file: Path) -> RecordedConversation:
    """Return the conversation of a file, whatever a stranger wrote into it.

    Raises:
        CatalogError: It holds none.
    """
    try:
        return read_conversation(file)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise CatalogError(f"`{file}` holds no conversation", hint="give another file") from None


def _looked_at(file: Path, size: int) -> _Read:
    if size > _SIZE_AT_MOST:
        return _Read("", error="larger than 32 MB")
    try:
        with file.open(encoding="utf-8-sig", errors="replace") as lines:
            first = next((line for line in lines if line.strip()), "")
        if is_audit(first):
            calls = sum(1 for line in text_of(file).splitlines() if line.strip())
            return _Read("audit", "calls of a gateway or proxy", calls)
        read = _conversation_in(file)
    except ToolfoldError as error:
        return _Read("", error=error.message)
    except OSError as error:
        return _Read("", error=error.strerror or "it cannot be read")
    said = [m.text for m in read.messages if isinstance(m, UserMessage) and m.text]
    title = one_line(said[0], 80) if said else ""
    run, saved = read.run, read.saved
    model = run.model if run is not None else saved.model if saved is not None else ""
    beginning = ("proxy", str(file.parent), model, said[0]) if saved is not None and said else ()
    if run is not None:
        title = f"{run.scenario}, {run.arm}"
    return _Read(read.kind, title, users_own(read.messages), model, beginning)


def _run(run: Run) -> dict[str, Any]:
    about = {"scenario": run.scenario, "arm": run.arm, "model": run.model, "run": run.repeat}
    return {key: value for key, value in about.items() if value != ""}


def _model(read: RecordedConversation) -> dict[str, Any]:
    return {"model": read.saved.model} if read.saved is not None and read.saved.model else {}


def _turn(messages: Sequence[Message]) -> dict[str, Any]:
    said = messages[0]
    steps = [shown for step in steps_of(messages) if (shown := _step(step)) is not None]
    used = [step["tool"] for step in steps if step["kind"] == "call"]
    return {
        "user": _cut(said.text) if isinstance(said, UserMessage) else "",
        "note": _cut(said.note) if isinstance(said, UserMessage) else "",
        "steps": steps,
        "found": found_in(messages) or sorted(discovered(messages) - {*used}),
        "used": used,
        "spoken": sum(estimate(text) for m in messages for text in _texts(m)),
    }


def _step(step: ReadText | ReadCall) -> dict[str, Any] | None:
    """Return a step of the model; what the user said stands above them all."""
    if isinstance(step, ReadText):
        return {"kind": "text", "text": _cut(step.text)} if step.by == "model" else None
    call = step.made.call
    return {
        "kind": "bridge" if step.real is None else "call",
        "tool": step.name,
        "needs": list(step.needs),
        "arguments": _cut(call.arguments) if step.real is None else step.real[1],
        "via": step.via,
        "recovered": call.recovered,
        "result": None if step.result is None else _cut(step.result),
        "found": list(step.found or ()),
        "is_error": step.is_error,
        "tokens": step.tokens,
    }


def _counted(read: RecordedConversation, turns: int) -> Iterator[dict[str, Any]]:
    for place in range(turns):
        own = read.run.turns if read.run is not None else ()
        yield _counts(own[place]) if place < len(own) else {}


def _counts(turn: TurnRecord) -> dict[str, Any]:
    return {
        "seconds": round(turn.seconds, 2),
        "round_trips": turn.round_trips,
        "prompt": turn.usage.prompt,
        "cached": turn.usage.cached,
        "completion": turn.usage.completion,
        "stop": turn.stop,
    }


def _add(turn: dict[str, Any], counts: Mapping[str, Json]) -> None:
    for name, key in (
        ("seconds", "seconds"),
        ("round_trips", "rounds"),
        ("prompt", "prompt_tokens"),
        ("cached", "cached_tokens"),
        ("completion", "completion_tokens"),
        ("searches", "searches"),
    ):
        value = counts.get(key)
        if isinstance(value, int | float):
            turn[name] = round(turn.get(name, 0) + value, 2)
    before, after = counts.get("tokens_before"), counts.get("tokens_after")
    if isinstance(before, int) and isinstance(after, int):
        rounds = counts.get("rounds")
        times = rounds if isinstance(rounds, int) else 1
        turn["saved"] = turn.get("saved", 0) + max(before - after, 0) * times


def _texts(message: Message) -> Iterator[str]:
    yield message.text
    if isinstance(message, ModelMessage):
        yield from (call.arguments for call in message.calls)


def _cut(text: str) -> str:
    rest = len(text) - _TEXT_AT_MOST
    return text if rest <= 0 else f"{cut(text, _TEXT_AT_MOST)} ({rest:,} more characters)"
