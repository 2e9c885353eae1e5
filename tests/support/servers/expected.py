"""What the server's tool `rich` returns, to the letter."""

from __future__ import annotations

import base64
from typing import Any

RICH: dict[str, Any] = {
    "content": [
        {
            "type": "text",
            "text": "hi",
            "annotations": {"audience": ["user"], "priority": 1.0},
            "_meta": {"a/b": 1},
            "unknown": 7,
        },
        {"type": "image", "data": base64.b64encode(b"PNG").decode(), "mimeType": "image/png"},
        {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
        {
            "type": "resource_link",
            "uri": "odd:///linked",
            "name": "r",
            "icons": [{"src": "data:x"}],
        },
        {"type": "resource", "resource": {"uri": "x:///y", "text": "t", "_meta": {"q": None}}},
    ],
    "structuredContent": {"n": "no integer", "nothing": None, "big": 12345678901234567890},
    "isError": False,
    "_meta": {"trace": "1", "nothing": None},
    "unknownTop": {"a": 1},
}
