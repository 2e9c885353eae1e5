"""The record of one run: what was said, what really ran, what it cost.

Written as one JSON file in UTF-8, with secrets taken out, under a folder that git ignores.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from toolfold.errors import CatalogError
from toolfold.evaluation.ab.stage import Executed
from toolfold.redact import Redactor
from toolfold.runtime.message_json import message_from_json, message_to_json
from toolfold.runtime.messages import Message
from toolfold.runtime.model import Usage
from toolfold.tool import Json

__all__ = ["Run", "TurnRecord", "as_json", "from_json", "load", "make_folder", "save"]

VERSION = 1


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """One message of the user, and all that came of it."""

    prompt: str
    text: str = ""
    """The answer."""

    stop: str = "error"
    """Why the turn ended; `error` where it did not end by itself."""

    usage: Usage = field(default_factory=Usage)
    round_trips: int = 0
    asked_again: int = 0
    """How many of the model's replies were empty and asked for once more."""

    seconds: float = 0.0

    first_tool: float | None = None
    """Seconds until the first real tool began."""

    executed: tuple[Executed, ...] = ()
    """What really ran."""

    messages: tuple[Message, ...] = ()
    """The transcript of the turn."""


@dataclass(frozen=True, slots=True)
class Run:
    """One scenario, held once, in one arm."""

    scenario: str
    arm: str
    repeat: int
    model: str

    listed: tuple[str, ...] = ()
    """The tools that the model saw in full from the start."""

    bridge: tuple[str, ...] = ()
    """The bridge's tools that it saw beside them."""

    turns: tuple[TurnRecord, ...] = ()

    error: str | None = None
    """What ended it early, if anything did."""

    folded: int | None = None
    """The size of the catalog, as the scenario has it."""

    wanted: tuple[str, ...] = ()
    """The tools that a smaller catalog was made to hold."""

    @property
    def name(self) -> str:
        """The name of its file, without the ending."""
        return f"{self.scenario}__{self.arm}__{self.repeat}"


def as_json(run: Run) -> dict[str, Json]:
    """Return a run as a JSON object."""
    return {
        "toolfold_ab": VERSION,
        "scenario": run.scenario,
        "arm": run.arm,
        "repeat": run.repeat,
        "model": run.model,
        "error": run.error,
        "catalog": {"folded": run.folded, "wanted": list(run.wanted)},
        "listed": list(run.listed),
        "bridge": list(run.bridge),
        "turns": [_turn(turn) for turn in run.turns],
    }


def from_json(value: Json, where: str = "the transcript") -> Run:
    """Return the run that a JSON object holds.

    Raises:
        CatalogError: It is none.
    """
    try:
        if value["toolfold_ab"] != VERSION:
            raise CatalogError(
                f"{where} has version {value['toolfold_ab']!r}",
                hint=f"this toolfold reads version {VERSION}",
            )
        return Run(
            scenario=value["scenario"],
            arm=value["arm"],
            repeat=value["repeat"],
            model=value["model"],
            listed=tuple(value["listed"]),
            bridge=tuple(value["bridge"]),
            turns=tuple(_read_turn(turn) for turn in value["turns"]),
            error=value["error"],
            folded=value["catalog"]["folded"],
            wanted=tuple(value["catalog"]["wanted"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CatalogError(
            f"{where} is no transcript: {error}", hint="give a file that `toolfold ab` wrote"
        ) from None


def make_folder(folder: Path) -> None:
    """Make the folder of a run's files, such that git ignores it wherever it is."""
    (folder / "transcripts").mkdir(parents=True, exist_ok=True)
    (folder / ".gitignore").write_text("*\n", encoding="utf-8")


def save(folder: Path, run: Run, measures: Json, redactor: Redactor) -> Path:
    """Write a run's transcript, without its secrets; return where."""
    file = _file(folder, run.name)
    value = redactor.redacted({**as_json(run), "measures": measures})
    text = json.dumps(value, ensure_ascii=False, indent=1)
    # Half a character, from a model or a tool, fits no encoding.
    file.write_bytes(text.encode("utf-8", "replace"))
    return file


def load(folder: Path, name: str) -> Run:
    """Return the run of a name whose transcript stands in a folder.

    Raises:
        CatalogError: The file is no transcript.
        OSError: It cannot be read.
    """
    file = _file(folder, name)
    try:
        value: Json = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise CatalogError(f"`{file}` is no JSON: {error}", hint="make the run again") from None
    return from_json(value, f"`{file}`")


def _file(folder: Path, name: str) -> Path:
    return folder / "transcripts" / f"{name}.json"


def _turn(turn: TurnRecord) -> dict[str, Json]:
    return {
        "prompt": turn.prompt,
        "text": turn.text,
        "stop": turn.stop,
        "usage": asdict(turn.usage),
        "round_trips": turn.round_trips,
        "asked_again": turn.asked_again,
        "seconds": round(turn.seconds, 4),
        "first_tool": None if turn.first_tool is None else round(turn.first_tool, 4),
        "executed": [asdict(item) for item in turn.executed],
        "messages": [message_to_json(message) for message in turn.messages],
    }


def _read_turn(value: Json) -> TurnRecord:
    return TurnRecord(
        prompt=value["prompt"],
        text=value["text"],
        stop=value["stop"],
        usage=Usage(**value["usage"]),
        round_trips=value["round_trips"],
        asked_again=value.get("asked_again", 0),
        seconds=value["seconds"],
        first_tool=value["first_tool"],
        executed=tuple(Executed(**item) for item in value["executed"]),
        messages=tuple(map(message_from_json, value["messages"])),
    )
