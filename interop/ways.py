"""The ways in: every client, in both eras of the protocol, over both transports."""

from __future__ import annotations

import pytest
from clients import Way

__all__ = ["EVERY_WAY", "HTTP_WAYS", "PYTHON_WAYS", "every_way", "python_way"]

EVERY_WAY = tuple(
    Way(client, era, over)
    for client in ("official", "fastmcp", "inspector")
    for era in ("old", "new")
    for over in ("stdio", "http")
)
PYTHON_WAYS = tuple(way for way in EVERY_WAY if way.client != "inspector")
"""Those that can be asked something in the middle of a call."""

HTTP_WAYS = tuple(way for way in EVERY_WAY if way.over == "http")

every_way = pytest.mark.parametrize("way", EVERY_WAY, ids=str)
python_way = pytest.mark.parametrize("way", PYTHON_WAYS, ids=str)
