"""Tables, charts and intervals of reports: read aloud, drawn of anything, the same every time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from support.html_page import HtmlPage
from toolfold.evaluation.report.charts import ChartAxis, ChartBar, bar_chart, line_chart
from toolfold.evaluation.report.intervals import resampled, share_interval
from toolfold.evaluation.report.tables import TableColumn, table


def test_a_table_has_a_caption_and_a_head_for_every_row_and_column() -> None:
    columns = [TableColumn("what", is_number=False), TableColumn("count", "how many")]

    made = table("Things", columns, [["a", "1"], ["b", "2"]])

    assert '<th scope="col" class="number">count</th>' in made
    assert '<th scope="row">a</th><td class="number">1</td>' in made
    assert "<dt>count</dt><dd>how many</dd>" in made
    assert 'tabindex="0" role="region" aria-label="Things"' in made
    assert "200 more rows are left out." in table("Things", columns, [["a", "1"]] * 1_200)


def test_bars_and_lines_of_nothing_of_one_thing_and_of_zeros_are_drawn() -> None:
    axis = ChartAxis("x")
    log = ChartAxis("x", is_logarithmic=True)

    for bars in ([], [ChartBar("a", None, "–")], [ChartBar("a", 0.0, "0", (0.0, 0.0))]):
        assert HtmlPage(bar_chart("t", bars)).open == []
    for points in ({}, {"a": []}, {"a": [(1.0, 5.0)]}, {"a": [(0.0, 0.0), (0.0, 0.0)]}):
        for across in (axis, log):
            for up in (axis, log):
                assert HtmlPage(line_chart("t", points, across=across, up=up)).open == []


def test_a_line_says_its_figures_in_a_table() -> None:
    series = {"ours": [(15.0, 0.01), (383.0, 0.05)], "theirs": [(15.0, 0.9)]}
    share = ChartAxis("false hits", most=1.0, written="{:.0%}".format)

    made = HtmlPage(line_chart("t", series, across=ChartAxis("tools"), up=share))

    assert made.within("td") == ["1%", "90%", "5%", "–"]
    assert [head for head in made.within("th") if head != "15"] == [
        "tools",
        "ours",
        "theirs",
        "383",
    ]


@given(st.integers(0, 50), st.integers(0, 50))
def test_the_interval_of_a_share_holds_the_share(count: int, more: int) -> None:
    found = share_interval(count, count + more)

    if count + more == 0:
        assert found is None
    else:
        assert found is not None
        assert 0 <= found[0] <= count / (count + more) <= found[1] <= 1


@given(st.lists(st.tuples(st.integers(1, 9_999), st.integers(0, 9_999)), min_size=2, max_size=20))
def test_an_interval_by_drawing_anew_is_the_same_every_time_and_within_the_extremes(
    pairs: list[tuple[int, int]],
) -> None:
    def ratio(one: float, other: float) -> float:
        return other / one

    low, high = resampled(pairs, ratio) or (0.0, 0.0)

    assert (low, high) == resampled(pairs, ratio)
    ratios = [other / one for one, other in pairs]
    assert min(ratios) - 1e-9 <= low <= high <= max(ratios) + 1e-9
