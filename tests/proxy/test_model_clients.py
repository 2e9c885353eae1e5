"""Our model clients' tests once more, with the proxy before the model server.

What these tests hold of a client, of its requests and of its replies, holds to the byte when
every request passes the proxy. Those that look at the connection itself are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from runtime.clients.test_clients import *  # noqa: F403
from runtime.clients.test_clients_judged import *  # noqa: F403
from runtime.clients.test_clients_requests import *  # noqa: F403
from runtime.clients.test_responses import *  # noqa: F403
from support.model_server import ModelServer
from support.proxies import RunningProxy, proxied

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def before_every_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have a proxy stand before every model server whose address a test asks for."""
    bare = ModelServer.url.fget
    assert bare is not None
    with ExitStack() as stack:
        standing: dict[ModelServer, RunningProxy] = {}

        def url(self: ModelServer) -> str:
            if self not in standing:
                standing[self] = stack.enter_context(proxied(bare(self)))
            return standing[self].url

        monkeypatch.setattr(ModelServer, "url", property(url))
        yield
