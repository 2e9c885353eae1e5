"""`toolfold chat` over a real server and functions beside it, by a script."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from gateways import TOOLFOLD
from servers import World

SCRIPT = """
turns:
  - user: What is noon of Kolkata in Tokyo? Note it.
    replies:
      - calls: [{tool_search: {query: convert a time between time zones | write a note}}]
      - calls:
          - tool_call:
              name: time__convert_time
              arguments:
                {source_timezone: Asia/Kolkata, time: "12:00", target_timezone: Asia/Tokyo}
      - calls: [{tool_call: {name: notes__add, arguments: {text: 15:30}}}]
      - It is noted.
    approve: [yes]
"""
NOTES = '''
def add(text: str) -> str:
    """Write a note."""
    return f"noted {text}"
'''


def test_a_script_is_played_over_a_real_server_and_functions(world: World, tmp_path: Path) -> None:
    config = {
        "mcpServers": {"time": world.entries["time"]},
        "functions": {"notes": "./notes.py"},
        "serve": {"state_dir": str(tmp_path / "state")},
        "tools": {"tool_search": {"enabled": "on", "cache_dir": "off"}},
    }
    (tmp_path / "notes.py").write_text(NOTES, encoding="utf-8")
    (tmp_path / "f.json").write_text(json.dumps(config), encoding="utf-8")
    (tmp_path / "script.yaml").write_text(SCRIPT, encoding="utf-8")

    command = [TOOLFOLD, "chat", "--script", "script.yaml", "--config", "f.json"]
    ran = subprocess.run(
        [*command, "--transcript", "t.jsonl"],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=90,
    )

    assert (ran.returncode, ran.stderr) == (0, ""), ran.stdout
    assert "✓ time__convert_time" in ran.stdout
    assert 'Run notes__add {"text": "15:30"}? [y]es / [a]lways / [N]o y' in ran.stdout
    lines = (tmp_path / "t.jsonl").read_text(encoding="utf-8").splitlines()
    messages = [json.loads(line) for line in lines]
    found, converted, noted = [m["text"] for m in messages if m["role"] == "result"]
    assert "time__convert_time" in found and "notes__add" in found
    assert json.loads(converted)["target"]["datetime"].endswith("T15:30:00+09:00")
    assert noted == "noted 15:30"
