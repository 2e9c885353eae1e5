"""MiniLM in the table's place, for comparison: onnxruntime and tokenizers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from catalog import Tool, schema_parameters
from dataset import DATA, passage
from tokenizers import Tokenizer

from toolfold.search._background import Background
from toolfold.search._each_word import WordVectors

QUERY, PASSAGE = 64, 112


class Encoder:
    """Embeds requests and tools with an int8 ONNX file; remembers what it has embedded."""

    def __init__(self, path: Path, threads: int = 1) -> None:
        """Open the model."""
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = onnxruntime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"]
        )
        self.tokenizer = Tokenizer.from_file(str(DATA / "minilm/tokenizer.json"))
        self.tokenizer.no_padding()
        self.seen: dict[str, np.ndarray] = {}

    @property
    def background(self) -> Background:
        """Return an empty one: models are compared without a floor."""
        return Background(np.zeros((0, len(self.query("tool"))), np.int8))

    def query(self, text: str) -> np.ndarray:
        """Embed a request."""
        return self._embed([text], QUERY)[0]

    def has_word(self, word: str) -> bool:
        """Take every word for known: it reads them in pieces."""
        return True

    def weight(self, word: str) -> float:
        """Take all words for equal."""
        return 1.0

    def words(self, text: str) -> WordVectors:
        """Say nothing of single words: it has no vectors of them."""
        none = np.zeros(0, np.float32)
        return WordVectors(np.zeros((0, len(self.query(text))), np.float32), none, none)

    def names(self, names: Sequence[str]) -> np.ndarray:
        """Embed the names of tools."""
        return self._embed([*names, "name"], QUERY)[: len(names)]

    def tools(self, tools: Sequence[Any]) -> np.ndarray:
        """Embed tools of the package."""
        return self._embed([passage(_plain(tool)) for tool in tools], PASSAGE)

    def _embed(self, texts: Sequence[str], length: int) -> np.ndarray:
        """Embed texts, cut at `length` pieces, in batches of like length."""
        new = [t for t in dict.fromkeys(texts) if t not in self.seen]
        self.tokenizer.enable_truncation(length)
        cut = [e.ids for e in self.tokenizer.encode_batch(new)]
        order = sorted(range(len(new)), key=lambda i: len(cut[i]))
        for start in range(0, len(order), 32):
            part = order[start : start + 32]
            ids = np.zeros((len(part), max(len(cut[i]) for i in part)), np.int64)
            for j, i in enumerate(part):
                ids[j, : len(cut[i])] = cut[i]
            mask = (ids != 0).astype(np.int64)
            out = self.session.run(None, {"input_ids": ids, "attention_mask": mask})[0]
            for j, i in enumerate(part):
                self.seen[new[i]] = out[j]
        return np.stack([self.seen[t] for t in texts])


def _plain(tool: Any) -> Tool:
    return Tool(tool.name, tool.description, schema_parameters(tool.parameters), tool.source or "")
