"""What a request asks to be done, where one word says two things."""

import pytest

from toolfold import Settings, fold
from toolfold.demo import demo_catalog
from toolfold.search._verbs import kinds_asked


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        ("open a pull request", "forge__create_pull_request"),
        ("please open a new high-priority issue", "forge__create_issue"),
        ("show open pull requests", "forge__list_pull_requests"),
        ("open issues assigned to me", "forge__list_issues"),
    ],
)
def test_what_is_opened_by_being_made_is_told_from_what_is_open(
    request_: str, expected: str
) -> None:
    bridge = fold(demo_catalog(), settings=Settings(enabled="on", cache_dir="off")).bridge

    assert bridge.search(request_, 1)[0].name == expected


@pytest.mark.parametrize(
    ("request_", "like"),
    [
        ("can you open a ticket", "create a ticket"),
        ("list everyone who may open a pull request", "list everyone"),
        ("delete the draft that I used to open a pull request", "delete the draft"),
        ("open an existing issue", "an existing issue"),
        ("open a file", "a file"),
    ],
)
def test_the_first_verb_says_what_is_asked_for(request_: str, like: str) -> None:
    assert kinds_asked([request_]) == kinds_asked([like])
