"""`toolfold reload`, from another terminal, and what a gateway with a broken file says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from support.served import Served
from support.servers.place import Place, prepared
from toolfold.cli import main

pytestmark = pytest.mark.slow


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with prepared(tmp_path) as made:
        yield made


def invoke(*words: str) -> Any:
    return CliRunner().invoke(main, list(words))


def test_a_reload_is_taken_up_and_told_and_a_broken_file_changes_nothing(place: Place) -> None:
    state = str(place.config.parent / "state")
    place.add("good")
    with Served(place) as served:
        served.greet()
        served.wait_for("server good: ready")
        place.add("more").serve(drain=3)

        told = invoke("reload", "--state-dir", state)
        assert told.exit_code == 0, told.output
        assert told.stdout == (
            f"gateway {served.process.pid}: servers added: more\n"
            "  settings: serve.drain\n"
            "  permits more than before: server 'more' is new\n"
        )
        served.wait_for("server more: ready")
        same = invoke("reload", "--state-dir", state)
        assert same.stdout == f"gateway {served.process.pid}: nothing is different\n"

        place.config.write_text('{"mcpServers": {"good": {', "utf-8")
        broken = invoke("reload", "--state-dir", state)
        assert broken.exit_code == 1
        assert "mend the JSON" in broken.stderr
        status = invoke("status", "--state-dir", state)
        assert "the configuration stays as it was: cannot read" in status.stdout
        assert served.call("good__echo", "a") == "good:a"
