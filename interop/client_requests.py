"""What Claude Code and Codex send for one task, as a table: tools, and tokens by o200k_base.

.interop/venv/bin/python interop/client_requests.py
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from coding_clients import ClaudeCode, Codex, CodingClient, Session, hold, is_installed, unmarked
from gateways import Gateway, configured
from scripted_model import Asked
from servers import World
from test_coding_clients import CLAUDE, QUESTION, TASK, UNKNOWN

from conftest import tokens


def row(title: str, turns: list[Asked]) -> str:
    """Return a line of the table."""
    first = turns[0]
    shown = [tool for tool in first.tools if not tool.is_deferred]
    ours = [t for t in shown if "toolfold" in t.name or "toolfold" in t.namespace]
    sizes = (
        tokens(json.dumps(first.content["tools"], ensure_ascii=False)),
        tokens(json.dumps([tool.record for tool in ours], ensure_ascii=False)) if ours else 0,
        sum(tokens(json.dumps(asked.content, ensure_ascii=False)) for asked in turns),
    )
    cells = [title, str(len(turns)), str(len(shown)), str(len(ours)), *(f"{n:,}" for n in sizes)]
    return f"| {' | '.join(cells)} |"


def main() -> int:
    """Print the table."""
    folder = Path(tempfile.mkdtemp(prefix="client-requests-"))
    world = World(folder / "world", "")
    world.folder.mkdir()
    world.build()
    folded = configured(folder / "folded", world.entries)
    plain = configured(folder / "plain", world.entries, fold="off")
    every = ClaudeCode(more={"ENABLE_TOOL_SEARCH": "false"})

    def as_it_is(session: Session) -> None:
        """Change nothing."""

    cases: list[tuple[str, CodingClient, str, Gateway, Callable[[Session], None]]] = [
        ("Claude Code, folded, before", ClaudeCode(), CLAUDE, folded, unmarked),
        ("Claude Code, folded", ClaudeCode(), CLAUDE, folded, as_it_is),
        ("Claude Code, not folded, its own search", ClaudeCode(), CLAUDE, plain, unmarked),
        ("Claude Code, not folded, all shown", every, CLAUDE, plain, unmarked),
        ("Codex, folded", Codex(), UNKNOWN, folded, as_it_is),
        ("Codex, not folded", Codex(), UNKNOWN, plain, as_it_is),
    ]
    named = f"select:mcp__toolfold__{TASK.tool}"
    plays = {"folded": TASK, "plain": replace(TASK, own_search={"ToolSearch": {"query": named}})}
    try:
        print("| | requests | tools seen at first | ours | tokens of `tools` | of ours | of all |")
        print("|---|---|---|---|---|---|---|")
        for number, (title, client, model, gateway, change) in enumerate(cases):
            if is_installed(client):
                where = folder / str(number)
                play = plays["folded" if gateway is folded else "plain"]
                _, turns = hold(client, gateway, where, model, QUESTION, play, change)
                print(row(title, turns), flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
