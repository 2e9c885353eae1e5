"""The command line: what it prints, where, and with which exit code."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from toolfold.cli import main
from toolfold.tool import wire_name

TOOLS: list[dict[str, Any]] = [
    {
        "name": "forge.create_issue",
        "description": "Open an issue. Needs write access.",
        "parameters": {
            "type": "object",
            "properties": {
                "title": {"type": "string"},
                "labels": {"type": "array", "items": {"type": "string"}},
                "state": {"enum": ["open", "closed"]},
            },
            "required": ["title"],
        },
        "server": "forge",
    },
    {"name": "forge.list_issues", "description": "List issues of a repository.", "server": "forge"},
    {"name": "mail.send", "description": "Send an e-mail to someone.", "server": "mail"},
]


class Ran(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tools.jsonl").write_text("\n".join(map(json.dumps, TOOLS)), encoding="utf-8")


def run(*arguments: str, stdin: str | None = None) -> Ran:
    result = CliRunner().invoke(main, list(arguments), input=stdin)
    return Ran(result.exit_code, result.stdout, result.stderr)


def test_list_groups_the_tools_by_source() -> None:
    assert run("list", "--catalog", "tools.jsonl") == Ran(
        0,
        "forge (2)\n"
        "  forge.create_issue  Open an issue.\n"
        "  forge.list_issues  List issues of a repository.\n"
        "mail (1)\n"
        "  mail.send  Send an e-mail to someone.\n"
        "3 tools, about 154 tokens\n",
        "",
    )


def test_list_reads_standard_input_and_any_shape() -> None:
    body = {"tools": [{"name": "a", "inputSchema": {"type": "object"}}]}

    ran = run("list", "--catalog", "-", "--json", stdin=json.dumps(body))

    assert json.loads(ran.out) == {
        "count": 1,
        "sources": {},
        "tools": [{"name": "a", "source": None, "summary": "", "tokens": 23}],
    }


def test_scope_options_leave_tools_out_everywhere() -> None:
    listed = run("list", "--catalog", "tools.jsonl", "--allow", "@forge", "--deny", "*create*")
    described = run("describe", "mail.send", "--catalog", "tools.jsonl", "--allow", "@forge")
    searched = run("search", "send mail", "--catalog", "tools.jsonl", "--deny", "@mail", "--json")

    assert "forge.list_issues" in listed.out
    assert "create_issue" not in listed.out
    assert described.code == 1
    assert described.err.startswith("error: no tool named 'mail.send'\n")
    assert "mail.send" not in searched.out


def test_search_prints_one_object_with_hits_best_first() -> None:
    ran = run("search", "open an issue", "--catalog", "tools.jsonl", "-k", "2", "--json")

    found = json.loads(ran.out)
    assert found["searched"] == 3
    assert [hit["name"] for hit in found["hits"]] == ["forge.create_issue", "forge.list_issues"]
    assert found["hits"][0]["signature"] == (
        'forge.create_issue(title: string, labels?: string[], state?: "open"|"closed")'
    )
    assert found["hits"][0]["score"] > found["hits"][1]["score"] > 0


def test_search_explains_why_each_hit_is_there() -> None:
    ran = run(
        "search", "open an issue", "--catalog", "tools.jsonl", "--explain", "--ranker", "bm25"
    )
    exact = run("search", "`mail.send`", "--catalog", "tools.jsonl", "--explain")

    assert "   why: words open " in ran.out
    assert "   why: the query is its name\n" in exact.out


def test_the_probability_that_a_search_explains_is_the_hits_score() -> None:
    ran = run("search", "open an issue", "--catalog", "tools.jsonl", "--explain", "--json")

    hits = json.loads(ran.out)["hits"]
    assert len(hits) > 1
    for hit in hits:
        if hit["shown"] == "companion":
            assert hit["why"] == "gives what a hit requires, or is of its source"
        else:
            assert hit["why"].endswith(f"; probability {hit['score']:.2f}")


def letters(count: int) -> None:
    tools = [{"name": f"letter_{i}", "description": f"Post a letter {i}."} for i in range(count)]
    Path("letters.jsonl").write_text("\n".join(map(json.dumps, tools)), encoding="utf-8")


def test_search_shows_what_a_model_is_answered_some_with_signatures_and_some_by_name() -> None:
    letters(4)
    asked = ("search", "post a letter", "--catalog", "letters.jsonl", "--ranker", "bm25", "-k", "2")

    lines = run(*asked).out.splitlines()
    found = json.loads(run(*asked, "--json").out)

    assert [line.split()[1] for line in lines if line[0].isdigit()] == [
        "letter_0",
        "letter_1",
        "letter_2",
        "letter_3",
    ]
    assert [" by name" in line for line in lines if line[0].isdigit()] == [
        False,
        False,
        True,
        True,
    ]
    assert [hit["shown"] for hit in found["hits"]] == ["signature"] * 2 + ["name"] * 2
    assert found["text"].startswith('4 of 4 tools for "post a letter":\n- letter_0()')
    assert found["tokens"] > 0
    assert (found["weak"], found["missed"]) == ([], [])


def test_one_that_is_searched_for_comes_alone() -> None:
    letters(4)

    one = run("search", "letter", "--catalog", "letters.jsonl", "-k", "1", "--json")
    exact = run("search", "letter_2", "--catalog", "letters.jsonl", "--json")

    assert len(json.loads(one.out)["hits"]) == 1
    assert [hit["name"] for hit in json.loads(exact.out)["hits"]] == ["letter_2"]


def test_search_names_companions_behind_the_hits() -> None:
    tools = [
        {
            "name": "buy_ticket",
            "description": "Buy a ticket for a train.",
            "server": "rail",
            "parameters": {
                "type": "object",
                "properties": {"station_code": {"type": "string"}},
                "required": ["station_code"],
            },
        },
        {"name": "get_station_codes", "description": "Codes by place.", "server": "rail"},
        {"name": "send_mail", "description": "Send an e-mail.", "server": "mail"},
    ]
    Path("rail.jsonl").write_text("\n".join(map(json.dumps, tools)), encoding="utf-8")

    asked = ("search", "buy a train ticket", "--catalog", "rail.jsonl")
    hits = json.loads(run(*asked, "--json").out)["hits"]

    assert [(hit["name"], hit["shown"]) for hit in hits] == [
        ("buy_ticket", "signature"),
        ("get_station_codes", "companion"),
    ]
    assert run(*asked).out.splitlines()[-1] == "may be needed too: get_station_codes"


def test_search_calls_hits_that_are_probably_wrong_the_nearest() -> None:
    Path("low.yaml").write_text("tools: {tool_search: {relevance_floor: 0}}", encoding="utf-8")
    asked = ("search", "call someone", "--catalog", "tools.jsonl", "--config", "low.yaml")

    assert run(*asked).out.startswith("no close match; nearest:\n1. ")
    assert json.loads(run(*asked, "--json").out)["weak"] == ["call someone"]


def test_search_answers_several_needs_one_by_one() -> None:
    ran = run("search", "open an issue | zzzz | send mail", "--catalog", "tools.jsonl", "-k", "1")

    assert ran.out.startswith("open an issue:\n1. forge.create_issue")
    assert "\nsend mail:\n1. mail.send" in ran.out
    assert ran.err == "no tool matches 'zzzz' (3 searched)\n"


def test_needs_beyond_what_a_search_takes_are_counted() -> None:
    query = " | ".join(f"open issue {i}" for i in range(10))

    ran = run("search", query, "--catalog", "tools.jsonl", "-k", "1")

    assert ran.err.endswith("2 further needs were not searched\n")


def test_search_without_a_match_says_so_and_succeeds() -> None:
    ran = run("search", "zzzz qqqq", "--catalog", "tools.jsonl")

    assert ran == Ran(0, "", "no tool matches (3 searched)\n")


def test_describe_prints_the_whole_definition() -> None:
    ran = run("describe", "create_issue", "--catalog", "tools.jsonl", "--json")

    assert json.loads(ran.out)["tools"] == [
        {
            "name": "forge.create_issue",
            "source": "forge",
            "description": "Open an issue. Needs write access.",
            "parameters": TOOLS[0]["parameters"],
            "signature": (
                'forge.create_issue(title: string, labels?: string[], state?: "open"|"closed")'
            ),
            "policy": "automatic",
            "annotations": {},
        }
    ]


def test_describe_suggests_a_near_name() -> None:
    assert run("describe", "forge.create_isue", "--catalog", "tools.jsonl") == Ran(
        1,
        "",
        "error: no tool named 'forge.create_isue'\n\nhint: did you mean 'forge.create_issue'?\n",
    )


def test_fold_prints_what_the_model_would_see() -> None:
    ran = run("fold", "--catalog", "tools.jsonl", "--enabled", "on", "--core", "mail.*", "--json")

    seen = json.loads(ran.out)
    assert {key: seen[key] for key in ("active", "strategy", "deferred", "kept")} == {
        "active": True, "strategy": "bridge", "deferred": 2, "kept": 1,
    }  # fmt: skip
    assert (seen["tools_before"], seen["tools_after"]) == (3, 4)
    assert seen["tokens_before"] > 0 < seen["tokens_after"]
    assert seen["threshold_tokens"] == 20_000
    assert [tool["function"]["name"] for tool in seen["tools"]] == [
        wire_name("mail.send"),
        "tool_search",
        "tool_describe",
        "tool_call",
    ]


def test_fold_below_the_gate_leaves_the_tools_open_and_says_why() -> None:
    ran = run("fold", "--catalog", "tools.jsonl", "--context-length", "1000000", "--json")

    seen = json.loads(ran.out)
    assert not seen["active"]
    assert seen["reason"].startswith("deferrable tools take ")
    assert seen["reason"].endswith("less than 100,000 (10 % of 1,000,000)")
    assert len(seen["tools"]) == 3


def test_fold_diff_shows_what_left_and_what_entered() -> None:
    ran = run("fold", "--catalog", "tools.jsonl", "--enabled", "on", "--diff")

    assert ran.out.splitlines()[:6] == [
        "- forge.create_issue",
        "- forge.list_issues",
        "- mail.send",
        "+ tool_search",
        "+ tool_describe",
        "+ tool_call",
    ]


def test_fold_keeps_the_shape_a_catalog_came_in() -> None:
    tools = [{"name": "a", "description": "b", "input_schema": {"type": "object"}}]
    Path("claude.json").write_text(json.dumps(tools), encoding="utf-8")

    ran = run("fold", "--catalog", "claude.json", "--enabled", "on", "--json")

    assert all("input_schema" in tool for tool in json.loads(ran.out)["tools"])


def test_check_reports_what_would_hurt_and_fails_on_errors() -> None:
    tools = [
        {"name": "a", "description": "Send a letter to a person by post."},
        {"name": "b", "description": "", "parameters": {"type": 5}},
        {"name": "a", "description": "x" * 3000},
        {"name": "tool_call", "description": "Calls a tool by its name."},
        {"name": "post letter", "description": "Send a letter to the person by post."},
        {"name": "letter_post", "description": "Send a letter to the person by the post."},
    ]
    Path("bad.jsonl").write_text("\n".join(map(json.dumps, tools)), encoding="utf-8")

    ran = run("check", "--catalog", "bad.jsonl", "--json")

    report = json.loads(ran.out)
    assert ran.code == 1
    kinds = {(finding["kind"], tuple(finding["tools"])) for finding in report["findings"]}
    assert kinds >= {
        ("name clash", ("a", "a")),
        ("name clash", ("tool_call",)),
        ("unusable schema", ("b",)),
        ("missing description", ("b",)),
        ("over-long description", ("a",)),
        ("near duplicates", ("post letter", "letter_post")),
    }
    assert report["costliest"][0]["name"] == "a"


def test_check_of_a_sound_catalog_succeeds() -> None:
    ran = run("check", "--catalog", "tools.jsonl")

    assert ran.code == 0
    assert ran.out.endswith("3 tools, 154 tokens: 0 errors, 0 warnings\n")


def test_check_and_fold_say_the_same_of_what_a_catalog_costs() -> None:
    checked = json.loads(run("check", "--no-retrieval", "--json").out)
    folded = json.loads(run("fold", "--context-length", "131072", "--json").out)

    assert (checked["tools"], checked["tokens"]) == (207, folded["tokens_before"])


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (
            ("serach", "x"),
            2,
            "error: no command is named `serach`\n\nhint: did you mean `search`?\n",
        ),
        (("search",), 2, "error: missing argument 'QUERY'\n\nhint: see `toolfold search --help`\n"),
        (
            ("list", "--catalog", "nope.json"),
            2,
            "error: cannot read `nope.json`: No such file or directory\n\nhint: check the path\n",
        ),
    ],
)
def test_a_usage_error_names_the_fix(arguments: tuple[str, ...], code: int, error: str) -> None:
    assert run(*arguments) == Ran(code, "", error)


def test_a_bad_entry_of_a_file_is_named_by_its_line() -> None:
    Path("a.jsonl").write_text('{"name": "a"}\n\n{"description": "b"}\n', encoding="utf-8")
    Path("b.json").write_text(
        '{\n "x": 1,\n "tools": [\n  {"name": "a"},\n  {"name": ""}\n]}', "utf-8"
    )
    Path("c.jsonl").write_text('{"name": "a"}\n{"name": \n', encoding="utf-8")
    Path("d.json").write_text('[{"name": "a"}\n {"name": "b"}]', encoding="utf-8")
    Path("e.json").write_text("", encoding="utf-8")

    errors = [
        run("list", "--catalog", name).err.split("\n")[0]
        for name in sorted(map(str, Path().iterdir()))
    ]

    assert errors == [
        "error: `a.jsonl`, line 3: it has no name",
        "error: `b.json`, line 5: it has no name",
        "error: `c.jsonl`, line 2: Expecting value",
        "error: `d.json`, line 2: expected ',' or ']'",
        "error: `e.json` is empty",
        "",
    ]


def test_a_clash_in_a_file_names_both_owners() -> None:
    Path("clash.jsonl").write_text('{"name":"a","server":"x"}\n{"name":"a","server":"y"}', "utf-8")

    assert run("list", "--catalog", "clash.jsonl").err == (
        "error: `clash.jsonl`, lines 1 and 2: two tools are named 'a': one from source 'x', "
        "one from source 'y'\n\n"
        "hint: rename one of them, or leave one out with a scope\n"
    )


def test_a_bad_configuration_is_named_with_its_line() -> None:
    Path("toolfold.yaml").write_text("tools:\n  tool_search:\n    threshold_pc: 5\n", "utf-8")

    assert run("fold", "--catalog", "tools.jsonl") == Ran(
        2,
        "",
        "error: unknown key `threshold_pc` in `toolfold.yaml`, line 3\n\n"
        "hint: did you mean `threshold_pct`?\n",
    )


def test_the_settings_file_of_the_working_folder_is_read() -> None:
    Path("toolfold.yaml").write_text("tools:\n  tool_search:\n    enabled: on\n", "utf-8")

    assert json.loads(run("fold", "--catalog", "tools.jsonl", "--json").out)["active"]


def test_demo_shows_the_whole_job() -> None:
    ran = run("demo")

    assert ran.code == 0
    assert "207 tools" in ran.out
    assert "host runs create_calendar_event" in ran.out
    assert '"status": "confirmed"' in ran.out
    assert '"create_calendar_event" is not available in this session.' in ran.out


def test_demo_ends_with_what_it_comes_to() -> None:
    assert run("demo").out.splitlines()[-8:] == [
        "Try it on your own tools",
        "   toolfold import",
        "   toolfold search 'what you need'",
        "   toolfold inspect",
        "   toolfold chat --model NAME",
        "",
        "   that conversation: 12 requests with 3 searches, 357,708 tokens of tools not sent",
        "   207 tools for 286 tokens, not 30,506: -99.1 %",
    ]


def test_eval_prints_one_object_for_each_corpus_and_ranker() -> None:
    corpus = Path("own")
    corpus.mkdir()
    (corpus / "tools.jsonl").write_text("\n".join(map(json.dumps, TOOLS)), encoding="utf-8")
    requests = [
        {
            "query": "open an issue",
            "gold": ["forge.create_issue"],
            "split": "test",
            "category": "a",
        },
        {"query": "send an e-mail", "gold": ["mail.send"], "split": "test_more"},
        {"query": "zzzz", "gold": [], "split": "test"},
        {"query": "list issues", "gold": ["forge.list_issues"], "split": "dev"},
    ]
    (corpus / "queries.jsonl").write_text("\n".join(map(json.dumps, requests)), encoding="utf-8")

    ran = run("eval", "own", "--split", "test", "--ranker", "bm25", "--ranker", "keyword", "--json")

    first, second = map(json.loads, ran.out.splitlines())
    assert (first["corpus"], first["ranker"], first["tools"], first["queries"]) == (
        "own",
        "bm25",
        3,
        3,
    )
    assert first["recall@1"] == first["recall@5"] == first["recall@10"] == first["mrr"] == 1.0
    assert first["ndcg@5"] == 1.0
    assert first["false_hit_rate"] == 0.0
    assert first["categories"]["a"]["recall@1"] == 1.0
    assert {"ms_p50", "ms_p95", "build_ms"} <= first.keys()
    assert second["ranker"] == "keyword"


def test_eval_counts_gold_that_the_catalog_lacks_as_not_found() -> None:
    corpus = Path("own")
    corpus.mkdir()
    (corpus / "tools.jsonl").write_text(json.dumps(TOOLS[0]), encoding="utf-8")
    (corpus / "queries.jsonl").write_text('{"query": "x", "gold": ["y"]}', encoding="utf-8")

    ran = run("eval", "own", "--json")

    assert ran.code == 0
    assert ran.err == "warning: `own` lacks the gold tool 'y': counted as not found\n"
    assert json.loads(ran.out)["recall@5"] == 0


def test_eval_draws_a_plot(tmp_path: Path) -> None:
    ran = run("eval", "--limit", "5", "--plot", "plot.svg")

    assert ran.code == 0
    assert Path("plot.svg").read_text(encoding="utf-8").startswith("<svg")


def test_eval_compares_runs_on_a_page_and_shows_the_floor_curve() -> None:
    first = run("eval", "--limit", "5", "--seed", "1", "--json")
    Path("before.jsonl").write_text(first.out, encoding="utf-8")

    ran = run(
        "eval", "--limit", "5", "--seed", "1", "--floor-curve",
        "--page", "page.html", "--compare", "before.jsonl",
    )  # fmt: skip

    assert ran.code == 0
    page = Path("page.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "before" in page
    assert "this run" in page
    assert "0.20" in ran.out.split("floor", 1)[1]
    assert json.loads(first.out)["queries"] == 5


def test_eval_compares_only_on_a_page() -> None:
    ran = run("eval", "--limit", "1", "--compare", "before.jsonl")

    assert ran.code == 2
    assert "--page" in ran.err


def test_eval_refuses_a_file_that_holds_no_results() -> None:
    Path("other.jsonl").write_text("[1]", encoding="utf-8")

    ran = run("eval", "--limit", "1", "--page", "page.html", "--compare", "other.jsonl")

    assert ran.code == 2
    assert "`other.jsonl` holds no results of `toolfold eval --json`" in ran.err


@pytest.mark.parametrize("command", ["check", "demo", "describe", "eval", "fold", "list", "search"])
def test_every_command_has_help_with_examples(command: str) -> None:
    ran = run(command, "--help")

    assert ran.code == 0
    assert "Examples:" in ran.out
    assert f"toolfold {command}" in ran.out
