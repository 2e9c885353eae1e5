"""What a person can say to the terminal itself: `/help`, `/tools`, `/save`, `/new`, `/quit`."""

from __future__ import annotations

import re
from collections import Counter
from difflib import get_close_matches
from typing import TYPE_CHECKING

from toolfold import prompts
from toolfold._bounds import one_line
from toolfold.bridge import Bridge
from toolfold.catalog import Catalog
from toolfold.chat.transcript_file import Transcript
from toolfold.errors import ToolfoldError

if TYPE_CHECKING:
    from toolfold.chat.talk import Talk

__all__ = ["Commands"]

# A path is no command: `/etc/hosts` goes to the model.
_COMMAND = re.compile(r"/([a-z?]+)(?:\s+(.*))?\Z", re.DOTALL)
_HELP = {
    "/help": "this list",
    "/tools [WORDS]": "the tools there are, or those that fit the words",
    "/save FILE": "write the conversation to a new file, as JSON lines without secrets",
    "/new": "start another conversation",
    "/quit": "end; so do Ctrl-C and Ctrl-D",
}


class Commands:
    """Runs what starts with a slash.

    Args:
        talk: The conversation at the prompt.
    """

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self.ended = False
        """Whether the person wants to end."""

    def run(self, line: str) -> bool:
        """Run a line if it is a command, and return whether it is one."""
        match = _COMMAND.match(line)
        if match is None:
            return False
        name, rest = match[1], (match[2] or "").strip()
        screen = self._talk.screen
        try:
            match name:
                case "help" | "?":
                    for usage, meaning in _HELP.items():
                        screen.line(f"  {usage:<16}{meaning}")
                case "tools":
                    self._tools(rest)
                case "save":
                    self._save(rest)
                case "new":
                    self._talk.renew()
                    screen.line("  a new conversation")
                case "quit" | "exit":
                    self.ended = True
                case _:
                    near = get_close_matches(name, ["help", "tools", "save", "new", "quit"], n=1)
                    fix = f"did you mean /{near[0]}?" if near else "/help lists them"
                    raise ToolfoldError(f"no command is named /{name}", hint=fix)
        except ToolfoldError as error:
            screen.fault(error)
        return True

    def _tools(self, words: str) -> None:
        self._found(words)
        for away in self._talk.agent.absent():
            self._talk.screen.line(
                f"  {prompts.absent_source(away.name, away.cause, away.retry_in)}"
            )

    def _found(self, words: str) -> None:
        folded = self._talk.assembled()
        screen = self._talk.screen
        if any(character.isalnum() for character in words):
            hits = Bridge.over(folded.catalog, self._talk.agent.settings).search(words, 5)
            for hit in hits:
                name = one_line(hit.name, 80)
                screen.line(f"  {name}  {one_line(hit.summary, 160)}".rstrip())
            if not hits:
                screen.line(f"  no tool fits ({len(folded.catalog):,} searched)")
            return
        for source, count in _sources(folded.catalog).items():
            screen.line(f"  {one_line(source, 60)}  {prompts.plural(count, 'tool')}")
        report = folded.report
        screen.line(f"  {report.kept:,} kept, {report.deferred:,} deferred: {report.reason}")

    def _save(self, file: str) -> None:
        if not file:
            raise ToolfoldError("/save needs a file", hint="write /save talk.jsonl")
        transcript = Transcript(file, new=True, secrets=self._talk.secrets)
        transcript.add(self._talk.conversation.messages)
        count = len(self._talk.conversation.messages)
        self._talk.screen.line(f"  {prompts.plural(count, 'message')} in {one_line(file, 200)}")


def _sources(catalog: Catalog) -> Counter[str]:
    return Counter(tool.toolset_name or "others" for tool in catalog)
