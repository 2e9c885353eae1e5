"""What the example server hands out: texts, the smallest picture, the smallest sound."""

from __future__ import annotations

import base64
import struct
import zlib

from mcp_types import (
    AudioContent,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    TextContent,
    TextResourceContents,
)

__all__ = ["PICTURE", "SOUND", "audio", "embedded", "failed", "image", "said", "text"]


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _picture() -> bytes:
    """Return a PNG of one red pixel."""
    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"\x00\xff\x00\x00")
    parts = (_chunk(b"IHDR", header), _chunk(b"IDAT", pixels), _chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def _sound() -> bytes:
    """Return a WAV of one silent sample."""
    form = struct.pack("<HHIIHH", 1, 1, 8000, 8000, 1, 8)
    body = b"WAVEfmt " + struct.pack("<I", len(form)) + form + b"data" + struct.pack("<I", 2)
    body += b"\x80\x80"
    return b"RIFF" + struct.pack("<I", len(body)) + body


PICTURE = base64.b64encode(_picture()).decode()
SOUND = base64.b64encode(_sound()).decode()


def text(words: str) -> TextContent:
    return TextContent(type="text", text=words)


def image() -> ImageContent:
    return ImageContent(type="image", data=PICTURE, mime_type="image/png")


def audio() -> AudioContent:
    return AudioContent(type="audio", data=SOUND, mime_type="audio/wav")


def embedded(uri: str, mime_type: str, words: str) -> EmbeddedResource:
    contents = TextResourceContents(uri=uri, mime_type=mime_type, text=words)
    return EmbeddedResource(type="resource", resource=contents)


def said(words: str) -> CallToolResult:
    return CallToolResult(content=[text(words)])


def failed(words: str) -> CallToolResult:
    return CallToolResult(content=[text(words)], is_error=True)
