"""The package page: the README, with links that lead somewhere from there."""

import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from package_page import package_page, repository

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
ADDRESS = "https://example.org/somebody/toolfold"

_CODE = re.compile(r"^```.*?^```$|`[^`\n]+`", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(!?)\[[^\]]*\]\(([^)\s]+)\)")


def _links(page: str) -> list[tuple[str, str]]:
    return _LINK.findall(_CODE.sub("", page))


def test_a_link_to_a_file_leads_to_that_file_at_the_versions_tag() -> None:
    page = package_page("See [the card](docs/model-card.md#limits).", ADDRESS, "1.2.3")

    assert page == f"See [the card]({ADDRESS}/blob/v1.2.3/docs/model-card.md#limits)."


def test_a_picture_comes_from_the_repository_as_it_is_there() -> None:
    page = package_page("![the inspector](docs/a.png)", ADDRESS, "1.2.3")

    assert page == f"![the inspector]({ADDRESS}/raw/v1.2.3/docs/a.png)"


def test_without_an_address_a_links_text_stays_and_a_picture_goes() -> None:
    page = package_page("![x](docs/a.png)\n\nSee [`the` card](docs/a.md).", None, "1.2.3")

    assert page == "\n\nSee `the` card."


@pytest.mark.parametrize("address", [None, ADDRESS])
@pytest.mark.parametrize(
    "text",
    [
        "[elsewhere](https://example.org/a.md)",
        "[below](#install)",
        "[mail](mailto:a@example.org)",
        "`[text](docs/a.md)` in code",
        "```text\n[text](docs/a.md)\n```",
    ],
)
def test_other_links_and_code_stay_as_they_are(text: str, address: str | None) -> None:
    assert package_page(text, address, "1.2.3") == text


def test_with_an_address_every_link_of_the_readme_is_absolute_and_its_file_is_there() -> None:
    links = _links(package_page(README, ADDRESS, "1.2.3"))
    own = [link for _, link in links if link.startswith(ADDRESS)]

    assert [link for _, link in links if not re.match(r"https?://|#", link)] == []
    assert own
    paths = [link.split("/v1.2.3/")[1].partition("#")[0] for link in own]
    assert [path for path in paths if not (ROOT / path).is_file()] == []


def test_without_an_address_the_readme_keeps_its_words_and_has_no_link_into_the_tree() -> None:
    page = package_page(README, None, "1.2.3")

    assert [link for _, link in _links(page) if not re.match(r"https?://|#", link)] == []
    assert page.startswith("# toolfold\n")


@given(st.text(alphabet=st.characters(exclude_characters="[]")))
def test_a_text_without_links_is_left_alone(text: str) -> None:
    assert package_page(text, None, "1.2.3") == package_page(text, ADDRESS, "1.2.3") == text


def test_the_address_is_the_one_called_repository() -> None:
    assert repository({"Homepage": "https://example.org", "repository": ADDRESS + "/"}) == ADDRESS
    assert repository({"Homepage": "https://example.org"}) is None


def test_every_python_with_a_classifier_is_in_the_workflow() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    classified = re.findall(r":: (3\.\d+)\b", "\n".join(project["classifiers"]))
    workflow = ROOT / ".github" / "workflows" / "check.yml"
    if not workflow.exists():
        pytest.skip("a source distribution has no workflows")
    [matrix] = re.findall(r"python: \[(.*)\]", workflow.read_text(encoding="utf-8"))

    assert set(classified) <= set(re.findall(r"3\.\d+", matrix))
    assert f">={classified[0]}" == project["requires-python"]


def test_the_source_distribution_brings_every_folder_that_the_makefile_works_on() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    brought = settings["hatch"]["build"]["targets"]["sdist"]["include"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = " ".join(re.findall(r"^CODE \+?:?= *(.*)$", makefile, re.MULTILINE)).split()

    assert {"src", "tests", "make", "release"} <= set(named)
    assert [name for name in named if f"/{name}" not in brought] == []


def test_the_hooks_have_the_versions_of_the_constraints() -> None:
    hooks = ROOT / ".pre-commit-config.yaml"
    if not hooks.exists():
        pytest.skip("a source distribution has no hooks")
    named = set(re.findall(r"\[(\S+==\S+)\]", hooks.read_text(encoding="utf-8")))

    assert named <= set((ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines())
    assert named
