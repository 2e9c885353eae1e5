"""What becomes of a document's operations: names, parameters, bodies, words."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from support.apis import BASE, Answers, called, document, operation, sent, source_of
from toolfold import ConfigError, Tool
from toolfold.sources.openapi import DocumentError


def only_tool(given: dict[str, Any], **api: Any) -> Tool:
    (tool,) = source_of(given, **api).tools()
    return tool


def body_of(schema: Any, kind: str = "application/json", **more: Any) -> dict[str, Any]:
    return {"required": True, "content": {kind: {"schema": schema}}, **more}


def object_of(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


# ---- names


def test_a_name_comes_from_the_operation_id_else_from_method_and_path() -> None:
    paths = {
        "/a": {"get": {"operationId": "repos/list-for-org"}, "post": {}},
        "/users/{id}/keys": {"delete": {}},
    }

    names = [tool.name for tool in source_of(document(paths)).tools()]

    assert names == ["api__repos_list-for-org", "api__post_a", "api__delete_users_by_id_keys"]


def test_operations_of_one_id_are_told_apart_by_method_and_path() -> None:
    paths = {"/a": {"get": {"operationId": "x"}}, "/b": {"get": {"operationId": "x"}}}

    names = [tool.name for tool in source_of(document(paths)).tools()]

    assert names == ["api__x_get_a", "api__x_get_b"]


def test_paths_that_differ_in_punctuation_alone_are_counted() -> None:
    paths = {"/a-b": {"get": {}}, "/a_b": {"get": {}}, "/a.b": {"get": {}}}

    names = {tool.name for tool in source_of(document(paths)).tools()}

    assert names == {"api__get_a-b", "api__get_a_b", "api__get_a_b_2"}


def test_no_name_is_longer_than_clients_take_or_holds_what_they_do_not() -> None:
    paths = {"/a": {"get": {"operationId": "long" * 60}, "put": {"operationId": "a\nb\u202e.c"}}}

    names = [tool.name for tool in source_of(document(paths)).tools()]

    assert [len(name) <= 64 and name.isascii() and name.isprintable() for name in names] == [1, 1]


def test_what_follows_a_hash_in_a_path_tells_operations_apart_and_is_not_sent() -> None:
    paths = {"/files/{id}#share": {"put": operation()}, "/files/{id}": {"put": {}}}

    assert len(source_of(document(paths)).tools()) == 2
    assert sent(document(paths), {"id": "7"}).target == "/v1/files/7"


# ---- words and hints


def test_summary_and_description_make_the_description_and_tags_help_the_search() -> None:
    given = operation(summary="List pets", description="<p>All of them.</p>", tags=["animals"])

    tool = only_tool(document({"/pets": {"get": given}}))

    assert tool.description == "List pets.\n\nAll of them."
    assert tool.title == "List pets"
    assert tool.aliases == ("animals",)
    assert tool.toolset_name == "api"


def test_a_description_that_repeats_the_summary_stands_alone() -> None:
    given = operation(summary="List pets.", description="List pets of a shop.")

    assert only_tool(document({"/pets": {"get": given}})).description == "List pets of a shop."


def test_the_method_says_what_a_call_may_do() -> None:
    paths = {"/a": {m: {"operationId": m} for m in ("get", "put", "post", "delete", "patch")}}

    hints = {tool.bare_name: tool.annotations for tool in source_of(document(paths)).tools()}

    assert hints["get"] == {"readOnlyHint": True}
    assert hints["delete"]["destructiveHint"] is True
    assert hints["put"]["idempotentHint"] is True
    assert [hints[name]["readOnlyHint"] for name in ("put", "post", "delete", "patch")] == [
        False
    ] * 4


def test_deprecated_operations_are_left_out_or_marked() -> None:
    paths = {"/a": {"get": operation(deprecated=True, summary="Go"), "put": {}}}

    kept = source_of(document(paths), deprecated=True).tools()

    assert [tool.name for tool in source_of(document(paths)).tools()] == ["api__put_a"]
    assert kept[0].description == "Deprecated. Go."


def test_hidden_letters_of_a_description_are_written_out() -> None:
    tool = only_tool(document({"/a": {"get": operation(summary="a\u202eb")}}))

    assert tool.description == "a[U+202E]b."


def test_allow_and_deny_are_patterns_over_operations() -> None:
    paths = {f"/{name}": {"get": {"operationId": name}} for name in ("pets_list", "pets_get", "x")}

    tools = source_of(document(paths), allow=("pets_*",), deny=("*_get",)).tools()

    assert [tool.bare_name for tool in tools] == ["pets_list"]


def test_a_pattern_that_matches_nothing_is_noted() -> None:
    source = source_of(document({"/a": {"get": operation()}}), deny=("delete_*",))

    assert source.notes == ("openapi api: the pattern 'delete_*' matches no operation",)


# ---- parameters


def test_parameters_of_all_places_are_arguments_and_the_operations_own_win() -> None:
    shared = [
        {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}},
        {"name": "page", "in": "query", "schema": {"type": "string"}},
    ]
    own = operation(
        {"name": "page", "in": "query", "schema": {"type": "integer"}, "description": "Which."},
        {"name": "X-Trace", "in": "header", "schema": {"type": "string"}},
        {"name": "flavour", "in": "cookie", "schema": {"type": "string"}},
    )
    given = document({"/pets/{id}": {"parameters": shared, "get": own}})

    asked = sent(given, {"id": 7, "page": 2, "X-Trace": "t", "flavour": "nut"})

    assert only_tool(given).parameters == {
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "page": {"type": "integer", "description": "Which."},
            "X-Trace": {"type": "string"},
            "flavour": {"type": "string"},
        },
        "required": ["id"],
    }
    assert asked.target == "/v1/pets/7?page=2"
    assert asked.headers["x-trace"] == "t"
    assert asked.headers["cookie"] == "flavour=nut"


def test_parameters_of_one_name_and_odd_names_have_arguments_of_their_own() -> None:
    given = document(
        {
            "/{id}": {
                "get": operation(
                    {"name": "id", "in": "query", "schema": {}},
                    {"name": "filter[name]", "in": "query", "schema": {}},
                )
            }
        }
    )

    arguments = list(only_tool(given).parameters["properties"])
    values = dict(zip(arguments, "abc", strict=True))

    assert arguments == ["id", "filter_name", "id_path"]
    assert sent(given, values).target == "/v1/c?id=a&filter%5Bname%5D=b"


def test_a_name_in_braces_that_nobody_declares_is_an_argument_all_the_same() -> None:
    tool = only_tool(document({"/pets/{id}": {"get": operation()}}))

    assert tool.parameters["properties"] == {"id": {"type": "string"}}
    assert tool.parameters["required"] == ["id"]


def test_headers_that_are_the_connections_or_the_configurations_are_no_arguments() -> None:
    names = ["Authorization", "Host", "Content-Length", "Cookie", "X-Forwarded-For", "Accept"]
    parameters = [{"name": n, "in": "header", "required": True, "schema": {}} for n in names]

    tool = only_tool(document({"/a": {"get": operation(*parameters)}}))

    assert tool.parameters == {"type": "object", "properties": {}}


# ---- bodies


def test_the_properties_of_a_body_are_arguments() -> None:
    schema = object_of("name", name={"type": "string"}, age={"type": "integer"})
    given = document({"/pets": {"post": operation(requestBody=body_of(schema))}})

    asked = sent(given, {"name": "Rex", "age": None})

    assert only_tool(given).parameters["required"] == ["name"]
    assert asked.json == {"name": "Rex", "age": None}
    assert asked.headers["content-type"] == "application/json"


def test_a_body_is_one_argument_where_a_name_of_it_is_taken() -> None:
    schema = object_of(id={"type": "string"})
    given = document({"/pets/{id}": {"put": operation(requestBody=body_of(schema))}})

    asked = sent(given, {"id": "7", "body": {"id": "8"}})

    assert list(only_tool(given).parameters["properties"]) == ["id", "body"]
    assert (asked.target, asked.json) == ("/v1/pets/7", {"id": "8"})


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": {"type": "string"}},
        {"oneOf": [object_of(a={}), object_of(b={})]},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {**object_of(a={}), "additionalProperties": True},
    ],
)
def test_a_body_that_is_no_plain_object_is_one_argument(schema: dict[str, Any]) -> None:
    tool = only_tool(document({"/a": {"post": operation(requestBody=body_of(schema))}}))

    assert list(tool.parameters["properties"]) == ["body"]
    assert tool.parameters["required"] == ["body"]


def test_plain_objects_that_make_one_body_together_are_flattened() -> None:
    parts = [{"$ref": "#/components/schemas/Named"}, object_of("b", b={"type": "integer"})]
    named = object_of("name", name={"type": "string"})
    given = document(
        {"/a": {"post": operation(requestBody=body_of({"allOf": parts}))}},
        components={"schemas": {"Named": named}},
    )

    assert only_tool(given).parameters == object_of(
        "name", "b", name={"type": "string"}, b={"type": "integer"}
    )


def test_a_required_body_without_arguments_is_an_empty_object_and_an_optional_one_is_none() -> None:
    schema = object_of(a={})
    required = document({"/a": {"post": operation(requestBody=body_of(schema))}})
    optional = document({"/a": {"post": operation(requestBody=body_of(schema, required=False))}})

    assert sent(required, {}).body == b"{}"
    assert sent(optional, {}).body == b""


def test_properties_that_are_only_read_are_not_asked_for() -> None:
    schema = object_of("id", "name", id={"readOnly": True}, name={"type": "string"})

    tool = only_tool(document({"/a": {"post": operation(requestBody=body_of(schema))}}))

    assert tool.parameters == object_of("name", name={"type": "string"})


def test_a_form_is_written_as_its_encoding_says() -> None:
    form = {
        "schema": object_of(a={}, tags={"type": "array"}, deep={"type": "object"}, plain={}),
        "encoding": {"tags": {"style": "form", "explode": False}, "deep": {"style": "deepObject"}},
    }
    body = {"required": True, "content": {"application/x-www-form-urlencoded": form}}
    given = document({"/a": {"post": operation(requestBody=body)}})

    asked = sent(given, {"a": "x y", "tags": [1, 2], "deep": {"k": {"l": "m"}}, "plain": {"n": 1}})

    assert asked.headers["content-type"] == "application/x-www-form-urlencoded"
    assert asked.body == b"a=x%20y&tags=1,2&deep%5Bk%5D%5Bl%5D=m&plain%5Bn%5D=1"


def test_a_file_of_a_multipart_body_is_given_in_base64() -> None:
    schema = object_of(
        "file", file={"type": "string", "format": "binary"}, note={}, meta={"type": "object"}
    )
    given = document(
        {"/a": {"post": operation(requestBody=body_of(schema, "multipart/form-data"))}}
    )
    arguments = {"file": base64.b64encode(b"\0\1").decode(), "note": "hi", "meta": {"a": 1}}

    asked = sent(given, arguments)

    assert only_tool(given).parameters["properties"]["file"] == {
        "type": "string",
        "contentEncoding": "base64",
        "description": "The file's bytes, in base64.",
    }
    assert b'name="file"; filename="file"\r\ncontent-type: application/octet-stream' in asked.body
    assert b"\r\n\r\n\0\1\r\n" in asked.body
    assert b'name="note"\r\n\r\nhi\r\n' in asked.body
    assert b'name="meta"\r\ncontent-type: application/json\r\n\r\n{"a":1}\r\n' in asked.body
    assert asked.headers["content-type"].startswith("multipart/form-data; boundary=")


def test_bytes_and_texts_are_bodies_as_they_are() -> None:
    raw = {"type": "string", "format": "binary"}
    as_bytes = operation(requestBody=body_of(raw, "application/octet-stream"))
    as_text = operation(requestBody=body_of({"type": "string"}, "text/plain"))

    assert sent(document({"/a": {"post": as_bytes}}), {"body": "AAE="}).body == b"\0\1"
    assert sent(document({"/a": {"post": as_text}}), {"body": "two words"}).body == b"two words"


def test_json_is_sent_where_an_api_takes_several_kinds() -> None:
    kinds = {"text/plain": {}, "application/json": {"schema": object_of(a={})}}
    given = document({"/a": {"post": operation(requestBody={"content": kinds})}})

    assert sent(given, {"a": 1}).json == {"a": 1}


def test_a_body_of_any_kind_is_sent_as_json_where_it_is_no_text() -> None:
    as_object = operation(requestBody=body_of(object_of(a={}), "*/*"))
    as_text = operation(requestBody=body_of({"type": "string"}, "*/*"))

    asked = sent(document({"/a": {"post": as_object}}), {"a": 1})

    assert (asked.headers["content-type"], asked.json) == ("application/json", {"a": 1})
    assert sent(document({"/a": {"post": as_text}}), {"body": "x"}).body == b"x"


def test_the_body_of_a_get_is_passed_over() -> None:
    body = {"content": {"application/json": {"schema": {"type": "object"}}}}

    tool = only_tool(document({"/a": {"get": operation(requestBody=body)}}))

    assert tool.parameters["properties"] == {}


# ---- what cannot be sent


OUT = (
    "..",
    ".",
    "../admin",
    "a/../b",
    "a\\..",
    "%2e%2e",
    "%2f..",
    "a%252f..%252fb",
    "%" + "25" * 9,
)


def test_what_cannot_be_sent_is_said_before_anything_is() -> None:
    answers = Answers()
    header = {"name": "X-A", "in": "header", "schema": {}}
    given = document({"/a/{id}": {"get": operation(header)}})

    texts = [
        *(called(source_of(given, answers), id=v).text for v in OUT),
        called(source_of(given, answers), id="").text,
        called(source_of(given, answers), id="1", **{"X-A": "a\r\nHost: evil"}).text,
    ]

    out = (
        "api__go was not called: a value of its path has a step `.` or `..`, which leads elsewhere."
    )
    assert texts == [
        *([out] * len(OUT)),
        "api__go was not called: `id` is part of the path and must not be empty.",
        "api__go was not called: `X-A` goes into a header, which takes one line of plain ASCII.",
    ]
    assert answers.asked == []


def test_a_file_that_is_no_base64_is_not_sent() -> None:
    body = body_of({"type": "string", "format": "binary"}, "application/octet-stream")
    source = source_of(document({"/a": {"post": operation(requestBody=body)}}))

    assert called(source, body="no base64!").text == (
        "api__go was not called: `body` is a file and must be given in base64."
    )


# ---- servers


def test_an_address_of_the_document_is_used_with_its_variables() -> None:
    server = {
        "url": "https://{place}.example.org/{version}/",
        "variables": {
            "place": {"default": "eu", "enum": ["eu", "us"]},
            "version": {"default": "2"},
        },
    }
    given = document({"/a": {"get": operation()}}, servers=[server])
    source = source_of(given, base_url="", variables={"place": "us"})

    assert source.operations["api__go"].server == "https://us.example.org/2"


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:8000",
        "http://127.0.0.1/",
        "http://127.1/",
        "http://2130706433/",
        "http://169.254.169.254/latest",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://10.0.0.8/",
        "http://metadata.google.internal/",
        "http://intranet/",
        "/v1",
        "file:///etc/passwd",
        "https://user:pw@example.org/",
        "https://example.org/a/../b",
    ],
)
def test_a_private_or_odd_address_counts_only_where_a_person_names_it(url: str) -> None:
    given = document({"/a": {"get": operation()}}, servers=[{"url": url}])

    with pytest.raises(DocumentError) as caught:
        source_of(given, base_url="")

    assert "at `#/servers/0`: its server cannot be used" in caught.value.message
    assert source_of(given, base_url=BASE).tools()


def test_an_operation_that_names_another_host_is_left_out() -> None:
    elsewhere = operation(servers=[{"url": "https://evil.example"}])
    given = document(
        {"/a": {"get": {"operationId": "a"}}, "/b": {"get": elsewhere}},
        servers=[{"url": "https://api.example.org"}],
    )

    source = source_of(given, base_url="")

    assert [tool.bare_name for tool in source.tools()] == ["a"]
    assert source.notes == (
        "openapi api: `api`, at `#/paths/~1b/get/servers`: "
        "it names a server of its own, on another host",
    )


def test_a_variable_without_a_value_and_one_that_is_no_option_are_errors() -> None:
    server = {"url": "https://{x}.example.org", "variables": {"x": {"default": "a", "enum": ["a"]}}}
    given = document({"/a": {"get": operation()}}, servers=[server])

    with pytest.raises(ConfigError, match="has no such value"):
        source_of(given, base_url="", variables={"x": "evil.example/"})
