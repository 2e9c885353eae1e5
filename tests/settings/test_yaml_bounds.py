"""Files of a few lines that stand for millions of values."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from toolfold import ConfigError, load_settings
from toolfold.config.references import parse_document
from toolfold.settings.yaml_nodes import construct

LAUGHS = "a0: &a0 [x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12)
)
SELF = "a: &a [*a]\n"
DEEP = "a: " + "[" * 5_000 + "]" * 5_000


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (LAUGHS, "with its aliases it holds more than 100,000 values"),
        (SELF, "an alias holds itself"),
        (DEEP, "it nests too deep"),
    ],
    ids=["laughs", "self", "deep"],
)
def test_a_file_that_comes_to_too_much_is_refused_at_once(
    tmp_path: Path, text: str, problem: str
) -> None:
    file = tmp_path / "host.yaml"
    file.write_text(f"tools:\n  tool_search: {{enabled: on}}\n{text}", "utf-8")

    began = time.process_time()
    with pytest.raises(ConfigError, match=problem):
        load_settings(file, environ={})
    assert time.process_time() - began < 3


@pytest.mark.parametrize("text", [LAUGHS, SELF, DEEP], ids=["laughs", "self", "deep"])
def test_another_clients_file_that_comes_to_too_much_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="it is not YAML"):
        parse_document(text, Path("config.yaml"))


def test_aliases_that_come_to_little_stand_for_what_they_name() -> None:
    assert construct("a: &a {x: [1, 2]}\nb: *a\nc: {<<: *a, y: 3}") == {
        "a": {"x": [1, 2]},
        "b": {"x": [1, 2]},
        "c": {"x": [1, 2], "y": 3},
    }
    assert construct("") is None
