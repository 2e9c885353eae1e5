"""What holds for the package as a whole: its surface, its imports, its size."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import rooms

import toolfold

SOURCE = Path(toolfold.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))


def test_the_public_surface_is_sorted_unique_and_there() -> None:
    names = toolfold.__all__

    assert sorted(names, key=lambda n: (not n.isupper(), not n[0].isupper(), n)) == names
    assert len(set(names)) == len(names)
    assert [name for name in names if not hasattr(toolfold, name)] == []


def test_what_the_readme_promises_is_public() -> None:
    assert {"Session", "Settings", "Scope", "Tool", "Catalog", "fold", "load_settings"} <= set(
        toolfold.__all__
    )


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_every_name_a_module_exports_is_there(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    exported = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__"
    ]
    defined = {
        name
        for node in ast.walk(tree)
        for name in (
            [getattr(node, "name", "")]
            + [
                alias.asname or alias.name
                for alias in getattr(node, "names", [])
                if not isinstance(alias, str)
            ]
            + [getattr(node, "id", "")]
        )
    }

    assert [name for names in exported for name in names if name not in defined] == []


def types_of(path: Path) -> Iterator[str]:
    """The public classes and type aliases of a module."""
    for node in ast.parse(path.read_text("utf-8")).body:
        match node:
            case ast.ClassDef(name=name):
                pass
            case ast.Assign(targets=[ast.Name(id=name)]) if not name.isupper():
                pass
            case ast.AnnAssign(target=ast.Name(id=name)) if not name.isupper():
                pass
            case _:
                continue
        if name[0].isupper():
            yield name


ASGI_WORDS = frozenset({"Message", "Scope"})
"""What ASGI itself calls the things that its applications are given."""


def test_a_public_type_has_a_name_of_its_own() -> None:
    modules: dict[str, list[str]] = {}
    for path in MODULES:
        for name in types_of(path):
            modules.setdefault(name, []).append(path.relative_to(SOURCE).as_posix())

    # An adapter speaks its framework's words, and a program has one framework.
    twice = {
        name: where
        for name, where in modules.items()
        if len(where) > 1 and not all(path.startswith("adapters/") for path in where)
    }

    assert {n: w for n, w in twice.items() if n not in ASGI_WORDS} == {}


def test_every_room_has_its_place_in_the_order() -> None:
    placed = [room for layer in rooms.LAYERS for room in layer]
    there = {rooms.room_of(name) for name in rooms.modules() if name}

    assert sorted(there - set(placed)) == [], "add them to LAYERS of docs/rooms.py"
    assert len(placed) == len(set(placed))


@pytest.mark.parametrize("name", [name for name in rooms.modules() if name])
def test_a_module_imports_nothing_from_above_or_beside_its_room(name: str) -> None:
    room = rooms.room_of(name)
    against = [
        other
        for other in sorted(rooms.imports(name))
        if rooms.room_of(other) != room
        # The package itself stands on nearly all rooms.
        and (not other or rooms.level(rooms.room_of(other)) >= rooms.level(room))
        and (name, other) not in rooms.EXCEPTIONS
    ]

    assert against == [], f"{name} stands on line {rooms.level(room)} of LAYERS in docs/rooms.py"


@pytest.mark.parametrize(("name", "other"), rooms.EXCEPTIONS)
def test_an_exception_to_the_order_is_one_that_is_still_made(name: str, other: str) -> None:
    assert other in rooms.imports(name)
    assert rooms.level(rooms.room_of(other)) >= rooms.level(rooms.room_of(name))


@pytest.mark.parametrize(
    ("room", "allowed"),
    [
        ("errors", set()),
        ("_memo", set()),
        ("_characters", set()),
        ("_bounds", {"_characters"}),
        ("_terminal", {"_bounds"}),
        ("_json_values", {"errors"}),
        ("tool", {"errors", "_json_values"}),
        ("scope", {"errors", "tool"}),
        ("wire", {"errors", "_bounds", "_json_values", "_memo", "tool", "wire"}),
        ("catalog", {"errors", "_memo", "scope", "tool", "wire"}),
        ("tokens", {"errors", "_json_values"}),
        ("_signature", {"_bounds", "_json_values", "_memo", "tool"}),
        ("settings", {"errors", "scope", "settings", "tool"}),
        ("session", set()),
    ],
)
def test_the_lower_rooms_import_only_lower_ones(room: str, allowed: set[str]) -> None:
    assert rooms.direct()[room] <= allowed


def test_search_knows_nothing_of_sources_nor_of_what_a_model_reads() -> None:
    assert not rooms.direct()["search"] & {"wire", "prompts", "catalog", "answer"}


def test_no_adapter_is_imported_by_anything_and_none_knows_another() -> None:
    shared = {"adapters", "adapters._folding"}
    known = {name: rooms.imports(name) for name in rooms.modules() if name}

    importing = {
        name: adapters
        for name, others in known.items()
        if (adapters := {o for o in others if rooms.room_of(o) == "adapters"} - {name})
        and not (rooms.room_of(name) == "adapters" and adapters <= shared)
    }

    assert importing == {}


def test_strategies_know_nothing_of_who_asks_them() -> None:
    assert not rooms.direct()["strategy"] & {"bridge", "gate", "fold"}


def test_only_the_strategies_themselves_and_their_settings_know_their_names() -> None:
    """Nothing else asks which strategy it is: what differs, a strategy says."""
    names = {"stub", "reveal"}
    owners = {"strategy", "settings", "evaluation"}
    found = {
        (path.relative_to(SOURCE).as_posix(), node.lineno)
        for path in MODULES
        if path.relative_to(SOURCE).parts[0] not in owners
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Compare)
        for side in (node.left, *node.comparators)
        if isinstance(side, ast.Constant) and side.value in names
    }

    # The gateway tells once that it obeys a name that it passed over before.
    assert {path for path, _ in found} <= {"config/gateway_config.py"}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_no_file_is_long_and_each_says_what_it_is(path: Path) -> None:
    text = path.read_text("utf-8")

    assert len(text.splitlines()) <= 500
    assert not text.strip() or ast.get_docstring(ast.parse(text))


def python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_toolfold_imports_nothing_heavy() -> None:
    heavy = ("numpy", "jsonschema_rs", "yaml", "click", "Stemmer", "docstring_parser", "tiktoken")

    loaded = python(
        f"import sys, toolfold; print([name for name in {heavy!r} if name in sys.modules])"
    )

    assert loaded == "[]"


def test_folding_imports_neither_the_validator_nor_yaml_nor_click() -> None:
    loaded = python(
        "import sys, toolfold; toolfold.fold([{'name': 'a'}]);"
        "print([n for n in ('jsonschema_rs', 'yaml', 'click', 'numpy') if n in sys.modules])"
    )

    assert loaded == "[]"


def test_importing_toolfold_reads_nothing_that_only_a_search_or_a_settings_file_needs() -> None:
    loaded = python(
        "import sys, toolfold;"
        "print([n for n in ('settings.load', 'settings.file', 'settings.block', 'search._text',"
        " 'search._clauses', 'search.hybrid', '_companions', '_search_page', '_suggestions',"
        " '_missed', 'sources', 'dispatch', 'config') if f'toolfold.{n}' in sys.modules])"
    )

    assert loaded == "[]"


def test_a_gateway_starts_its_servers_before_it_reads_the_protocols_library() -> None:
    loaded = python(
        "import sys, toolfold.serve._run_gateway;"
        "print([n for n in ('mcp', 'jwt', 'cryptography', 'starlette') if n in sys.modules])"
    )

    assert loaded == "[]"


def test_what_is_read_when_first_asked_for_is_there_under_its_name() -> None:
    said = python(
        "import toolfold, toolfold.search, toolfold.settings;"
        "from toolfold import *;"
        "print(load_settings is toolfold.settings.load_settings, toolfold.search.clauses('a b'),"
        " hasattr(toolfold, 'no_such_name'), hasattr(toolfold.settings, 'no_such_name'))"
    )

    assert said == "True ['a b'] False False"


def test_nothing_reaches_for_the_network_or_writes_a_file_at_import() -> None:
    code = """
import sys
seen = []
def watch(event, arguments):
    if event.startswith("socket.") or event in ("subprocess.Popen", "os.mkdir"):
        seen.append(event)
    if event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+"):
        seen.append(f"{event} {arguments[0]}")
sys.dont_write_bytecode = True
sys.addaudithook(watch)
import toolfold
toolfold.fold([{"name": "a"}], settings=toolfold.Settings(enabled="on"))
print(seen)
"""

    assert python(code) == "[]"


def test_importing_toolfold_sets_no_logging_up() -> None:
    assert python("import logging, toolfold; print(logging.root.handlers)") == "[]"
