"""Modules of Python functions: what is found in them, and what is said where nothing is."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.running import wait
from toolfold import ConfigError, Scope, Tool
from toolfold.runtime import Registry
from toolfold.sources.calls import CallContext, Output, PendingCall
from toolfold.sources.function_modules import FunctionModule, load_functions
from toolfold.sources.source import Source

FUNCTIONS = """
import os
from json import dumps

def get_price(item: str) -> int:
    "Tell a price."
    return len(item)

def set_price(item: str, price: int) -> None:
    "Change a price."

def _own() -> None: ...
"""

REGISTRY = """
from toolfold.runtime import Registry

registry = Registry()

def helper() -> None: ...

@registry.tool(toolset="github", read_only=True)
def get_price(item: str) -> int:
    "Tell a price."
    return len(item)
"""


@pytest.fixture(autouse=True)
def _paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith(("shop_", "broken_", "toolfold_tools_")):
            del sys.modules[name]


def entry(folder: Path, text: str, name: str = "shop_tools.py", **more: object) -> FunctionModule:
    (folder / name).write_text(text, encoding="utf-8")
    given = {"module": f"./{name}", "folder": folder, **more}
    return FunctionModule("shop", **given)  # type: ignore[arg-type]


def refused(given: FunctionModule) -> tuple[str, str | None]:
    with pytest.raises(ConfigError) as caught:
        load_functions(given)
    return caught.value.message.replace(str(given.folder), "DIR"), caught.value.hint


def test_the_public_functions_of_a_file_are_tools_of_its_source(tmp_path: Path) -> None:
    tools = load_functions(entry(tmp_path, FUNCTIONS)).tools()

    assert [(tool.name, tool.source, tool.description) for tool in tools] == [
        ("shop__get_price", "shop", "Tell a price."),
        ("shop__set_price", "shop", "Change a price."),
    ]
    assert tools[0].function is not None
    assert tools[0].function("abc") == 3


def test_a_module_is_imported_by_its_name(tmp_path: Path) -> None:
    given = entry(tmp_path, FUNCTIONS, "shop_module.py", module="shop_module")

    names = [tool.name for tool in load_functions(given).tools()]
    assert names == ["shop__get_price", "shop__set_price"]


def test_where_a_registry_is_made_its_functions_are_the_tools(tmp_path: Path) -> None:
    (tool,) = load_functions(entry(tmp_path, REGISTRY)).tools()

    assert (tool.name, tool.toolset_name, tool.is_read_only) == (
        "shop__get_price",
        "shop",
        True,
    )


def test_allow_and_deny_say_which_functions_exist(tmp_path: Path) -> None:
    allowed = load_functions(entry(tmp_path, FUNCTIONS, allow=("get_*",)))
    denied = load_functions(entry(tmp_path, FUNCTIONS, deny=("get_*",)))

    assert [tool.name for tool in allowed.tools()] == ["shop__get_price"]
    assert [tool.name for tool in denied.tools()] == ["shop__set_price"]


def test_what_cannot_be_loaded_is_refused_with_the_fix(tmp_path: Path) -> None:
    absent = FunctionModule("shop", "no_such_package.tools", folder=tmp_path)
    no_file = FunctionModule("shop", "./none.py", folder=tmp_path)
    broken = entry(tmp_path, "import no_such_thing", "broken_module.py", module="broken_module")

    assert refused(absent) == (
        "`functions.shop`: there is no module 'no_such_package.tools'",
        "install it where toolfold is, or give its file, as `./tools.py`",
    )
    assert refused(no_file) == ("`DIR/none.py` is no Python file", "give the path of a `.py` file")
    assert refused(broken) == (
        "`broken_module`: ModuleNotFoundError: No module named 'no_such_thing'",
        "mend the file",
    )
    assert refused(entry(tmp_path, "\n1 / 0", "zero.py")) == (
        "`DIR/zero.py`, line 2: ZeroDivisionError: division by zero",
        "mend the file",
    )
    assert refused(entry(tmp_path, "X = 1", "empty.py")) == (
        "`./empty.py` has no tools",
        "write functions in it, or a `registry = Registry()` with `@registry.tool`",
    )
    assert refused(entry(tmp_path, "def f(x: object, /): ...", "positional.py")) == (
        "`./positional.py`: the parameter 'x' of 'f' is positional only",
        "a model calls by name: take the `/` out of the signature",
    )


# ---- behind a prefix


def called(source: Source, tool: Tool) -> object:
    return wait(source.call(tool, {}, CallContext(PendingCall(tool, {}), lambda *_: None)))


def priced() -> int:
    return 1


def test_all_tools_behind_a_prefix_are_one_toolset_whatever_they_were_before() -> None:
    registry = Registry()
    registry.tool(priced, toolset="github")

    (tool,) = registry.prefixed("shop").tools()

    assert tool in Scope(allow=("@shop",))
    assert tool not in Scope(allow=("@github",))


def test_a_name_that_clients_do_not_take_is_changed_as_one_of_a_server_is() -> None:
    registry = Registry()
    registry.tool(priced, name="größe")
    source = registry.prefixed("my shop")

    (tool,) = source.tools()

    assert tool.name.isascii()
    assert tool.name.startswith("my_shop__gr__e_")
    assert source.inner_name(tool.name) == "größe"
    assert called(source, tool) == 1


def test_a_tool_that_left_or_became_another_is_not_run_behind_a_prefix() -> None:
    registry = Registry()
    registry.tool(priced)
    source = registry.prefixed("shop")
    (before,) = source.tools()

    registry.remove("priced")
    left = called(source, before)
    registry.tool(lambda: 2, name="priced")
    (after,) = source.tools()

    assert isinstance(left, Output)
    assert left.text.startswith('"shop__priced" is not available')
    assert called(source, before) == left
    assert called(source, after) == 2
