"""Requests are searched in the words that the tools have: errors mended, compounds joined."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolfold import Catalog, Settings, Tool, fold
from toolfold.demo import demo_catalog
from toolfold.evaluation import load_corpus, measure
from toolfold.search._spelling import Spelling

TOOLS = Catalog(
    [
        Tool("create_calendar_event", "Put an entry into a calendar."),
        Tool("issue_create", "Open an issue.", source="github"),
        Tool("repo_search", "Search the repositories of GitLab."),
        Tool("send_email", "Send a message to an address."),
        Tool("file_form_1099", "File a tax form."),
        Tool("file_form_1040", "File a tax form."),
        Tool("list_plugins", "Browse what is installed."),
    ]
)
DEMO = Path(__file__).parents[2] / "src" / "toolfold" / "demo"
WORDS = {"calendar", "github", "gitlab", "email", "timezon"}


def spelt(query: str) -> str:
    return Spelling(WORDS.__contains__, {"tokyo", "weather"}.__contains__).spelt(query)


def first(query: str, tools: Catalog = TOOLS) -> str:
    bridge = fold(tools, settings=Settings(enabled="on", relevance_floor=0.0)).bridge
    return bridge.search(query, 1)[0].name


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("my calednar", "my calendar"),  # swapped
        ("my caendar", "my calendar"),  # missing
        ("my calenndar", "my calendar"),  # surplus
        ("my calemdar", "my calendar"),  # wrong
        ("wetaher in tokyo", "weather in tokyo"),  # a word that only the table has
        ("open it on GitHub", "open it on github"),
        ("an e-mail", "an email"),
        ("git hub issues", "github issues"),
    ],
)
def test_a_request_is_put_into_the_words_of_the_tools(written: str, meant: str) -> None:
    assert spelt(written) == meant


@pytest.mark.parametrize(
    "query",
    [
        "calendar",
        "what is the weather in tokyo",
        "for the calendar",
        "write to caendar@example.org",
        "Calemdar",  # a name, more likely than an error
        "see caendar_2",
        "wxyzq vwxyz klmno prstu",  # too much is strange: another language
        "",
        "日本語 calendar",
    ],
)
def test_what_is_no_error_stays_as_it_is(query: str) -> None:
    assert spelt(query) == query


@given(st.text(max_size=200))
def test_every_text_can_be_spelt_and_stays_so(text: str) -> None:
    once = spelt(text)

    assert isinstance(once, str)
    assert len(once) <= len(text) + 4


def test_a_mistyped_word_finds_its_tool() -> None:
    assert first("calednar entry") == "create_calendar_event"


def test_a_product_is_found_however_it_is_written() -> None:
    assert first("open GitHub issue") == first("open github issue") == "issue_create"
    assert first("search gitlab") == first("search GitLab") == "repo_search"


def test_a_number_that_names_a_thing_counts() -> None:
    assert first("form 1099") == "file_form_1099"
    assert first("form 1040") == "file_form_1040"


def test_two_swapped_letters_cost_little_over_the_bundled_catalog() -> None:
    corpus = load_corpus(DEMO)
    settings = Settings(enabled="on", relevance_floor=0.0)

    def swapped(query: str) -> str:
        longest = max(query.split(), key=len)
        middle = len(longest) // 2
        typed = (
            longest[: middle - 1] + longest[middle] + longest[middle - 1] + longest[middle + 1 :]
        )
        return query.replace(longest, typed, 1) if longest.isalpha() and middle else query

    requests = tuple(replace(r, query=swapped(r.query)) for r in corpus.requests)
    right = measure(corpus, settings).metrics["recall@5"] or 0
    wrong = measure(corpus._replace(requests=requests), settings).metrics["recall@5"] or 0

    assert right - wrong <= 0.04


def test_names_in_other_scripts_are_split_at_their_capitals() -> None:
    tools = Catalog(
        [
            Tool("получитьПогоду", "Прогноз для города."),
            Tool("отправитьПисьмо", "Отправить письмо."),
            Tool("получитьКурс", "Курс валют."),
        ]
    )

    assert first("погоду", tools) == "получитьПогоду"


def test_a_tool_is_not_about_the_values_in_its_parameters() -> None:
    zone = {"type": "string", "description": "Zone, such as 'America/New_York' or 'Asia/Tokyo'"}
    one = {"type": "object", "properties": {"timezone": {"type": "string"}}}
    two = {"type": "object", "properties": {"source_timezone": zone, "target_timezone": zone}}
    tools = Catalog(
        [
            Tool("get_current_time", "Get current time in a specific timezone", one),
            Tool("convert_time", "Convert time between timezones", two),
        ]
    )

    assert first("what time is it in Tokyo", tools) == "get_current_time"
    assert first("convert 5pm London time to Tokyo time", tools) == "convert_time"


def test_the_verb_tells_siblings_apart() -> None:
    tools = Catalog(
        [
            Tool(f"vm_{verb}", f"{said} a virtual machine of a subscription.", source="compute")
            for verb, said in (("create", "Create"), ("delete", "Delete"), ("get", "Show"))
        ]
    )

    assert first("get virtual machine", tools) == "vm_get"
    assert first("remove virtual machine", tools) == "vm_delete"
    assert first("what virtual machine is there", tools) == "vm_get"


def test_requests_of_the_bundled_catalog_are_not_respelt() -> None:
    held = {term for tool in demo_catalog() for term in tool.name.split("_")}

    assert Spelling(held.__contains__, lambda _: True).spelt("refund a customer") == (
        "refund a customer"
    )
