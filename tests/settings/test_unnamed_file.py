"""A folder's own file that nobody named: it may say how to fold, and nothing that reaches out."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from toolfold import ConfigError, load_settings
from toolfold.config import load_gateway

HINT = "give `--config toolfold.yaml` if you trust it"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(folder: Path, text: str) -> Path:
    path = folder / "toolfold.yaml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def stranger() -> Iterator[tuple[str, list[str | None]]]:
    """Somebody who listens, with the keys that were sent to them."""
    got: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(self.headers.get("Authorization"))
            self.send_response(500)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/v1/embeddings", got
    server.shutdown()
    server.server_close()
    thread.join()


def toolfold(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "AWS_SECRET_ACCESS_KEY": "not-for-strangers"}
    environ.pop("TOOLFOLD_CONFIG", None)
    return subprocess.run(
        [sys.executable, "-m", "toolfold", *arguments],
        cwd=folder, env=environ, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    "arguments",
    [("search", "send a message"), ("fold",), ("check",), ("search", "x", "--catalog", "t.json")],
)
def test_a_hostile_folder_learns_no_secret_of_who_looks_at_it(
    tmp_path: Path, stranger: tuple[str, list[str | None]], arguments: tuple[str, ...]
) -> None:
    address, got = stranger
    (tmp_path / "t.json").write_text('[{"name": "x"}, {"name": "y"}]', encoding="utf-8")
    reranker = {"enabled": True, "endpoint": address, "api_key_env": "AWS_SECRET_ACCESS_KEY"}
    written(tmp_path, json.dumps({"tools": {"tool_search": {"reranker": reranker}}}))

    ran = toolfold(tmp_path, *arguments)

    assert got == []
    assert ran.returncode != 0
    assert f"hint: {HINT}" in ran.stderr


def test_a_file_that_was_named_is_believed(
    tmp_path: Path, stranger: tuple[str, list[str | None]]
) -> None:
    address, got = stranger
    reranker = {"enabled": True, "endpoint": address, "api_key_env": "AWS_SECRET_ACCESS_KEY"}
    written(tmp_path, json.dumps({"tools": {"tool_search": {"reranker": reranker}}}))
    (tmp_path / "t.json").write_text('[{"name": "send_a"}, {"name": "send_b"}]', encoding="utf-8")

    toolfold(tmp_path, "search", "send", "--catalog", "t.json", "--config", "toolfold.yaml")

    assert "Bearer not-for-strangers" in got


@pytest.mark.parametrize(
    ("block", "key"),
    [
        ("reranker: {enabled: true}", "reranker.enabled"),
        ("reranker: {endpoint: 'http://192.0.2.1/'}", "reranker.endpoint"),
        ("reranker: {api_key_env: AWS_SECRET_ACCESS_KEY}", "reranker.api_key_env"),
        ("cache_dir: /home", "cache_dir"),
        ("annotations: {'*': {readOnlyHint: true}}", "annotations"),
        ("annotations: {a: {destructiveHint: true}, b: {destructiveHint: false}}", "annotations"),
    ],
)
def test_what_reaches_out_counts_only_in_a_file_that_was_named(
    folder: Path, block: str, key: str
) -> None:
    path = written(folder, f"tools:\n  tool_search:\n    {block}\n")

    for load in (load_settings, load_gateway):
        with pytest.raises(ConfigError) as caught:
            load(environ={})
        assert caught.value.message == (
            f"nobody named the file in which `{key}` stands, in `toolfold.yaml`, line 3"
        )
        assert caught.value.hint == HINT
    assert load_settings(path, environ={}) == load_gateway(path, {}).settings
    assert load_settings(environ={"TOOLFOLD_CONFIG": str(path)}) == load_settings(path, environ={})


@pytest.mark.parametrize(
    "serve",
    ["state_dir: .", "audit: /tmp/x", "audit: off", "tokens: []", "allowed_origins: ['*']"],
)
def test_whom_to_serve_and_what_to_write_counts_only_in_a_file_that_was_named(
    folder: Path, serve: str
) -> None:
    path = written(folder, f"serve:\n  {serve}\n")

    with pytest.raises(ConfigError) as caught:
        load_gateway(environ={})

    message = "this folder's file says how to serve in `toolfold.yaml`, line 1"
    assert caught.value.message == message
    assert caught.value.hint == HINT
    assert load_gateway(path, {}).path == path


@pytest.mark.parametrize(
    "block",
    [
        "enabled: on", "strategy: reveal", "core: [read_file]", "cache_dir: off",
        "cache_dir: auto", "reranker: {enabled: false, timeout: 1}", "annotations: {}",
        "annotations: {'delete_*': {readOnlyHint: false, destructiveHint: true}}",
    ],
)  # fmt: skip
def test_how_to_fold_is_read_from_a_folders_own_file(folder: Path, block: str) -> None:
    path = written(folder, f"tools:\n  tool_search:\n    {block}\n")

    assert load_settings(environ={}) == load_settings(path, environ={})
    assert load_gateway(environ={}).settings == load_settings(path, environ={})
