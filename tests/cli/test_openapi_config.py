"""Commands over a configuration with `openapi`: its operations are listed, found and called."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from support.apis import document, operation
from toolfold.cli import main

KEY = "key-0123456789"
PET = {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}
DOCUMENT = document(
    {
        "/pets": {"get": operation(operationId="list_pets", summary="List all pets")},
        "/pets/{id}": {"get": operation(PET, operationId="show_pet", summary="Show a pet")},
    },
    components={"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    security=[{"token": []}],
)


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("PET_TOKEN", KEY)
    monkeypatch.delenv("TOOLFOLD_CONFIG", raising=False)


@contextmanager
def pet_shop() -> Iterator[tuple[str, list[tuple[str, str | None]]]]:
    """An API on this machine, which also serves its document."""
    asked: list[tuple[str, str | None]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, self.headers.get("authorization")))
            answer = DOCUMENT if self.path == "/openapi.json" else {"path": self.path}
            content = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()


def configure(**entry: Any) -> None:
    Path("pets.json").write_text(json.dumps(DOCUMENT), "utf-8")
    entry.setdefault("auth", {"token": "${PET_TOKEN}"})
    whole = {"openapi": {"pets": entry}, "serve": {"audit": "off", "state_dir": "state"}}
    Path("c.yaml").write_text(json.dumps(whole), "utf-8")


def run(*arguments: str) -> Any:
    return CliRunner().invoke(main, [*arguments, "--config", "c.yaml"])


def test_operations_are_listed_found_described_and_called() -> None:
    with pet_shop() as (address, asked):
        configure(file="pets.json", base_url=address)

        assert "pets__show_pet" in run("list").stdout
        assert "pets__show_pet" in run("search", "show me one pet").stdout
        assert "integer" in run("describe", "pets__show_pet").stdout
        answered = run("call", "pets__show_pet", "--arg", "id=7")

    assert json.loads(answered.stdout)["path"] == "/pets/7"
    assert asked == [("/pets/7", f"Bearer {KEY}")]


def test_a_document_at_an_address_is_fetched_and_its_host_is_called() -> None:
    with pet_shop() as (address, asked):
        configure(url=f"{address}/openapi.json")

        answered = run("call", "pets__list_pets")

    assert json.loads(answered.stdout)["path"] == "/pets"
    assert asked == [("/openapi.json", None), ("/pets", f"Bearer {KEY}")]


def test_arguments_that_do_not_fit_are_not_sent() -> None:
    with pet_shop() as (address, asked):
        configure(file="pets.json", base_url=address)

        refused = run("call", "pets__show_pet", "--arg", "id=seven")

    assert refused.exit_code == 1 and "pets__show_pet was not called" in refused.stderr
    assert asked == []


def test_check_tells_of_a_document_that_cannot_be_used_and_of_its_faults() -> None:
    configure(file="pets.json", base_url="http://localhost:1")
    Path("pets.json").write_text('{"swagger": "2.0"}', "utf-8")

    broken = run("check")
    paths = {"/a": {"get": {"parameters": 7}}, "/b": {"get": {}}}
    Path("pets.json").write_text(json.dumps({**DOCUMENT, "paths": paths}), "utf-8")
    faulty = run("check")

    assert broken.exit_code == 1 and "it is Swagger 2.0" in broken.stdout + broken.stderr
    assert "`parameters` is no list" in faulty.stdout


def test_an_api_that_failed_is_called_an_api_and_the_others_are_listed() -> None:
    configure(file="pets.json", base_url="http://localhost:1")
    whole = json.loads(Path("c.yaml").read_text("utf-8"))
    whole["openapi"]["gone"] = "./none.yaml"
    Path("c.yaml").write_text(json.dumps(whole), "utf-8")

    listed, checked = run("list"), run("check", "--no-retrieval")
    del whole["openapi"]["pets"]
    Path("c.yaml").write_text(json.dumps(whole), "utf-8")
    alone = run("list")

    assert "pets__show_pet" in listed.stdout
    assert "warning: API 'gone' failed: cannot read `" in listed.stderr
    assert "error: API failed: gone: cannot read `" in checked.stdout + checked.stderr
    assert alone.exit_code == 1 and "error: API 'gone' failed: cannot read `" in alone.stderr


def test_no_command_shows_a_credential() -> None:
    with pet_shop() as (address, _):
        configure(file="pets.json", base_url=address, auth={"tokn": "${PET_TOKEN}"})

        said = [run(*each) for each in (("list",), ("check",), ("call", "pets__list_pets"))]

    assert all(KEY not in each.stdout + each.stderr for each in said)
    assert "`openapi.pets.auth.tokn` is no security scheme" in said[0].stderr
