"""What clients send through the proxy for one task, as a table: tools, and tokens by o200k_base.

.interop/venv/bin/python interop/proxied_requests.py
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from coding_clients import is_installed
from proxied_clients import ProxiedClaude, ProxiedCodex, ProxiedOpenCode, ProxiedQwen
from raw_json import member
from scripted_model import DIALECTS, Asked, Call, Part, Say
from test_proxy_clients import Proxied, staged

from conftest import tokens

CLIENTS: Sequence[tuple[str, Proxied]] = (
    ("Claude Code", ProxiedClaude()),
    ("Codex, a model it does not know", ProxiedCodex()),
    ("OpenCode", ProxiedOpenCode()),
    ("Qwen Code", ProxiedQwen()),
)


def play(asked: Asked) -> Sequence[Part]:
    """Search, call what was found, and end."""
    prefix = "toolfold" if asked.tool("toolfold_search") else "tool"
    found = asked.text_of(f"{prefix}_search")
    if not asked.tools:
        return [Say("A title")]
    if found is None:
        return [Call(f"{prefix}_search", {"query": "archive an invoice"})]
    if asked.text_of(f"{prefix}_call") is None:
        names = ("mcp__office__archive_invoice", "office_archive_invoice")
        name = next(name for name in names if name in found)
        return [Call(f"{prefix}_call", {"name": name, "arguments": {"number": 7}})]
    return [Say("It is archived.")]


def main() -> int:
    """Print the table."""
    folder = Path(tempfile.mkdtemp(prefix="proxied-requests-"))
    print(
        "| client | of the client: requests | tools | tokens of `tools` | upstream: requests |"
        " tools | tokens of `tools` |"
    )
    print("|---|---|---|---|---|---|---|")
    try:
        for title, client in CLIENTS:
            if not is_installed(client):
                continue
            with staged(client, folder / client.program, play) as stage:
                _, said = stage.run("Archive invoice 7.")
            turns = stage.model.turns
            dialect = next(one for one in DIALECTS if one.name == turns[0].dialect)
            before = dialect.read(said[0].path, {}, said[0].body)
            cells = [title, len(said), len(before.tools)]
            cells += [f"{tokens(member(said[0].body.decode(), 'tools')):,}"]
            cells += [len(turns), len(turns[0].tools)]
            cells += [f"{tokens(member(turns[0].body.decode(), 'tools')):,}"]
            print(f"| {' | '.join(map(str, cells))} |", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
