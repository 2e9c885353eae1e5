"""Old import paths: they still lead there, and say where to."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

MOVED = [
    *(
        (f"toolfold.serve.{module}", name, "toolfold.config", name)
        for module in ("config", "config.load")
        for name in ("GatewayConfig", "find_config", "load_gateway", "missing_hint", "user_config")
    ),
    *(
        ("toolfold.serve.config", name, "toolfold.config", name)
        for name in ("ServeSettings", "Server", "Token")
    ),
    *(
        ("toolfold.serve.access", name, "toolfold.serve.principals", name)
        for name in ("LOCAL", "NOBODY", "Principal", "local_principal", "principal_of")
    ),
    ("toolfold.serve.access", "Doorkeeper", "toolfold.serve.principals", "TokenTable"),
    *(
        ("toolfold.serve.shown", name, "toolfold.invisible", name)
        for name in ("marks", "shown", "shown_texts", "shown_tool")
    ),
    ("toolfold.proxy.store", "MemoryStore", "toolfold.store.entries", "MemoryEntries"),
    ("toolfold.proxy.store", "SqliteStore", "toolfold.store.entries", "SqliteEntries"),
]


@pytest.mark.parametrize(("old", "name", "new", "new_name"), MOVED)
def test_an_old_path_leads_to_the_new_one_and_says_so(
    old: str, name: str, new: str, new_name: str
) -> None:
    with pytest.warns(DeprecationWarning) as warned:
        found = getattr(importlib.import_module(old), name)

    assert found is getattr(importlib.import_module(new), new_name)
    assert str(warned[0].message) == (
        f"`{old}.{name}` is now `{new}.{new_name}`; the old path goes with the next release"
    )
    assert warned[0].filename == __file__


def test_an_import_statement_of_an_old_path_works_and_warns_where_it_stands() -> None:
    code = "from toolfold.serve.config.load import load_gateway\nprint(load_gateway.__module__)"
    done = subprocess.run(
        [sys.executable, "-W", "default", "-c", code], capture_output=True, text=True, check=True
    )

    assert done.stdout == "toolfold.config.gateway_config\n"
    assert "<string>:1: DeprecationWarning: `toolfold.serve.config.load.load_gateway`" in (
        done.stderr
    )


def test_what_never_was_there_is_not_there_now() -> None:
    with pytest.raises(AttributeError, match=r"module 'toolfold\.serve\.access' has no attribute"):
        getattr(importlib.import_module("toolfold.serve.access"), "Nothing")  # noqa: B009


def test_what_the_trust_guide_imports_stays_where_it_was() -> None:
    from toolfold.serve.trust import fingerprint, shown

    assert callable(fingerprint)
    assert callable(shown)
