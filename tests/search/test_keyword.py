"""`toolfold.search.keyword`: words in the name, words in the description, and nothing inside."""

from hypothesis import given
from hypothesis import strategies as st

from toolfold import Tool
from toolfold.search.keyword import Keyword

TOOLS = [
    Tool("create_branch", "Start a line of work."),
    Tool("assign_issue_with_intent", "Hand over an issue."),
    Tool("list_animals", "Show what lives in the zoo."),
    Tool("db_query", "Ask a database."),
]


def names(query: str, tools: list[Tool] = TOOLS) -> list[str]:
    return [tools[match.position].name for match in Keyword().searcher(tools).search(query, 8)]


def test_letters_inside_a_word_are_no_match_where_another_tool_has_the_word() -> None:
    assert names("ranch") == ["create_branch"]
    assert names("ranch", [*TOOLS, Tool("ranch_report", "Cattle.")]) == ["ranch_report"]


def test_a_word_of_two_letters_is_a_whole_word_or_none() -> None:
    assert names("in a branch") == ["create_branch"]
    assert names("an animal") == ["list_animals"]
    assert names("db") == ["db_query"]


def test_a_longer_word_may_go_on() -> None:
    assert names("data") == ["db_query"]
    assert names("issue") == ["assign_issue_with_intent"]


@given(st.sampled_from(TOOLS), st.sampled_from(["", "`", '"', "'"]))
def test_a_query_that_is_a_name_finds_it_first_quoted_or_not(tool: Tool, quote: str) -> None:
    assert names(f"{quote}{tool.name.upper()}{quote}")[0] == tool.name
