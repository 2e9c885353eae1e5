"""What strangers named reaches the terminal without escapes, whatever the command."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest
from click.testing import CliRunner

from toolfold.cli import main

CLEAR, CSI, TURN, BELL = "\x1b[2J\x1b]0;owned\x07", "\x9b31m", "\u202e", "\x07"
EVIL = f"wipe{CLEAR}{CSI}{TURN}{BELL}disk"
TOOLS = [
    {
        "name": EVIL,
        "description": f"Wipe {CLEAR} the disk {CSI}.",
        "server": f"srv{CLEAR}",
        "parameters": {
            "type": "object",
            "properties": {f"p{CLEAR}": {"enum": [CSI], "description": TURN}},
        },
    },
    {"name": f"{EVIL}2", "description": "", "server": f"srv{CLEAR}"},
]

COMMANDS = [
    ("list",),
    ("list", "--json"),
    ("search", "wipe the disk"),
    ("search", "wipe the disk", "--explain"),
    ("search", "wipe the disk", "--json"),
    ("search", "zzz qqq", "--explain"),
    ("describe", EVIL),
    ("describe", EVIL, "--json"),
    ("describe", f"{EVIL}x"),
    ("check",),
    ("check", "--json"),
    ("fold",),
    ("fold", "--diff"),
    ("fold", "--json"),
    ("list", "--allow", f"@{EVIL}"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: " ".join(c).encode("ascii", "replace"))
def test_no_command_passes_an_escape_on(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(tmp_path)
    Path("tools.json").write_text(json.dumps(TOOLS), encoding="utf-8")

    ran = CliRunner().invoke(main, [*command, "--catalog", "tools.json"])

    for text in (ran.stdout, ran.stderr):
        bad = [c for c in text if c not in "\n\t" and unicodedata.category(c) in ("Cc", "Cf")]
        assert bad == []
    if "--json" in command and ran.exit_code == 0:
        json.loads(ran.stdout)
