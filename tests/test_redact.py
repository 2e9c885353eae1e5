"""`toolfold.redact`: secrets, taken out of what is written down."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.strategies import JSON_VALUES
from toolfold.redact import MARK, Redactor, redact, redacted
from toolfold.runtime.messages import Call

ROOT = Path(__file__).parents[1]
ALNUM = "abcXYZ0189"


def random(pattern: str) -> st.SearchStrategy[str]:
    return st.from_regex(pattern, fullmatch=True)


SECRETS = st.one_of(
    random(r"sk-[A-Z0-9][a-zA-Z0-9_]{20,40}"),
    random(r"sk-(ant-api03|proj|or-v1)-[A-Z0-9][a-zA-Z0-9_]{20,40}"),
    random(r"gh[opsru]_[A-Za-z0-9]{36}"),
    random(r"github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{20}"),
    random(r"glpat-[A-Za-z0-9]{20}"),
    random(r"xox[abprs]-[0-9]{10}-[A-Za-z0-9]{12,24}"),
    random(r"(AKIA|ASIA)[A-Z0-9]{16}"),
    random(r"AIza[A-Za-z0-9_]{35}"),
    random(r"hf_[A-Za-z0-9]{34}"),
    random(r"npm_[A-Za-z0-9]{36}"),
    random(r"(sk|rk|pk)_(live|test)_[A-Za-z0-9]{24}"),
    random(r"gsk_[A-Za-z0-9]{40}"),
    random(r"eyJ[A-Za-z0-9_]{10,20}\.eyJ[A-Za-z0-9_]{10,20}\.[A-Za-z0-9_]{20}"),
    random(r"-----BEGIN (RSA |EC |)PRIVATE KEY-----\n[A-Za-z0-9+/=\n]{20,60}"),
)
VALUES = random(r"[A-Za-z0-9!$%*+./:?@^_~-]{6,24}")
NAMES = st.sampled_from(
    "password PASSWORD db_password passwd passphrase token access_token refreshToken api_key "
    "apikey API-KEY x-api-key secret client_secret clientSecret private_key Authorization".split()
)
WORDS = st.lists(
    st.sampled_from(
        "the a token tokens secret cookie key bearer of basic password is said to her: and, see "
        "authorization. https://host/path?page=2 me@host.org 12 (word) task-list x=1 y: 2".split()
    ),
    max_size=12,
).map(" ".join)


# ---- what is taken out


@given(SECRETS, WORDS, WORDS)
def test_a_key_with_a_makers_prefix_never_survives(secret: str, before: str, after: str) -> None:
    shown = redact(f"{before} {secret} {after}")

    assert secret not in shown
    assert MARK in shown


@given(
    NAMES, VALUES, st.sampled_from(["{}={}", '"{}": "{}"', "{}='{}'", '"{}":"{}"', "&{}={}&x=1"])
)
def test_a_value_behind_a_name_never_survives(name: str, value: str, form: str) -> None:
    shown = redact(f"before {form.format(name, value)} after")

    assert shown == f"before {form.format(name, MARK)} after"


@given(st.text("abcdefg0123456789", min_size=1, max_size=12), VALUES)
def test_a_password_in_an_address_never_survives(user: str, value: str) -> None:
    password = value.replace("/", "-").replace("?", "-")

    assert redact(f"at postgres://{user}:{password}@db.host:5432/x") == (
        f"at postgres://{user}:{MARK}@db.host:5432/x"
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Authorization: Bearer abcdef\nAccept: x", "Authorization: Bearer [redacted]\nAccept: x"),
        ("authorization: basic dXNlcjpwYXNz", "authorization: basic [redacted]"),
        ("curl -H 'Authorization: token abc' x", "curl -H 'Authorization: token [redacted]' x"),
        ("sent with Bearer abc123def456.", "sent with Bearer [redacted]"),
        ("Cookie: a=b; session=c\nHost: x", "Cookie: [redacted]\nHost: x"),
        ("set-cookie: id=1; Path=/", "set-cookie: [redacted]"),
        ("https://h/x?key=abc&page=2", "https://h/x?key=[redacted]&page=2"),
        ("https://h/x?a=1&sig=abc%2F#top", "https://h/x?a=1&sig=[redacted]#top"),
        ("Server=h;Password=abc;Database=y", "Server=h;Password=[redacted];Database=y"),
        ("connect(password=abc, user='me')", "connect(password=[redacted], user='me')"),
        ("  password: hunter", "  password: [redacted]"),
        ("api key: 12345abc, ok", "api key: [redacted], ok"),
        ('{"password": "a \\"b\\" c", "x": 1}', '{"password": "[redacted]", "x": 1}'),
        (
            '{"arguments": "{\\"token\\":\\"abc\\"}"}',
            '{"arguments": "{\\"token\\":\\"[redacted]\\"}"}',
        ),
        ('{"token": 123456, "n": 2}', '{"token": "[redacted]", "n": 2}'),
        ('{"Authorization": "Bearer abc"}', '{"Authorization": "Bearer [redacted]"}'),
        ("-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----\nx", "[redacted]\nx"),
        ("password='[redacted]'", "password='[redacted]'"),
    ],
)
def test_secrets_are_taken_out_where_people_and_programs_write_them(text: str, shown: str) -> None:
    assert redact(text) == shown


# ---- what stays


@pytest.mark.parametrize(
    "text",
    [
        "login(user: string, password: string)",
        "password: string",
        "token?: string, secret: string | null",
        "token=None, password=null, secret=true",
        "max_tokens=100, prompt_tokens: 12345678, 'tokens': 99",
        "next_page_token=abc123 nextToken=abc123 pageToken: abc123",
        "Basic Authentication and Bearer tokens",
        "The token: a word of the text. Its secret: nobody knows.",
        "Your API key: please keep it to yourself",
        "if token == other: return password",
        "task-management-and-more-things sk-learn-contrib-extras",
        "git@github.com:me/repo.git http://localhost:8000/a@b",
        '{"password": {"type": "string", "description": "The password"}}',
        '{"required": ["password", "token"], "token": ""}',
        "PWD=/home/me",
        "cookies: 12 of them",
        "public key -----BEGIN PUBLIC KEY-----",
    ],
)
def test_what_only_speaks_of_secrets_stays(text: str) -> None:
    assert redact(text) == text


@given(WORDS)
def test_ordinary_text_is_unchanged(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize("name", ["README.md", "CHANGELOG.md", "src/toolfold/demo/catalog.jsonl"])
def test_whole_documents_are_unchanged(name: str) -> None:
    text = (ROOT / name).read_text("utf-8")

    assert redact(text) == text


# ---- always


FRAGMENTS = st.lists(
    st.one_of(
        SECRETS,
        VALUES,
        NAMES,
        st.sampled_from(
            [
                MARK,
                "[",
                "]",
                "redacted",
                "=",
                ":",
                " ",
                '"',
                "'",
                "\\",
                '\\"',
                "\n",
                "&",
                ";",
                ",",
                "(",
            ]
        ),
        st.sampled_from(
            ["Bearer ", "Authorization: Digest ", "Cookie: ", "://", "@", "?key=", "eyJ"]
        ),
        st.text(max_size=3),
    ),
    max_size=12,
).map("".join)


@given(FRAGMENTS)
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    once = redact(text)

    assert redact(once) == once


@given(st.dictionaries(NAMES | st.text(max_size=5), JSON_VALUES, max_size=4))
def test_json_stays_json(value: Any) -> None:
    json.loads(redact(json.dumps(value)))


@pytest.mark.parametrize(
    "text",
    [
        "a" * 300_000,
        "sk-" * 100_000,
        "-eyJ" * 75_000,
        "token:" * 50_000 + ",",
        "token: " * 50_000,
        "token" + " " * 300_000,
        "://" + "a" * 300_000,
        "://a:" * 60_000,
        "Bearer " * 40_000,
        "-----BEGIN PRIVATE KEY-----" * 11_000,
        "Authorization: Digest " + '"a" ' * 70_000,
        "password=" + "\\" * 300_000,
        'password="' + '\\"' * 150_000,
        "cookie:" * 40_000,
        "?key=" * 60_000,
    ],
    ids=lambda text: text[:12],
)
def test_no_text_takes_long(text: str) -> None:
    started = time.process_time()
    redact(text)

    assert time.process_time() - started < 3


# ---- JSON values


def test_keys_tell_of_secrets() -> None:
    value = {
        "api_key": "abc",
        "nested": [{"password": 1234, "token": None, "max_tokens": 5}],
        "headers": {"Authorization": "x", "Cookie": ["a", "b"], "Accept": "y"},
        "credentials": {"user": "me", "more": {"x": "y"}, "active": True},
        "text": "password=abc",
        "schema": {"password": {"type": "string", "default": ""}, "token": {"$ref": "#/x"}},
        "tuple": ("secret=a", 1.5),
    }

    assert redacted(value) == {
        "api_key": MARK,
        "nested": [{"password": MARK, "token": None, "max_tokens": 5}],
        "headers": {"Authorization": MARK, "Cookie": [MARK, MARK], "Accept": "y"},
        "credentials": {"user": MARK, "more": {"x": MARK}, "active": True},
        "text": f"password={MARK}",
        "schema": {"password": {"type": "string", "default": ""}, "token": {"$ref": "#/x"}},
        "tuple": [f"secret={MARK}", 1.5],
    }


@given(JSON_VALUES)
def test_values_without_secrets_are_unchanged_and_never_shared(value: Any) -> None:
    shown = redacted(value)

    assert shown == value
    assert not isinstance(value, dict | list) or shown is not value


@given(NAMES, st.text(min_size=1, max_size=30), st.integers(0, 3))
def test_a_value_under_a_secrets_name_never_survives(name: str, secret: str, depth: int) -> None:
    value: Any = {name: {"inner": [secret]}}
    for _ in range(depth):
        value = [{"x": value}]

    shown = json.dumps(redacted(value))

    assert json.dumps({"inner": [MARK]}) in shown


def test_what_is_nested_without_end_is_cut() -> None:
    value: Any = "x"
    for _ in range(5_000):
        value = [value]

    shown = redacted(value)
    for _ in range(200):
        shown = shown[0]

    assert shown == MARK


# ---- exact values


LOUD = st.text(min_size=6, max_size=20).filter(
    lambda s: len(s.strip()) >= 6 and s.strip() not in MARK
)


@given(st.lists(LOUD, min_size=1, max_size=3), st.text(max_size=10), st.text(max_size=10))
def test_a_known_value_never_survives(secrets: list[str], before: str, after: str) -> None:
    redactor = Redactor(secrets)
    text = before + "".join(secrets) + after

    shown = redactor.redact(text)

    assert not [secret for secret in secrets if secret.strip() in shown]
    assert redactor.redact(shown) == shown


@given(LOUD)
def test_a_known_value_never_survives_as_json_or_in_an_address(secret: str) -> None:
    redactor = Redactor([secret])
    known = secret.strip()
    in_json, in_address = json.dumps(known)[1:-1], quote(known, safe="", errors="replace")

    assert in_json not in redactor.redact(json.dumps({"x": [f"a {known} b"]}))
    assert in_address in MARK or in_address not in redactor.redact(f"https://h/{in_address}/x")


def test_short_values_are_left_alone() -> None:
    assert Redactor(["a", "abc", "", " "]).redact("a abc abcdef") == "a abc abcdef"


def test_the_environment_says_what_is_secret() -> None:
    redactor = Redactor.from_environment(
        {
            "OPENAI_API_KEY": "one-value",
            "GITHUB_TOKEN": "two-value",
            "DB_PASSWORD": " three-value\n",
            "HOME": "/home/me",
            "MAX_TOKENS": "100000",
        }
    )

    text = "one-value two-value three-value /home/me 100000"
    assert redactor.redact(text) == f"{MARK} {MARK} {MARK} /home/me 100000"
    assert redactor.redacted({"x": ["one-value"]}) == {"x": [MARK]}
    assert "one-value" not in repr(redactor)


def test_the_arguments_of_a_call_stay_readable() -> None:
    call = Call("login", '{"user": "me", "password": "hunter2"}', "c1")

    assert redact(call.arguments) == '{"user": "me", "password": "[redacted]"}'
