"""Trust decided at a running gateway: by what was seen, and by nothing else."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from support.controlled import Controlled
from support.gateways import client, gateway, odd, run, until
from toolfold.redact import Redactor
from toolfold.serve.control.gateway_control import GatewayControl
from toolfold.serve.control.messages import ControlError
from toolfold.serve.observe.audit import AuditLog
from toolfold.serve.trust.store import TrustStore
from toolfold.serve.trust.verdicts import Trust


@asynccontextmanager
async def waiting(
    state: Path, about: str, *, audit: AuditLog | None = None
) -> AsyncIterator[tuple[Controlled, Any]]:
    """A gateway whose server's `echo` says something."""
    trust = Trust(TrustStore(state), "changes")
    server = odd("one", allow=("echo", "pid"), env={"ABOUT": about})
    async with (
        gateway(server, trust=trust, settings={"enabled": "off"}) as made,
        client(made) as c,
    ):
        yield Controlled(made, GatewayControl("stdio", audit=audit)), c


async def names(c: Any) -> set[str]:
    return {tool.name for tool in (await c.list_tools()).tools}


def test_what_waits_is_told_with_the_difference_and_served_once_it_is_approved(
    tmp_path: Path,
) -> None:
    audit = AuditLog(tmp_path / "audit.jsonl", Redactor())

    async def main() -> None:
        async with waiting(tmp_path, "Say a text back.") as (control, c):
            assert (await control.ask("trust.pending"))["servers"] == []
        async with waiting(tmp_path, "Say <b>evil\u202e</b>.", audit=audit) as (control, c):
            pending = await control.ask("trust.pending")
            assert (pending["mode"], pending["count"]) == ("changes", 1)
            [server] = pending["servers"]
            [tool] = server["tools"]
            assert (server["server"], tool["tool"], tool["reason"]) == (
                "one", "one__echo", "changed"
            )  # fmt: skip
            assert "  + Say <b>evil[U+202E]</b>." in tool["difference"]
            assert any("direction of writing" in mark for mark in tool["marks"])
            assert await names(c) == {"one__pid"}

            done = await control.ask(
                "trust.approve", server="one", tool="one__echo", fingerprint=tool["fingerprint"]
            )
            assert done == {"server": "one", "approved": ["one__echo"]}
            assert await names(c) == {"one__echo", "one__pid"}
            assert (await control.ask("trust.pending"))["count"] == 0

    run(main, 90)
    [line] = [json.loads(line) for line in audit.path.read_text("utf-8").splitlines()]
    assert (line["verb"], line["target"]) == ("trust.approve", "one__echo")


def test_what_changed_since_it_was_seen_is_not_approved(tmp_path: Path) -> None:
    async def main() -> None:
        async with waiting(tmp_path, "One."):
            pass
        async with waiting(tmp_path, "Two.") as (control, c):
            [server] = (await control.ask("trust.pending"))["servers"]
            seen = server["tools"][0]["fingerprint"]
        async with waiting(tmp_path, "Three.") as (control, c):
            for arguments in (
                {"server": "one", "tool": "one__echo", "fingerprint": seen},
                {"server": "one", "digest": server["digest"]},
            ):
                for verb in ("trust.approve", "trust.reject"):
                    with pytest.raises(ControlError) as caught:
                        await control.ask(verb, **arguments)
                    assert caught.value.code == "changed"
            with pytest.raises(ControlError) as caught:
                await control.ask("trust.approve", server="one", tool="one__pid", fingerprint=seen)
            assert caught.value.code == "not_waiting"
            assert await names(c) == {"one__pid"}

            [server] = (await control.ask("trust.pending", server="one"))["servers"]
            done = await control.ask("trust.approve", server="one", digest=server["digest"])
            assert done["approved"] == ["one__echo"]
            assert await names(c) == {"one__echo", "one__pid"}

    run(main, 90)


def test_what_was_turned_down_waits_no_more_and_is_not_served(tmp_path: Path) -> None:
    async def main() -> None:
        async with waiting(tmp_path, "One."):
            pass
        async with waiting(tmp_path, "Two.") as (control, c):
            [server] = (await control.ask("trust.pending"))["servers"]
            done = await control.ask("trust.reject", server="one", digest=server["digest"])
            assert done == {"server": "one", "rejected": ["one__echo"]}
            assert (await control.ask("trust.pending"))["count"] == 0
            assert await names(c) == {"one__pid"}

    run(main, 90)


def test_of_what_was_not_all_shown_not_all_can_be_approved_at_once(tmp_path: Path) -> None:
    async def main() -> None:
        trust = Trust(TrustStore(tmp_path), "all")
        async with gateway(odd("one", allow=("echo", "pid")), trust=trust) as made:
            control = Controlled(made)
            await until(lambda: made.pool.is_quarantined("one"))
            [server] = (await control.ask("trust.pending", limit=1))["servers"]
            assert (server["count"], len(server["tools"]), server["digest"]) == (2, 1, None)
            [server] = (await control.ask("trust.pending", tool="one__pid"))["servers"]
            assert [tool["tool"] for tool in server["tools"]] == ["one__pid"]

    run(main)
