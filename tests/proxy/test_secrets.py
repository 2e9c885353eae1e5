"""What an upstream says of a key, and what is kept of conversations, is for nobody else."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from urllib.parse import quote

import pytest

from support.model_server import Fails, ModelServer, Raw, Says
from support.proxies import proxied
from support.proxy_requests import ON, PATHS, request
from toolfold.config.proxy_settings import Upstream
from toolfold.proxy.traffic import Traffic
from toolfold.store.entries import SqliteEntries

KEY = "zz-the-key-of-a-client-0123456789"


@pytest.mark.parametrize("dialect", PATHS)
@pytest.mark.parametrize("name", ["authorization", "x-api-key"])
def test_a_key_that_an_upstream_repeats_is_neither_logged_nor_kept(
    dialect: str, name: str, tmp_path: Path
) -> None:
    script = Fails(401, f"no such key: {KEY}"), Says(f"It is {KEY}."), Fails(401, f"not {KEY}")
    traffic = Traffic(tmp_path)
    headers = {name: f"Bearer {KEY}" if name == "authorization" else KEY}
    with (
        ModelServer(*script) as model,
        proxied(model.url, settings=ON, app={"traffic": traffic}) as proxy,
    ):
        replies = [proxy.ask(PATHS[dialect], request(dialect), headers) for _ in range(2)]
        replies.append(proxy.ask(PATHS[dialect], request(dialect, tools=[]), headers))
        proxy.seen.one(3)
        assert KEY not in str(proxy.seen.records)
    traffic.close()
    assert all(KEY.encode() in reply.body for reply in replies)
    kept = [path.read_text() for path in tmp_path.iterdir()]
    assert len(kept) == 3
    assert not any(KEY in text for text in kept)


def test_a_key_does_not_follow_an_upstream_to_another_host() -> None:
    with ModelServer(Says("Hi.")) as other:
        moved = {"location": f"{other.url}/v1/models", "content-type": "text/plain"}
        with (
            ModelServer(Raw([b"elsewhere"], 307, moved)) as model,
            proxied(model.url) as proxy,
        ):
            reply = proxy.ask("/v1/models", headers={"authorization": f"Bearer {KEY}"})
    assert (reply.status, reply.body) == (307, b"elsewhere")
    assert reply.headers["location"] == moved["location"]
    assert (len(model.requests), other.connections) == (1, 0)


def test_cookies_are_keys_to_an_upstream_that_is_not_meant() -> None:
    with (
        ModelServer(Says("Hi.")) as one,
        ModelServer(Says("Hi.")) as two,
        proxied(
            Upstream(name="one", url=one.url, models=("m",)), Upstream(name="two", url=two.url)
        ) as proxy,
    ):
        for model in ("m", "other"):
            body = request("openai-chat", model=model)
            assert proxy.ask(PATHS["openai-chat"], body, {"cookie": "session=1"}).status == 200
    assert "cookie" not in one.requests[0].headers
    assert two.requests[0].headers["cookie"] == "session=1"


@pytest.mark.parametrize("name", ["key", "api_key", "api-key", "%6bey", "access_token"])
def test_a_key_in_the_query_is_one(name: str, tmp_path: Path) -> None:
    traffic = Traffic(tmp_path)
    key = KEY.replace("zz-", "zz+/")
    path = f"{PATHS['openai-chat']}?a=1&{name}={quote(key, safe='')}"
    script = Fails(404, f"no model at {path} for {key}"), Says(f"It is {key}.")
    with (
        ModelServer(*script) as model,
        ModelServer(Says("Hi.")) as other,
        proxied(
            model.url,
            Upstream(name="other", url=other.url, models=("m",)),
            app={"traffic": traffic},
        ) as proxy,
    ):
        for asked in ("mine", "mine", "m"):
            proxy.ask(path, request("openai-chat", model=asked))
        proxy.seen.one(3)
        assert KEY[3:] not in str(proxy.seen.records)
    traffic.close()
    assert [one.path for one in model.requests] == [path, path]
    assert [one.path for one in other.requests] == [f"{PATHS['openai-chat']}?a=1"]
    assert not any(KEY[3:] in one.read_text() for one in tmp_path.iterdir())


@pytest.mark.skipif(os.name == "nt", reason="no such permissions there")
def test_nobody_else_reads_a_file_of_conversations(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        store = SqliteEntries(tmp_path / "state" / "proxy.sqlite")
        store.put("key", b"value")
        modes = [stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "state").iterdir()]
        store.close()
    finally:
        os.umask(before)
    assert len(modes) == 3
    assert all(mode & 0o077 == 0 for mode in modes)
