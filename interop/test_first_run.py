"""From nothing to a search over two real servers, with the guide's own commands."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from first_run import documented, first_run


def test_the_guide_needs_at_most_three_commands() -> None:
    assert len(documented()) <= 3


@pytest.mark.timeout(600)
def test_the_guides_commands_end_in_a_search_over_the_servers_of_two_clients(
    tmp_path: Path,
) -> None:
    *_, taken, searched = first_run(tmp_path)

    assert "time  new" in taken.output
    assert "memory  new, 1 secret stays there" in taken.output
    [config] = (tmp_path / "home").rglob("toolfold.yaml")
    assert set(yaml.safe_load(config.read_text())["mcpServers"]) == {"memory", "time"}
    assert "sk-not-to-be-copied" not in config.read_text()
    assert "time__get_current_time" in searched.output
