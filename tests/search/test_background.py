"""`toolfold.search._background`: tools of many kinds, to compare a list's nearest with."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolfold import Tool
from toolfold.search._background import ALIKE, Background
from toolfold.search._dense import WEIGHTS, table, texts_of
from toolfold.search._vectors import LEADING
from toolfold.search.hybrid import Hybrid

ISSUE = Tool("create_issue", "Open a new issue in a repository.")
REFUND = Tool("refund_payment", "Refund a payment to the customer's card.")


def vector(tool: Tool) -> np.ndarray:
    return table().tool(table().cut(texts_of(tool)))


def background(*tools: Tool) -> Background:
    rows = np.stack([vector(tool) for tool in tools])
    return Background(np.round(rows / np.abs(rows).max() * 127).astype(np.int8))


def gap(request: str, tool: Tool, others: Background) -> float:
    queries, tools = table().query(request)[None], vector(tool)[None]
    return float(others.gaps(queries, queries @ tools.T, tools)[0])


def compared_with_each(query: np.ndarray, tools: np.ndarray, rows: np.ndarray) -> Sequence[float]:
    """The gaps, one tool and one tool of the background at a time."""
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    rivals = [max(float(query @ u) - max(float(u @ t) - ALIKE, 0.0) for u in unit) for t in tools]
    return (query @ tools.T - np.array(rivals)).tolist()


def unit(vectors: np.ndarray) -> np.ndarray:
    return (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float32)


def test_where_another_kind_of_tool_is_nearer_the_gap_is_below_zero() -> None:
    others = background(REFUND)

    assert gap("give the customer the money back", ISSUE, others) < -0.2
    assert gap("open an issue", ISSUE, others) > 0.2


def test_a_tool_of_the_same_kind_counts_less_than_its_nearness() -> None:
    like = Tool("issue_create", "Create a new issue in a repository.")
    query = table().query("open an issue")
    alike = float(vector(like) @ vector(ISSUE))

    by_nearness_alone = float(query @ vector(ISSUE) - query @ vector(like))

    assert alike > ALIKE
    assert gap("open an issue", ISSUE, background(like)) == pytest.approx(
        by_nearness_alone + alike - ALIKE, abs=0.01
    )


def test_of_several_needs_the_one_that_a_tool_serves_best_counts() -> None:
    others = background(REFUND)
    queries = np.stack([table().query(text) for text in ("refund the customer", "open an issue")])
    tools = vector(ISSUE)[None]

    found = others.gaps(queries, queries @ tools.T, tools)

    assert float(found[0]) == pytest.approx(gap("open an issue", ISSUE, others))


@given(seed=st.integers(0, 10_000), count=st.integers(1, 12), tools=st.integers(1, 9))
def test_with_few_tools_in_it_a_gap_is_what_comparing_with_each_gives(
    seed: int, count: int, tools: int
) -> None:
    random = np.random.default_rng(seed)
    rows = random.integers(-127, 128, (count, 80)).astype(np.int8)
    own, query = unit(random.standard_normal((tools, 80))), unit(random.standard_normal((1, 80)))

    found = Background(rows).gaps(query, query @ own.T, own)

    assert found == pytest.approx(compared_with_each(query[0], own, rows), abs=1e-3)


@pytest.mark.parametrize("place", [0, 1_000, 4_999])
def test_among_thousands_the_one_that_is_nearest_is_found_wherever_it_stands(place: int) -> None:
    random = np.random.default_rng(place)
    # As in a table that is turned, the leading dimensions carry most; rows have any length.
    weight = np.where(np.arange(256) < LEADING, 1.0, 0.3)
    whole = random.standard_normal((5_000, 256)) * weight
    query = unit(random.standard_normal(256) * weight)
    whole[place] = query * 30 + random.standard_normal(256) * weight * 0.5
    rows = whole / np.abs(whole).max(1, keepdims=True)
    rows = np.round(rows * random.integers(20, 128, (5_000, 1))).astype(np.int8)
    own = unit(random.standard_normal((3, 256)) * weight)

    found = Background(rows).gaps(query[None], (query @ own.T)[None], own)

    assert found == pytest.approx(compared_with_each(query, own, rows), abs=1e-3)
    assert (found < -0.5).all()


def test_without_a_background_nothing_is_said() -> None:
    own = unit(np.random.default_rng(0).standard_normal((3, 256)))

    found = Background(np.zeros((0, 256), np.int8)).gaps(own[:1], own[:1] @ own.T, own)

    assert found.tolist() == [0.0] * 3


@pytest.fixture
def other_background() -> Iterator[Any]:
    """Puts tools into the background of the package's table, for one test."""
    own: Any = table()
    before = own.background

    def put(*tools: Tool) -> None:
        own._background = background(*tools)

    yield put
    own._background = before


def test_a_hit_is_less_probable_where_another_kind_of_tool_would_serve(
    other_background: Any,
) -> None:
    request, tools = "get back the money that I paid", [ISSUE, Tool("get_page", "Get a page.")]

    other_background(Tool("read_clock", "Tell the time."))
    alone = Hybrid().searcher(tools).search(request, 1)[0].score
    other_background(REFUND)
    beside_another = Hybrid().searcher(tools).search(request, 1)[0].score

    assert beside_another < alone / 2


def test_a_tool_in_another_language_is_not_held_against_a_nearer_one_in_english(
    other_background: Any,
) -> None:
    request = "send a message to a phone number"
    own = Tool("duanxin_fasong", "向手机号码发送短信")

    other_background(Tool("read_clock", "Tell the time."))
    alone = Hybrid().searcher([own]).search(request, 1)[0].score
    other_background(Tool("send_sms", "Send a message to a phone number."))
    beside_a_nearer_one = Hybrid().searcher([own]).search(request, 1)[0].score

    assert beside_a_nearer_one > 0.85 * alone


@pytest.mark.parametrize(
    "tool",
    [
        Tool("get_page", "Get a page of a document. Takes at most 20 µs."),
        Tool("get_page", "Get a page of a document.", aliases=("文",)),
        Tool("get_page", "Get a page of a document.", source="søk"),
    ],
    ids=["unit", "alias", "source"],
)
def test_a_stray_letter_of_another_script_exempts_no_tool(
    tool: Tool, other_background: Any
) -> None:
    other_background(Tool("download_file", "Download a file."))
    plain = Tool("get_page", "Get a page of a document.")

    found, own = (Hybrid().searcher([t]).search("download the file", 1)[0] for t in (tool, plain))

    assert found.score < 1.5 * own.score


def test_the_background_of_the_package_belongs_to_its_table_and_its_floor() -> None:
    fitted_with = json.loads((WEIGHTS / "scorer.json").read_text(encoding="utf-8"))["background"]

    assert len(table().background) > 2_000
    assert table().background.digest == fitted_with


def test_a_background_of_another_table_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "background.npz"
    np.savez(path, version="another", vectors=np.ones((3, 256), np.int8))

    with pytest.raises(ValueError, match=r"background\.npz was not made with the table"):
        Background.read(path, table().version)
