"""`toolfold.config.sources_of`: a configuration's servers and functions as sources."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from support.gateways import ODD
from support.running import wait
from toolfold import ConfigError
from toolfold.config import GatewayConfig, load_gateway, sources_of
from toolfold.runtime import Agent, ScriptedModel
from toolfold.sources.mcp.mcp_source import McpSource

NOTES = '"""Notes."""\n\n\ndef add(text: str) -> str:\n    """Write a note."""\n    return text\n'


def configure(folder: Path, **servers: object) -> Path:
    (folder / "notes.py").write_text(NOTES, "utf-8")
    odd = {"command": sys.executable, "args": [ODD, "stdio"], "allow": ["echo"], "lazy": True}
    whole = {
        "functions": {"notes": "./notes.py"},
        "mcpServers": {"one": odd, **servers},
        "serve": {"description_limit": 100, "state_dir": str(folder / "state")},
    }
    file = folder / "f.json"
    file.write_text(json.dumps(whole), "utf-8")
    return file


def test_servers_come_first_then_functions_and_an_agent_uses_both(tmp_path: Path) -> None:
    config = load_gateway(configure(tmp_path))

    async def main() -> list[str]:
        sources = sources_of(config)
        assert [source.name for source in sources] == ["one", "notes"]
        async with Agent(ScriptedModel([]), sources, settings=config.settings) as agent:
            assert [tool.name for tool in agent.tools()] == ["one__echo", "notes__add"]
            calls = [("one__echo", {"x": "a"}), ("notes__add", {"text": "b"})]
            return [(await agent.call(name, given)).text for name, given in calls]

    assert wait(main(), 30) == ["a", "b"]


def test_a_server_with_a_problem_comes_with_it(tmp_path: Path) -> None:
    bad = {"command": "x", "env": {"KEY": "${NOT_SET_ANYWHERE}"}}
    config = load_gateway(configure(tmp_path, bad=bad), strict=False)

    async def main() -> None:
        _, source, _ = sources_of(config)
        assert isinstance(source, McpSource)
        async with source:
            assert source.state == "failed"
            assert source.error is not None and "NOT_SET_ANYWHERE" in source.error
            assert source.tools() == ()

    wait(main(), 30)


def test_a_module_that_cannot_be_loaded_is_named(tmp_path: Path) -> None:
    config = load_gateway(configure(tmp_path))
    (tmp_path / "notes.py").unlink()

    with pytest.raises(ConfigError, match="is no Python file"):
        sources_of(config)


def test_a_configuration_without_tools_has_no_sources() -> None:
    assert sources_of(GatewayConfig()) == []
