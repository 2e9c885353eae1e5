"""The default ranker: words and meaning, the floor, and the index that is kept."""

import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from toolfold import Catalog, Settings, Tool, fold
from toolfold._memo import Memo
from toolfold.demo import demo_catalog
from toolfold.evaluation import load_corpus, measure
from toolfold.search import _build as build
from toolfold.search._cache import Cache
from toolfold.search._cache import _checksum as checksum  # pyright: ignore[reportPrivateUsage]
from toolfold.search._clauses import clauses
from toolfold.search._vectors import LARGE, Vectors, best_places
from toolfold.search.hybrid import Hybrid

DEMO = Path(__file__).parents[2] / "src" / "toolfold" / "demo"


def found(tools: Catalog, query: str, k: int = 5, **more: object) -> list[str]:
    settings = Settings(enabled="on", **more)  # type: ignore[arg-type]
    return [hit.name for hit in fold(tools, settings=settings).bridge.search(query, k)]


def test_remind_me_tonight_finds_the_calendar() -> None:
    assert "create_calendar_event" in found(demo_catalog(), "remind me tonight")


@pytest.mark.parametrize(("floor", "semantic", "hard"), [(0.0, 0.93, 0.7), (0.2, 0.86, 0.6)])
def test_our_own_requests_are_served(floor: float, semantic: float, hard: float) -> None:
    result = measure(load_corpus(DEMO), Settings(enabled="on", relevance_floor=floor))

    by_category = {name: metrics["recall@5"] for name, metrics in result.categories.items()}
    assert (by_category["lexical"] or 0) == 1.0
    assert (by_category["ambiguous"] or 0) >= 0.52
    assert (by_category["semantic"] or 0) >= semantic
    assert (by_category["semantic-hard"] or 0) >= hard


@pytest.mark.parametrize(
    ("tool", "asked", "another"),
    [
        (Tool("create_invoice", "Create an invoice for a customer."), "create", "delete"),
        (Tool("delete_branch", "Delete a branch of a repository."), "delete", "create"),
        (Tool("send_parcel", "Send a parcel to an address."), "send", "track"),
    ],
    ids=lambda value: value.name if isinstance(value, Tool) else value,
)
def test_a_tool_that_does_another_thing_with_the_same_is_no_close_match(
    tool: Tool, asked: str, another: str
) -> None:
    searcher = Hybrid().searcher([tool])
    noun = tool.name.split("_")[1]

    assert searcher.search(f"{asked} {noun}", 1)[0].score > 0.85
    assert searcher.search(f"{another} {noun}", 1)[0].score < 0.5


@pytest.mark.parametrize("size", [1, 5, 15, 60, 120, 207])
def test_requests_that_nothing_serves_are_refused_at_every_size(size: int) -> None:
    tools = list(demo_catalog())
    requests = [
        "what is the boiling point of mercury",
        "who won the world cup in 1998",
        "tell me a joke about cats",
        "how old is the universe",
        "are you a human",
        "do penguins have knees",
        "how do i get rid of hiccups",
        "what's the capital of peru",
        "my car makes a strange noise",
        "how much does an elephant weigh",
    ]

    refused = sum(
        not found(Catalog(random.Random(seed).sample(tools, size)), query)
        for seed in range(3)
        for query in requests
    )

    assert refused >= 27


def test_a_request_that_no_tool_serves_has_no_match() -> None:
    folded = fold(demo_catalog(), settings=Settings(enabled="on"))

    answer = folded.resolve("tool_search", {"query": "what is the boiling point of mercury"})

    assert not answer.is_error  # type: ignore[union-attr]
    assert answer.text.startswith("No tool matches")  # type: ignore[union-attr]


def test_the_floor_can_be_lowered_and_raised() -> None:
    query = "what is the boiling point of mercury"

    assert found(demo_catalog(), query, relevance_floor=0.0)
    assert not found(demo_catalog(), "refund a payment", relevance_floor=1.0)


def test_an_exact_name_passes_the_floor() -> None:
    assert found(demo_catalog(), "`deploy__rotate_secret`", relevance_floor=1.0) == [
        "deploy__rotate_secret"
    ]


def test_scores_are_probabilities_in_falling_order() -> None:
    hits = fold(demo_catalog(), settings=Settings(enabled="on")).bridge.search(
        "refund a customer", 5
    )

    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


def test_explain_names_the_meaning_the_words_and_the_probability() -> None:
    folded = fold(demo_catalog(), settings=Settings(enabled="on"))
    hit = folded.bridge.search("refund a customer", 1)[0]

    why = folded.bridge.explain(hit)

    assert why.startswith("meaning 0.")
    assert "; words refund " in why
    assert "; probability 0." in why


@pytest.mark.parametrize(
    ("request_", "needs"),
    [
        ("open a pull request", ["open a pull request"]),
        ("salt and pepper recipes", ["salt and pepper recipes"]),
        (
            "Find a flight to Oslo and book a hotel room there",
            ["Find a flight to Oslo", "book a hotel room there"],
        ),
        (
            "Check the weather report. Then send Tom an email.",
            ["Check the weather report.", "Then send Tom an email."],
        ),
        ("", [""]),
    ],
)
def test_a_request_is_cut_where_a_new_need_begins(request_: str, needs: list[str]) -> None:
    assert clauses(request_) == needs


def test_a_request_with_two_needs_finds_tools_for_both() -> None:
    names = found(demo_catalog(), "refund the last payment of Acme and create an issue about it")

    assert "billing__refund_payment" in names
    assert "forge__create_issue" in names


def test_no_tools_no_matches() -> None:
    assert Hybrid().searcher([]).search("anything", 5) == ()


@pytest.mark.parametrize("query", ["", "   ", "?!", "日本語", "a" * 5000, "\x00", "and and and"])
def test_every_query_gets_an_answer(query: str) -> None:
    matches = Hybrid().searcher(list(demo_catalog())).search(query, 5)

    assert len(matches) <= 5


def test_results_do_not_depend_on_the_order_of_the_tools() -> None:
    tools = list(demo_catalog())
    queries = [request.query for request in load_corpus(DEMO).requests]
    settings = Settings(enabled="on", relevance_floor=0.0)

    def all_found(tools: list[Tool]) -> list[list[str]]:
        bridge = fold(Catalog(tools), settings=settings).bridge
        return [sorted(hit.name for hit in bridge.search(query, 5)) for query in queries]

    expected = all_found(tools)
    for seed in range(3):
        random.Random(seed).shuffle(tools)
        assert all_found(tools) == expected


def test_results_do_not_depend_on_earlier_searches() -> None:
    bridge = fold(demo_catalog(), settings=Settings(enabled="on")).bridge
    before = bridge.search("refund a customer", 5)

    for query in ("files", "book a room", "x y z"):
        bridge.search(query, 20)

    assert bridge.search("refund a customer", 5) == before


def test_every_answer_belongs_to_one_catalog_while_the_catalog_changes() -> None:
    generations = [
        Catalog(
            [Tool(f"{word}_{generation}", f"{word} a letter") for word in ("send", "read", "burn")]
        )
        for generation in range(4)
    ]
    settings = Settings(enabled="on", relevance_floor=0.0)
    wrong: list[set[str]] = []

    def search(seed: int) -> None:
        draw = random.Random(seed)
        for _ in range(25):
            folded = fold(draw.choice(generations), settings=settings)
            hits = folded.bridge.search("send a letter", 5)
            if {hit.name.rsplit("_", 1)[1] for hit in hits} != {folded.catalog.names[0][-1]}:
                wrong.append({hit.name for hit in hits})

    threads = [threading.Thread(target=search, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert not wrong


def test_the_best_places_are_the_best_in_small_and_in_large_lists() -> None:
    import numpy as np

    draw = np.random.default_rng(0)
    for size in (3, 50, 9_000, 60_000):
        scores = draw.standard_normal(size).astype(np.float32)
        expected = set(np.argsort(-scores)[:40].tolist())

        assert set(best_places(scores, 40).tolist()) == expected


def test_a_large_list_is_searched_like_a_small_one() -> None:
    import numpy as np

    draw = np.random.default_rng(0)
    # Falling variance over the dimensions, as in the trained table.
    matrix = (draw.standard_normal((LARGE, 256)) * np.linspace(1, 0.05, 256) ** 2).astype(
        np.float32
    )
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    query = matrix[:1] + 0.02 * draw.standard_normal((1, 256)).astype(np.float32)

    near = Vectors(matrix).search(query, 10, 5)

    exact = matrix @ query[0]
    assert set(np.argsort(-exact)[:5].tolist()) <= set(near.candidates.tolist())
    assert near.best[0] == pytest.approx(exact.max())
    assert near.mean == pytest.approx(exact.mean(), abs=1e-5)
    assert near.deviation == pytest.approx(exact.std(), abs=1e-4)


# ---- the index that is kept


def letters(count: int, changed: int | None = None) -> list[Tool]:
    return [
        Tool(f"tool_{i}", f"does thing number {i}{' and more' if i == changed else ''}")
        for i in range(count)
    ]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How many vectors were made anew, each time an index was built; memos start empty."""
    from toolfold.search import _dense as dense
    from toolfold.search import _document as document

    calls: list[int] = []
    own = dense.Table.cut
    monkeypatch.setattr(dense.Table, "cut", lambda self, texts: calls.append(1) or own(self, texts))
    for module, name in ((dense, "_ARRAYS"), (document, "_DOCUMENTS")):
        getattr(module, name).clear()
    yield calls


def forget() -> None:
    from toolfold.search import _dense as dense
    from toolfold.search import _document as document

    dense._ARRAYS.clear()  # pyright: ignore[reportPrivateUsage]
    document._DOCUMENTS.clear()  # pyright: ignore[reportPrivateUsage]


def test_a_large_list_is_kept_and_taken_from_the_cache(tmp_path: Path, made: list[int]) -> None:
    tools = letters(1_000)
    first = build.index_arrays(tools, str(tmp_path))
    forget()
    made.clear()

    again = build.index_arrays(tools, str(tmp_path))

    assert made == []
    assert (first.vectors == again.vectors).all()
    assert (first.excerpts == again.excerpts).all()
    assert first.columns.vocabulary == again.columns.vocabulary


def test_a_changed_tool_alone_is_made_again(tmp_path: Path, made: list[int]) -> None:
    build.index_arrays(letters(1_000), str(tmp_path))
    forget()
    made.clear()

    columns = build.index_arrays(letters(1_000, changed=7), str(tmp_path)).columns

    assert len(made) == 1
    assert (
        columns.documents()[8] == build.columns_of([build.document(letters(9)[8])]).documents()[0]
    )


def test_in_a_list_larger_than_the_memos_a_changed_tool_alone_is_made_again(
    tmp_path: Path, made: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    from toolfold.search import _dense as dense
    from toolfold.search import _document as document

    monkeypatch.setattr(dense, "_ARRAYS", Memo[str, object](10))
    monkeypatch.setattr(document, "_DOCUMENTS", Memo[str, object](10))
    build.index_arrays(letters(1_000), str(tmp_path))
    made.clear()

    build.index_arrays(letters(1_000, changed=7), str(tmp_path))

    assert len(made) == 1


def test_a_small_list_is_not_kept(tmp_path: Path) -> None:
    build.index_arrays(letters(50), str(tmp_path))

    assert not list(tmp_path.iterdir())


def damage_arrays(own: dict[str, Any], damage: str) -> None:
    """Damage the arrays of a file: its checksum is then made anew, as a stranger would."""
    match damage:
        case "foreign":
            own["digests"] = own["digests"][::-1]
        case "terms out of range":
            own["terms"] = own["terms"] + 1_000_000
        case "pieces out of range":
            own["excerpts"][500, -1] = 65_535
        case "ends out of range":
            own["excerpts"][500, 4] = 60
        case "ends backwards":
            own["excerpts"][500, 0] = 44
        case "a field too long":
            own["excerpts"][500, :5] = 44
        case _:
            del own["excerpts"]


@pytest.mark.parametrize(
    "damage",
    ["cut", "flipped", "empty", "foreign", "text", "terms out of range", "pieces out of range",
     "ends out of range", "ends backwards", "a field too long", "no excerpts"],
)  # fmt: skip
def test_a_damaged_file_is_made_again_and_never_trusted(
    tmp_path: Path, made: list[int], damage: str
) -> None:
    import numpy as np

    tools = letters(1_000)
    expected = build.index_arrays(tools, str(tmp_path))
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    match damage:
        case "cut":
            file.write_bytes(whole[: len(whole) // 2])
        case "flipped":
            middle = len(whole) // 2
            file.write_bytes(whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :])
        case "empty":
            file.write_bytes(b"")
        case "text":
            file.write_text("not an index", encoding="utf-8")
        case _:
            with np.load(file) as arrays:
                own = dict(arrays)
            damage_arrays(own, damage)
            own["checksum"] = checksum({k: v for k, v in own.items() if k != "checksum"})
            with file.open("wb") as out:
                np.savez(out, **own)
    forget()
    made.clear()

    again = build.index_arrays(tools, str(tmp_path))

    assert len(made) == 1_000
    assert (expected.vectors == again.vectors).all()
    assert (expected.excerpts == again.excerpts).all()
    assert (expected.columns.terms == again.columns.terms).all()


def test_a_folder_that_cannot_be_written_to_stops_nothing(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way", encoding="utf-8")

    columns, vectors, excerpts = build.index_arrays(letters(1_000), str(blocked / "cache"))

    assert columns.size == len(vectors) == len(excerpts) == 1_000


def test_old_files_leave_the_folder(tmp_path: Path) -> None:
    for count in range(1_000, 1_010):
        build.index_arrays(letters(count), str(tmp_path))

    assert len(list(tmp_path.iterdir())) == 8


def test_writers_side_by_side_leave_a_sound_file(tmp_path: Path) -> None:
    code = (
        "import sys; from toolfold import Tool; from toolfold.search import _build as build\n"
        "tools = [Tool(f'tool_{i}', f'does thing number {i}') for i in range(1000)]\n"
        "build.index_arrays(tools, sys.argv[1])"
    )
    runs = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path)]) for _ in range(3)]
    assert [run.wait(60) for run in runs] == [0, 0, 0]

    digests = [tool.digest for tool in letters(1_000)]
    snapshot = Cache(tmp_path, build.table().version).load(digests)
    assert snapshot is not None
    assert len(list(tmp_path.iterdir())) == 1
