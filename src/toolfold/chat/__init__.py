"""An agent in the terminal: what `toolfold chat` is made of.

`Talk` leads a conversation; `Screen` and `Feed` show it, `Asker` asks the person, `Script`
stands in for the model and the person, `open_tools` finds what the agent may run.
"""

from toolfold.chat.asker import Asker
from toolfold.chat.feed import Feed
from toolfold.chat.screen import Screen
from toolfold.chat.script import Replay, Script, load_script
from toolfold.chat.talk import Talk, TurnOutcome
from toolfold.chat.tool_files import open_tools
from toolfold.chat.transcript_file import Transcript

__all__ = [
    "Asker",
    "Feed",
    "Replay",
    "Screen",
    "Script",
    "Talk",
    "Transcript",
    "TurnOutcome",
    "load_script",
    "open_tools",
]
