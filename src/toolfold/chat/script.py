"""Scripts: a YAML file that says what the user, the model and the person at the prompt say.

    turns:
      - user: Remind me to call mum tonight.
        replies:                                    # of the model, in order
          - calls:
              - tool_search: {query: remind me}     # a name and its arguments
          - calls:
              - tool_call: {name: create_calendar_event, arguments: {...}}
          - You will be reminded.                   # a text ends the turn
        approve: [yes]                              # yes, always or no, as they are asked for
    results:
      weather__now: {degrees: 4}                    # stands in for a tool that does not run

The tools really run, through the same fold, checks and hooks as with a model. A script
fits when each turn takes all of its replies and answers, and no more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, cast

import yaml

from toolfold._json_values import compact
from toolfold.dispatch.approvals import Verdict
from toolfold.dispatch.hooks import Hook
from toolfold.errors import ConfigError, ToolfoldError
from toolfold.runtime.messages import Call
from toolfold.runtime.model import ModelError, Request
from toolfold.runtime.scripted import Says, ScriptedModel
from toolfold.settings.check import suggestion
from toolfold.sources.calls import Output, PendingCall
from toolfold.tool import Json

__all__ = ["BUNDLED", "Replay", "Script", "ScriptTurn", "load_script"]

BUNDLED = "demo"
"""The name of the script that comes with toolfold."""

_BUNDLED_FILE = Path(__file__).parents[1] / "demo" / "chat.yaml"
_VERDICTS: Mapping[Json, Verdict] = {"yes": "once", "always": "always", "no": "deny"}


@dataclass(frozen=True, slots=True)
class ScriptTurn:
    """One message of the user and what follows it."""

    user: str
    replies: tuple[Says, ...]
    approve: tuple[Verdict, ...] = ()
    """What the person says, in the order of the questions."""

    line: int = 0
    reply_lines: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Script:
    """A conversation, written down."""

    file: str
    turns: tuple[ScriptTurn, ...]
    results: Mapping[str, Output] = field(default_factory=dict[str, Output])
    """What tools return that are not run, by name."""


def load_script(file: str | Path) -> Script:
    """Return the script of a file; `demo` is the one that comes with toolfold.

    Raises:
        ConfigError: The file cannot be read as a script. The error names the line.
    """
    path = _BUNDLED_FILE if file == BUNDLED else Path(file)
    return _Reader(str(file), _text(path)).script()


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        hint = f"check the path; `{BUNDLED}` is the script that comes with toolfold"
        raise ConfigError(f"cannot read `{path}`: {reason}", hint=hint) from None


# ---- a script that is played


class Replay(Hook):
    """A script while it is played: the model, the person's answers, the tools' results.

    Args:
        script: What to play.
    """

    def __init__(self, script: Script) -> None:
        self.script = script
        steps = [
            self._step(place, says)
            for place, turn in enumerate(script.turns)
            for says in turn.replies
        ]
        self.model = ScriptedModel([*steps, self._too_many])
        self._turn = -1
        self._said = 0
        self._approved = 0

    def begin(self) -> ScriptTurn:
        """Go on to the next turn."""
        self._turn += 1
        self._said = self._approved = 0
        return self.script.turns[self._turn]

    def end(self) -> None:
        """Check that the turn took all that the script has for it.

        Raises:
            ToolfoldError: Something is left over.
        """
        turn = self.script.turns[self._turn]
        left = len(turn.replies) - self._said
        if left:
            where = f"`{self.script.file}`, line {turn.reply_lines[self._said]}"
            raise ToolfoldError(
                f"{where}: the turn ended before this reply", hint=f"take {left} out"
            )
        if self._approved < len(turn.approve):
            raise ToolfoldError(
                f"`{self.script.file}`, line {turn.line}: {self._approved} of "
                f"{len(turn.approve)} answers under `approve` were asked for",
                hint="take the others out",
            )

    def answer(self) -> Verdict | None:
        """Return what the person says to the next question; None where the script does not say."""
        answers = self.script.turns[self._turn].approve
        if self._approved >= len(answers):
            return None
        self._approved += 1
        return answers[self._approved - 1]

    def before_call(self, call: PendingCall) -> Output | None:
        """Return the result that the script has for a tool."""
        return self.script.results.get(call.tool.name)

    def _step(self, turn: int, says: Says) -> Any:
        def step(request: Request) -> Says:
            if turn != self._turn:
                self._too_many(request)
            self._said += 1
            return says

        return step

    def _too_many(self, _: Request) -> NoReturn:
        turn = self.script.turns[self._turn]
        raise ModelError(
            f"`{self.script.file}`, line {turn.line}: the turn has no reply {self._said + 1}",
            hint="add it under `replies`; a turn ends with a text",
        )


# ---- from YAML to a script


class _Loader(yaml.SafeLoader):
    """Reads plain values as JSON has them.

    YAML 1.1 makes a truth of `on`, a date of 2026-11-15 and a number of 19:30; in the
    arguments of a tool they are names and texts.
    """


_loader: Any = _Loader  # the stubs of its methods have no types
_loader.yaml_implicit_resolvers = {}
for _tag, _form, _first in (
    ("null", r"(?:~|null|)\Z", ["~", "n", ""]),
    ("bool", r"(?:true|false)\Z", ["t", "f"]),
    ("int", r"-?(?:0|[1-9][0-9]*)\Z", list("-0123456789")),
    ("float", r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?\Z", list("-0123456789")),
):
    _loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_form), _first)


class _Reader:
    def __init__(self, file: str, text: str) -> None:
        self._file = file
        self._loader = _Loader(text)

    def script(self) -> Script:
        try:
            root = self._loader.get_single_node()
            if root is None:
                raise ConfigError(f"`{self._file}` is empty", hint="write `turns:`")
            top = self._pairs(root, "the script", ["turns", "results"], needed="turns")
            turns = tuple(self._turn(node) for node in self._items(top["turns"], "`turns`"))
            results = top.get("results")
            named = {} if results is None else self._pairs(results, "`results`")
            return Script(
                self._file, turns, {key: self._result(node) for key, node in named.items()}
            )
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            line = f", line {mark.line + 1}" if mark else ""
            problem = getattr(error, "problem", None) or "it is not YAML"
            raise ConfigError(f"`{self._file}`{line}: {problem}", hint="mend the YAML") from None

    def _turn(self, node: yaml.Node) -> ScriptTurn:
        keys = ["user", "replies", "approve"]
        pairs = self._pairs(node, "a turn", keys, needed="user")
        user = self._value(pairs["user"])
        if not isinstance(user, str) or not user.strip():
            self._refuse(pairs["user"], f"`user` is {user!r}", "write what the user says")
        if "replies" not in pairs:
            self._refuse(node, "a turn has no `replies`", "write what the model says")
        replies = self._items(pairs["replies"], "`replies`")
        said = self._items(pairs["approve"], "`approve`") if "approve" in pairs else []
        return ScriptTurn(
            user,
            tuple(self._reply(reply) for reply in replies),
            tuple(self._verdict(item) for item in said),
            node.start_mark.line + 1,
            tuple(reply.start_mark.line + 1 for reply in replies),
        )

    def _reply(self, node: yaml.Node) -> Says:
        if isinstance(node, yaml.ScalarNode):
            return Says(str(node.value))
        pairs = self._pairs(node, "a reply", ["text", "calls"])
        text = self._value(pairs["text"]) if "text" in pairs else ""
        if not isinstance(text, str):
            self._refuse(pairs["text"], f"`text` is {text!r}", "write a text")
        calls = self._items(pairs["calls"], "`calls`") if "calls" in pairs else []
        return Says(text, tuple(map(self._call, calls)))

    def _call(self, node: yaml.Node) -> Call:
        pairs = self._pairs(node, "a call")
        if len(pairs) != 1:
            fix = "write one name with its arguments: `- list_notes: {limit: 3}`"
            self._refuse(node, f"a call has {len(pairs)} names", fix)
        name, given = next(iter(pairs.items()))
        arguments = self._value(given)
        # A text is what a model wrote that does not keep to JSON.
        written = arguments if isinstance(arguments, str) else self._json(given, arguments or {})
        return Call(name, written)

    def _verdict(self, node: yaml.Node) -> Verdict:
        said = self._value(node)
        if not isinstance(said, str) or said not in _VERDICTS:
            self._refuse(node, f"an answer is {said!r}", "write yes, always or no")
        return _VERDICTS[said]

    def _result(self, node: yaml.Node) -> Output:
        value = self._value(node)
        if isinstance(value, dict) and set(cast("dict[str, Json]", value)) == {"error"}:
            return Output(str(cast("dict[str, Json]", value)["error"]), is_error=True)
        return Output(value) if isinstance(value, str) else Output(compact(value), value=value)

    def _json(self, node: yaml.Node, value: Json) -> str:
        try:
            return json.dumps(value, ensure_ascii=False)
        except (TypeError, ValueError):
            self._refuse(node, "the arguments are not JSON", "write plain values")

    def _value(self, node: yaml.Node) -> Json:
        loader: Any = self._loader  # its stub leaves out what this returns
        try:
            return loader.construct_object(node, deep=True)
        except ValueError as error:
            self._refuse(node, str(error), "write a plain value")

    def _items(self, node: yaml.Node, what: str) -> list[yaml.Node]:
        if not isinstance(node, yaml.SequenceNode) or not node.value:
            self._refuse(node, f"{what} is no list", "write its items as `- …`")
        return node.value

    def _pairs(
        self,
        node: yaml.Node,
        what: str,
        known: list[str] | None = None,
        *,
        needed: str | None = None,
    ) -> dict[str, yaml.Node]:
        if not isinstance(node, yaml.MappingNode):
            keys = ", ".join(f"`{key}:`" for key in known or ["name"])
            self._refuse(node, f"{what} is no mapping", f"write {keys}")
        pairs: dict[str, yaml.Node] = {}
        for key_node, value in cast("list[tuple[yaml.Node, yaml.Node]]", node.value):
            key = str(key_node.value)
            if known is not None and key not in known:
                self._refuse(key_node, f"unknown key `{key}`", suggestion(key, known))
            if key in pairs:
                self._refuse(key_node, f"the key `{key}` stands twice", "leave one out")
            pairs[key] = value
        if needed is not None and needed not in pairs:
            self._refuse(node, f"{what} has no `{needed}`", f"write `{needed}:`")
        return pairs

    def _refuse(self, node: yaml.Node, problem: str, hint: str) -> NoReturn:
        line = node.start_mark.line + 1
        raise ConfigError(f"`{self._file}`, line {line}: {problem}", hint=hint)
