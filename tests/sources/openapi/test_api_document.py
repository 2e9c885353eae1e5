"""Documents: what is read, in which bounds, and where a fault is said to be."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from support.apis import document, operation, source_of
from toolfold.sources.openapi import DocumentError, HttpApi, OpenAPISource
from toolfold.sources.openapi._yaml_values import yaml_value
from toolfold.sources.openapi.api_document import read_document

HEAD = "openapi: 3.0.3\ninfo: {title: T, version: '1'}\n"


def refused(text: str | bytes) -> DocumentError:
    with pytest.raises(DocumentError) as caught:
        source_of(text)
    return caught.value


def test_json_and_yaml_of_both_versions_come_to_the_same_tools() -> None:
    tools: list[Any] = []
    for version in ("3.0.3", "3.1.0"):
        given = {**document({"/a": {"get": operation(summary="Go")}}), "openapi": version}
        texts = (json.dumps(given), yaml.safe_dump(given), json.dumps(given).encode())
        tools += [source_of(text).tools() for text in texts]

    assert all(each == tools[0] for each in tools)


def test_yaml_is_read_as_version_1_2_has_it() -> None:
    text = "{no: no, 200: [on, 2024-01-02, 0x1F, 1_0, .5, ~, True, '7'], a: &x {b: 1}, c: *x}"

    assert yaml_value(text) == {
        "no": "no",
        "200": ["on", "2024-01-02", 31, "1_0", 0.5, None, True, "7"],
        "a": {"b": 1},
        "c": {"b": 1},
    }


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


words = st.text("abyesno~012.:- {}#&*!|>'\"%@`", max_size=6)


@given(value=st.dictionaries(words, words | st.lists(words, max_size=3), max_size=4))
def test_what_is_written_as_json_is_read_as_the_same_yaml(value: dict[str, Any]) -> None:
    assert yaml_value(json.dumps(value)) == value


# ---- faults


def test_swagger_2_is_refused_with_the_name_of_a_converter() -> None:
    error = refused('{"swagger": "2.0", "paths": {}}')

    assert error.message == "`api`, at `#/swagger`: it is Swagger 2.0"
    assert error.hint is not None and "swagger2openapi" in error.hint


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "`api`, at `#`: it is no `openapi`"),
        ("[]", "`api` is no object"),
        ("", "`api` is no object"),
        ('{"openapi": "4.0.0"}', "`api`, at `#/openapi`: it is OpenAPI '4.0.0'"),
        (HEAD, "`api`, at `#`: it has no `paths`"),
        (
            f"{HEAD}paths: {{}}",
            "`api`, line 3, at `#/paths`: there is no operation to call: it has none",
        ),
        ('{"openapi": "3.0.0",\n "paths": }', "`api`, line 2: unexpected character"),
        (f"{HEAD}paths:\n  a: [", "`api`, line 5: did not find expected node content"),
        (f"{HEAD}paths: !!python/name:os.system x", "`api`, line 3: the tag"),
        (f"{HEAD}---\na: 1", "`api`, line 3: it holds more than one document"),
        (b"\xff\xfe", "`api` is not UTF-8: byte 0"),
    ],
)
def test_a_document_that_cannot_be_used_says_where(text: str | bytes, message: str) -> None:
    assert refused(text).message.startswith(message)


def test_a_fault_of_the_only_operation_names_its_line() -> None:
    text = f"""{HEAD}paths:
  /a/{{id}}:
    get:
      parameters:
        - name: id
          in: nowhere
"""

    assert refused(text).message == (
        "`api`, line 7, at `#/paths/~1a~1{id}/get/parameters/0`: "
        "there is no operation to call: `in` is 'nowhere'"
    )


def test_one_faulty_operation_is_left_out_and_noted_and_the_others_are_there() -> None:
    paths = {
        "/a": {"get": {"operationId": "a", "parameters": [{"$ref": "#/components/nothing"}]}},
        "/b": {"get": {"operationId": "b"}, "put": 7},
        "/c": {"$ref": "http://evil.example/c.yaml"},
    }

    source = source_of(document(paths))

    assert [tool.bare_name for tool in source.tools()] == ["b"]
    assert source.notes == (
        "openapi api: `api`, at `#/paths/~1b/put`: an operation is no object",
        "openapi api: `api`, at `#/paths/~1c/$ref`: "
        "the reference `http://evil.example/c.yaml` leads out of the document",
        "openapi api: `api`, at `#/paths/~1a/get/parameters/0/$ref`: "
        "the reference `#/components/nothing` leads nowhere",
    )


def test_a_missing_file_names_the_key(tmp_path: Path) -> None:
    with pytest.raises(DocumentError) as caught:
        OpenAPISource(HttpApi("pets", file="gone.yaml", folder=tmp_path))

    assert caught.value.hint == "check `openapi.pets.file`"


# ---- strangers


def test_a_bomb_of_aliases_is_refused_at_once() -> None:
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    began = time.perf_counter()

    error = refused(HEAD + "\n".join(lines))

    assert "with its aliases it holds more than 2,000,000 values" in error.message
    assert time.perf_counter() - began < 2


@pytest.mark.parametrize("text", ["[" * 100_000, "{a: " * 100_000, '{"a":' * 100_000])
def test_a_document_that_nests_without_end_is_refused(text: str) -> None:
    assert "`api`" in refused(text).message


def test_an_alias_of_itself_is_refused() -> None:
    assert "an alias names nothing" in refused(f"{HEAD}paths: &a {{b: *a}}").message


def test_a_document_beyond_the_bound_is_not_read() -> None:
    assert refused(b" " * (32 * 1024 * 1024 + 1)).message == "`api` has more than 33,554,432 bytes"


@pytest.mark.parametrize(
    "path",
    ["/../admin", "/a/%2e%2E/b", "no-slash", "/a?b=c", "/a b", "/a\nb", "/a{b", "//{x}/.."],
)
def test_a_path_that_leads_elsewhere_is_left_out(path: str) -> None:
    source = source_of(
        document({path: {"get": operation()}, "/ok": {"get": {"operationId": "ok"}}})
    )

    assert [tool.bare_name for tool in source.tools()] == ["ok"]
    assert len(source.notes) == 1


def test_names_of_control_characters_are_refused() -> None:
    bad = [
        operation({"name": "a\r\nb", "in": "query", "schema": {}}),
        operation({"name": "X\r\nEvil", "in": "header", "schema": {}}),
        operation({"name": "X Evil", "in": "header", "schema": {}}),
        operation({"name": "X:Evil", "in": "header", "schema": {}}),
    ]
    paths = {f"/{n}": {"get": each} for n, each in enumerate(bad)}

    source = source_of(document({**paths, "/ok": {"get": {"operationId": "ok"}}}))

    assert [tool.bare_name for tool in source.tools()] == ["ok"]
    assert len(source.notes) == len(bad)


def test_references_that_lead_round_and_round_end() -> None:
    loop = {"$ref": "#/components/parameters/b"}
    components = {"parameters": {"a": loop, "b": {"$ref": "#/components/parameters/a"}}}
    paths = {"/a": {"get": operation(loop)}, "/b": {"get": {"operationId": "b"}}}

    source = source_of(document(paths, components=components))

    assert [tool.bare_name for tool in source.tools()] == ["b"]
    assert source.notes[0].endswith("its reference leads round and round")


def test_ten_megabytes_of_operations_are_read_within_seconds() -> None:
    long = "x" * 4_000
    paths = {f"/p{n}": {"get": {"summary": long}} for n in range(2_500)}
    text = json.dumps(document(paths))
    began = time.perf_counter()

    assert len(text) > 10_000_000
    assert len(source_of(text).tools()) == 2_500
    assert time.perf_counter() - began < 10


@given(text=st.text(max_size=200) | st.binary(max_size=200))
def test_no_text_raises_anything_but_an_error_about_the_document(text: str | bytes) -> None:
    try:
        read_document(text, "x")
    except DocumentError as error:
        assert error.message.startswith("`x`")


@given(value=json_values)
def test_no_document_raises_anything_but_an_error_about_it(value: Any) -> None:
    for paths in (
        value,
        {"/a": value},
        {"/a": {"get": value}},
        {"/a": {"get": {"parameters": value}}},
    ):
        for body in (
            paths,
            {"/a": {"post": {"requestBody": {"content": {"application/json": value}}}}},
        ):
            try:
                source_of(document(body, components=value, servers=value, security=value))
            except DocumentError as error:
                assert error.message.startswith("`api`")
