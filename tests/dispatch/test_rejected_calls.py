"""A call that is not run is recorded as one of the tool it was of, where there is one."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from toolfold import Scope, Settings, fold
from toolfold.runtime import Activity, Batch, Call, Hook, PendingCall, Refusal, Registry
from toolfold.serve.observe.audit import AuditLog


def _registry() -> Registry:
    registry = Registry()

    def open_gate(height: int) -> str:
        """Open the gate."""
        return "open"

    def secret_gate() -> str:
        """Open the secret gate."""
        return "open"

    def core_gate() -> str:
        """Open the gate that is always there."""
        return "open"

    for function in (open_gate, secret_gate, core_gate):
        registry.tool(function, toolset="gates")
    return registry


class _No(Hook):
    def before_call(self, call: PendingCall) -> Refusal:
        return Refusal("No.")


def _heard(
    name: str, arguments: str, *, prefix: str = "tool", observers: Any = (), hooks: Any = ()
) -> Activity:
    """Return what is heard of one call that is not run."""
    registry = _registry()
    settings = Settings(enabled="on", bridge_prefix=prefix, core=("core_gate",))
    folded = fold(registry.tools(), settings=settings, scope=Scope(deny=("secret_*",)))
    heard: list[Activity] = []

    async def main() -> None:
        batch = Batch(
            (Call(name, arguments),),
            folded,
            registry,
            listener=heard.append,
            observers=observers,
            hooks=hooks,
        )
        await batch.run()
        assert batch.results[0].is_error

    asyncio.run(main())
    (only,) = heard
    return only


def _through(name: str, arguments: Any) -> str:
    return json.dumps({"name": name, "arguments": arguments})


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("tool_call", _through("open_gate", {"height": "high"}), ("open_gate", "tool_call")),
        ("tool_call", _through("open_gate", {}), ("open_gate", "tool_call")),
        ("tool_call", _through("open_gate", {"height": 1, "widht": 2}), ("open_gate", "tool_call")),
        ("tool_call", _through("open_gate", "{"), ("open_gate", "tool_call")),
        ("tool_call", _through("core_gate", {}), ("core_gate", "tool_call")),
        ("open_gate", '{"height": "high"}', ("open_gate", "direct")),
        ("tool_call", _through("secret_gate", {}), ("tool_call", "tool_call")),
        ("tool_call", _through("no_such_gate", {}), ("tool_call", "tool_call")),
        ("tool_call", "{", ("tool_call", "tool_call")),
    ],
)
def test_a_rejected_call_is_told_with_the_name_of_the_tool_it_was_of(
    name: str, arguments: str, expected: tuple[str, str]
) -> None:
    activity = _heard(name, arguments)

    assert (activity.kind, activity.tool, activity.via) == ("rejected", *expected)
    assert activity.toolset == (None if activity.tool == "tool_call" else "gates")


def test_a_refusal_of_a_hook_is_told_with_the_real_name() -> None:
    activity = _heard("tool_call", _through("open_gate", {"height": 1}), hooks=(_No(),))

    assert (activity.kind, activity.tool, activity.via) == ("refused", "open_gate", "tool_call")


def test_a_renamed_bridge_is_still_seen_through() -> None:
    activity = _heard("gate_call", _through("open_gate", {}), prefix="gate")

    assert (activity.tool, activity.via) == ("open_gate", "tool_call")


@pytest.mark.parametrize("prefix", ["tool", "gate"])
@pytest.mark.parametrize(
    ("tool", "arguments"), [("open_gate", {"height": "high"}), ("no_such_gate", {})]
)
def test_the_audit_holds_the_name_behind_the_bridge(
    tmp_path: Path, prefix: str, tool: str, arguments: Any
) -> None:
    log = AuditLog(tmp_path / "audit.jsonl")
    _heard(f"{prefix}_call", _through(tool, arguments), prefix=prefix, observers=(log,))
    log.close()

    (line,) = (tmp_path / "audit.jsonl").read_text("utf-8").splitlines()
    entry = json.loads(line)
    assert (entry["tool"], entry["via"], entry["outcome"]) == (tool, "tool_call", "refused")


def test_a_search_in_error_is_not_audited_whatever_it_is_called(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.jsonl")
    _heard("gate_search", "{}", prefix="gate", observers=(log,))
    log.close()

    path = tmp_path / "audit.jsonl"
    assert not path.exists() or not path.read_text("utf-8")
