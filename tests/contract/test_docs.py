"""The documentation: what it says is true, and nothing public is missing from it."""

from __future__ import annotations

import builtins
import importlib.util
import json
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import click
import pytest
import rooms
from click.testing import CliRunner

import toolfold
from toolfold import Settings, errors, load_settings
from toolfold.cli import main
from toolfold.settings import ENVIRONMENT, PRESETS

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
README = ROOT / "README.md"
SECURITY = ROOT / "SECURITY.md"
PAGES = [
    README,
    SECURITY,
    ROOT / "CHANGELOG.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(DOCS.rglob("*.md")),
]

_BLOCK = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_INFO_STRINGS = {"python", "python no-run", "python adapter", "sh", "text", "yaml", "json"}
"""What a block may be. One marked `adapter` runs beside its framework, in `make adapters`."""


def _id(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _blocks(path: Path, info: str) -> list[tuple[int, str]]:
    """Return the blocks with this info string, each with the line it starts on."""
    text = _text(path)
    return [
        (text.count("\n", 0, match.start()) + 2, match[2])
        for match in _BLOCK.finditer(text)
        if match[1] == info
    ]


def _prose(path: Path) -> str:
    return _BLOCK.sub("", _text(path))


def _reference(name: str) -> str:
    return _text(DOCS / "reference" / name)


def _generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_generate", DOCS / "generate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _root() -> click.Context:
    return main.make_context("toolfold", [], resilient_parsing=True)


def _commands() -> Iterator[tuple[str, click.Command]]:
    context = _root()
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        assert command is not None
        yield name, command


@pytest.fixture
def no_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the settings to the page: an empty folder, and none of our variables."""
    monkeypatch.chdir(tmp_path)
    for name in (*ENVIRONMENT, "TOOLFOLD_CONFIG"):
        monkeypatch.delenv(name, raising=False)


# ---- what the pages say is true


@pytest.mark.parametrize("page", [p for p in PAGES if _blocks(p, "python")], ids=_id)
@pytest.mark.usefixtures("no_settings")
def test_every_python_block_of_a_page_runs(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)
    monkeypatch.setattr(builtins, "print", lambda *_args, **_options: None)
    for line, code in _blocks(page, "python"):
        # Blank lines before the code make a traceback's lines those of the page.
        exec(compile("\n" * (line - 1) + code, str(page), "exec"), vars(module))


@pytest.mark.parametrize("page", [p for p in PAGES if _blocks(p, "yaml")], ids=_id)
@pytest.mark.usefixtures("no_settings")
def test_every_settings_file_of_a_page_can_be_read(page: Path) -> None:
    for _, text in _blocks(page, "yaml"):
        Path("toolfold.yaml").write_text(text, encoding="utf-8")
        assert isinstance(load_settings("toolfold.yaml"), Settings)


@pytest.mark.parametrize("page", [p for p in PAGES if _blocks(p, "sh")], ids=_id)
def test_every_command_of_a_page_has_the_flags_it_is_given(page: Path) -> None:
    for _, text in _blocks(page, "sh"):
        for line in text.splitlines():
            name, *arguments = shlex.split(line.split(" | ")[0], comments=True) or [""]
            if name == "toolfold":
                command = dict(_commands())[arguments[0]]
                # Parsing is all that is wanted; the parent lends the names of its help flag.
                command.make_context(arguments[0], arguments[1:], parent=_root())


@pytest.mark.parametrize("page", PAGES, ids=_id)
def test_every_block_says_what_it_is(page: Path) -> None:
    assert {match[1] for match in _BLOCK.finditer(_text(page))} <= _INFO_STRINGS


@pytest.mark.parametrize("page", PAGES, ids=_id)
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    broken: list[str] = []
    for link in _LINK.findall(_prose(page)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.is_file() or (anchor and anchor not in _anchors(target)):
            broken.append(link)
    assert broken == []


def _anchors(page: Path) -> set[str]:
    headings = _HEADING.findall(_prose(page))
    return {re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in headings}


def test_the_index_leads_to_every_page() -> None:
    linked = {
        (DOCS / link.partition("#")[0]).resolve()
        for link in _LINK.findall(_text(DOCS / "index.md"))
    }
    assert [_id(p) for p in sorted(DOCS.rglob("*.md")) if p not in linked] == ["docs/index.md"]


def test_the_sites_side_bar_leads_to_every_guide() -> None:
    listed = _text(DOCS / "site" / "conf.py")
    guides = sorted(path.stem for path in (DOCS / "guides").glob("*.md"))

    assert [name for name in guides if f'"docs/guides/{name}"' not in listed] == []


def test_every_promise_of_the_security_page_is_held_by_a_test_that_is_there() -> None:
    rows = [line for line in _text(SECURITY).splitlines() if line.startswith("| ")]
    promises = [row for row in rows if "`test_" in row]
    named = set(re.findall(r"`(test_\w+)`", "".join(promises)))
    texts = [_text(path) for path in (ROOT / "tests").rglob("test_*.py")]
    there = {name for text in texts for name in re.findall(r"^def (test_\w+)", text, re.MULTILINE)}

    assert len(promises) == sum(row.count("|") == 4 for row in rows) - 8
    assert sorted(named - there) == []


def test_the_readme_leads_with_what_it_is_and_the_two_commands() -> None:
    text = _text(README)

    assert text.startswith("# toolfold\n\ntoolfold folds ")
    assert re.search(r"^make demo\b", text, re.MULTILINE)
    assert re.search(r"^make test\b", text, re.MULTILINE)


def test_the_readme_has_the_tokens_that_are_measured() -> None:
    bench = pytest.importorskip("bench", reason="the bench is not in this tree")
    assert bench
    from bench import data
    from bench.published import measured_tokens
    from bench.tokens import why_not_exact

    if data.corpora() is None or why_not_exact() is not None:
        pytest.skip("needs the corpus deploy-226 and the ranks of o200k_base")
    kept = json.loads(_text(DOCS / "figures.json"))["tokens"]

    assert measured_tokens() == kept, "run `python -m bench.published`"
    assert f"| {kept['folded']:,} of {kept['unfolded']:,} |" in _text(README)


def test_the_readme_shows_the_inspector_and_the_ways_to_install() -> None:
    text = _text(README)

    assert re.search(r"^!\[.+\]\(docs/pictures/inspector-catalog\.webp\)$", text, re.MULTILINE)
    tools = ("uvx", "pipx install", "pip install")
    assert [t for t in tools if not re.search(rf"^{t} .*toolfold", text, re.MULTILINE)] == []


# ---- nothing public is missing


def test_the_generated_pages_are_up_to_date() -> None:
    made: dict[Path, str] = _generator().pages()

    stale = [_id(path) for path, text in made.items() if _text(path) != text]

    assert stale == [], "run `.venv/bin/python docs/generate.py`"


def test_every_setting_and_environment_variable_is_in_the_reference() -> None:
    page = _reference("settings.md")
    names = [name.removeprefix("TOOLFOLD_").lower() for name in ENVIRONMENT]
    keys = [re.sub(r"^(reranker|memory)_", r"\1.", name) for name in names]

    assert [key for key in keys if f"# `{key}`\n" not in page] == []
    assert [name for name in ENVIRONMENT if f"`{name}`" not in page] == []
    assert [name for name in PRESETS if f"`preset:{name}`" not in page] == []


def test_every_variable_that_the_loader_knows_is_explained() -> None:
    from toolfold.settings import load

    explained = re.findall(r"^- `(TOOLFOLD_\w+)`: \S", _reference("settings.md"), re.MULTILINE)

    assert set(explained) == load._OTHER_VARIABLES  # pyright: ignore[reportPrivateUsage]


def test_every_command_and_flag_is_in_the_reference() -> None:
    page = _reference("cli.md")
    missing: list[str] = []
    for name, command in _commands():
        _, _, section = page.partition(f"\n## toolfold {name}\n")
        section = section.partition("\n## ")[0]
        flags = [flag for option in command.params for flag in option.opts if flag[0] == "-"]
        missing += [f"{name} {flag}" for flag in flags if not re.search(rf"{flag}\b", section)]
    assert missing == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["check"],
        ["describe", "create_calendar_event"],
        ["eval", "--limit", "1"],
        ["fold", "--diff"],
        ["list", "--allow", "@mail"],
        ["search", "send mail", "--explain"],
    ],
    ids=lambda arguments: arguments[0],
)
@pytest.mark.usefixtures("no_settings")
def test_every_key_of_a_commands_json_is_in_the_reference(arguments: list[str]) -> None:
    outcome = CliRunner().invoke(main, [*arguments, "--json"])
    printed = json.loads(outcome.stdout)
    _, _, section = _reference("cli.md").partition(f"\n## toolfold {arguments[0]}\n")
    section = section.partition("\n## ")[0].rpartition("With `--json`")[2]

    listed = [item for value in printed.values() if isinstance(value, list) for item in value]
    records = [] if arguments[0] == "fold" else [r for r in listed if isinstance(r, dict)]
    keys = {key for record in (printed, *records) for key in record}

    assert sorted(key for key in keys if f"`{key}`" not in section) == []


def test_every_command_that_prints_json_says_what_it_prints() -> None:
    with_json = {
        name for name, command in _commands() if any("--json" in p.opts for p in command.params)
    }
    assert with_json == set(_generator().JSON_KEYS)


def test_every_error_has_a_heading_an_example_and_a_fix() -> None:
    page = _reference("errors.md")
    for name in errors.__all__:
        _, found, section = page.partition(f"\n## {name}\n")
        section = section.partition("\n## ")[0]
        assert found, name
        if name != "ToolfoldError":
            assert "```python" in section, name
            assert "\nFix: " in section, name


def test_a_module_begins_with_an_underscore_or_is_in_the_reference() -> None:
    page = _reference("api.md")
    package = Path(toolfold.__file__).parent
    names = [
        ".".join(("toolfold", *path.relative_to(package).with_suffix("").parts))
        for path in package.rglob("*.py")
    ]
    public = [
        name.removesuffix(".__init__")
        for name in names
        if not any(p.startswith("_") for p in name.removesuffix(".__init__").split("."))
    ]

    assert [n for n in public if n != "toolfold" and f"| `{n}` |" not in page] == []


def test_every_public_name_is_in_the_reference() -> None:
    page = _reference("api.md")

    assert [name for name in toolfold.__all__ if f"### `{name}`\n" not in page] == []


def test_every_name_of_the_public_modules_is_in_the_reference_and_says_what_it_is() -> None:
    page = _reference("api.md")
    modules: dict[str, list[str]] = _generator().public_names()
    named = [f"{module}.{name}" for module, names in modules.items() for name in names]

    assert [name for name in named if not re.search(rf"### `{name}`\n\n\S", page)] == []
    assert {"toolfold.runtime.Agent", "toolfold.search.Ranker", "toolfold.bridge.Bridge"} <= {
        *named
    }


def test_what_the_guides_import_is_in_the_reference() -> None:
    page = _reference("api.md")
    imported = {
        f"{module}.{name.strip()}"
        for guide in [README, *sorted((DOCS / "guides").glob("*.md"))]
        for _, code in _blocks(guide, "python")
        for module, names in re.findall(
            r"^from (toolfold\S+) import ([\w, ]+)$", code, re.MULTILINE
        )
        for name in names.split(",")
    }

    assert imported
    assert [name for name in sorted(imported) if f"### `{name}`\n" not in page] == []


def test_every_room_and_module_has_its_place_on_the_architecture_page() -> None:
    page = _text(DOCS / "architecture.md")
    paths = [path.relative_to(rooms.SOURCE) for path in rooms.modules().values()]
    named = [
        f"{path.parent.as_posix()}/" if path.name == "__init__.py" else path.as_posix()
        for path in paths
        if path.as_posix() not in ("__init__.py", "__main__.py")
    ]

    assert [name for name in named if f"| `{name}` |" not in page] == []


def test_the_first_picture_of_the_architecture_page_shows_the_house_as_it_is() -> None:
    (_, picture), *_ = _blocks(DOCS / "architecture.md", "text")
    shown = set(re.findall(r"\b\w+(?:/|\.py\b)", picture))

    assert [name for name in sorted(shown) if not (rooms.SOURCE / name).exists()] == []
    assert {"sources/", "catalog.py", "bridge.py", "dispatch/", "runtime/", "serve/"} <= shown


def test_no_page_holds_a_path_of_someones_machine() -> None:
    private = re.compile(r"(?<![\w.])/(?:home|root|work|Users|tmp)/")

    assert [_id(page) for page in PAGES if private.search(_text(page))] == []


def test_the_readme_names_every_extra() -> None:
    readme = _text(ROOT / "README.md")
    extras = tomllib.loads(_text(ROOT / "pyproject.toml"))["project"]["optional-dependencies"]

    (line,) = (line for line in readme.splitlines() if line.startswith("Extras: "))
    assert set(extras) <= set(re.findall(r"`([a-z-]+)`", line))
