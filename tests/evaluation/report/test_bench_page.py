"""The page of `make bench`: composed of what was kept, honest about what was not measured."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bench.page import NAMES, bench_html
from bench.peers.peers import PEERS
from bench.progress import Progress
from bench.results import Kept, keep, kept, now

from support.html_page import HtmlPage

SCRIPT = "<script>alert(1)</script>"


def made(part: str, *rows: dict[str, Any], command: str = "") -> Kept:
    found = now(part, f"What {part} is", command or f"python -m bench {part}", rows, 0.0)
    return replace(found, load=0.1, cores=2, machine="a machine")


def beside(name: str, recall: float, false: float, **more: Any) -> Kept:
    served = {"system": name, "set": "azure", "tools": 383, "requests": 200, "recall@5": recall}
    served |= {"low": recall - 0.02, "high": recall + 0.02, "p50 ms": 1.5, "tokens": 300, **more}
    unserved = {"system": name, "set": "nothing serves it", "tools": 15, "requests": 100}
    unserved |= {"false hits": false}
    larger = {**unserved, "tools": 700}
    return made(f"beside-{name}", served, unserved, larger)


TOKENS = made(
    "tokens",
    {"what": "all schemas", "tools": 226, "characters/4": 62_233},
    {"what": "bridge, listing sources", "tools": 3, "characters/4": 282, "saved": "99.5 %"},
)
RESULTS = {
    found.part: found
    for found in (beside("toolfold", 0.95, 0.03), beside("bm25s", 0.9, 0.97), TOKENS)
}


def test_the_headline_says_what_was_measured_beside_whom() -> None:
    page = HtmlPage(bench_html({**RESULTS, "beside-hermes": beside("hermes", 0.8, 1.0)}))

    assert page.within("p")[0] == (
        "toolfold finds 95 % of the right tools in five hits; the best of 2 others, bm25s, 90 %; "
        "of what no tool serves, 3 % at most get a hit, 97 % and more elsewhere; 226 tools cost "
        "282 tokens instead of 62,233."
    )
    assert page.within("li")[0] == (
        "Recall@5 of toolfold: 93 to 97 % (95 % interval of the mean over 1 set, 200 requests)."
    )


def test_every_figure_has_its_command_and_what_was_not_measured_has_one_too() -> None:
    page = HtmlPage(bench_html(RESULTS))

    commands = page.within("code")
    assert {"python -m bench beside", "python -m bench tokens"} <= set(commands)
    for name in PEERS:
        if name != "bm25s":
            assert f"python -m bench beside --peer {name}" in commands
    for part in ("conversation", "trips", "search"):
        assert f"python -m bench {part}" in commands
    assert page.within("caption").count("Tokens of the model's list of tools, characters/4") == 1


def test_a_peer_that_could_not_be_installed_is_named_with_the_reason() -> None:
    gone = made("beside-minilm", {"system": "minilm", "note": "minilm skipped: no network"})

    page = HtmlPage(bench_html({**RESULTS, gone.part: gone}))

    assert "plain MiniLM: minilm skipped: no network;" in page.words
    assert "plain MiniLM" not in page.within("th")


def test_times_of_a_busy_machine_are_told_as_such() -> None:
    busy = replace(TOKENS, load=9.0)

    assert "The machine had other work while tokens ran" in bench_html({**RESULTS, "tokens": busy})
    assert "other work" not in bench_html(RESULTS)


def test_nothing_measured_is_a_page_too_and_all_parts_find_their_place() -> None:
    nothing = HtmlPage(bench_html({}))
    more = made("fold", {"catalog": "deploy-226", "first ms": 3.25, "note": SCRIPT})

    assert nothing.within("p")[0] == "Nothing was measured yet: run `make bench`."
    assert nothing.open == []
    page = HtmlPage(bench_html({**RESULTS, "fold": more}))
    assert page.loads == [] and SCRIPT in page.words
    assert any(summary.startswith("fold: What fold is") for summary in page.within("summary"))


def test_round_trips_are_those_of_systems_that_answer_a_model() -> None:
    results = {
        found.part: found
        for found in (
            beside("toolfold", 0.9, 0.1, trips=1.03),
            beside("hermes", 0.8, 0.9, trips=2.0),
            beside("bm25s", 0.8, 0.9, trips=None),
        )
    }

    page = bench_html(results)
    section = page[page.index("Round trips before a tool") : page.index(">Time</h2>")]

    body = section[section.index("<tbody>") : section.index("</table>")]

    assert HtmlPage(f"<p>{body}</p>").texts == [
        ("th", "toolfold"),
        ("td", "1.03"),
        ("th", "Hermes Agent"),
        ("td", "2.00"),
    ]


def test_every_peer_has_a_name_on_the_page() -> None:
    assert [*NAMES] == ["toolfold", *PEERS]


def test_what_is_kept_is_read_back_and_a_foreign_file_is_left_alone(tmp_path: Path) -> None:
    keep(TOKENS, tmp_path)
    keep(replace(TOKENS, seconds=2.0), tmp_path)
    (tmp_path / "other.json").write_text('{"part": "other"}', encoding="utf-8")
    (tmp_path / "torn.json").write_text('{"part": "to', encoding="utf-8")

    assert kept(tmp_path) == {"tokens": replace(TOKENS, seconds=2.0)}
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "other.json",
        "tokens.json",
        "torn.json",
    ]


def test_progress_is_a_line_now_and_then_where_nobody_sees_it_move(
    capsys: pytest.CaptureFixture[str],
) -> None:
    started = time.perf_counter()
    with Progress("work", 1_000) as progress:
        for i in range(1_000):
            progress.step(f"step {i}")

    assert time.perf_counter() - started < 10
    assert capsys.readouterr().err == "work 1/1000, 0 s: step 0\n"
