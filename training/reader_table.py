"""What the reader starts from: the package's table, which stays as it is, and texts cut into rows.

Requests and tools are cut by the package's own module (`text.py`), as far as the package reads
them. A row is counted from 1 here; 0 is a place without a piece.
"""

from __future__ import annotations

from functools import cache
from multiprocessing import Pool
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from text import Pieces

WEIGHTS = Path(__file__).resolve().parents[1] / "src" / "toolfold" / "search" / "weights"

FIELD_LIMITS = (12, 6, 24, 12, 12)
"""So many pieces are read of a tool's name, source, lead, rest and parameters."""

NAME, SOURCE, LEAD, REST, PARAMETERS = range(len(FIELD_LIMITS))

TOOL_LIMIT = 44
"""So many pieces of a tool are read, of all its fields."""

REQUEST_LIMIT = 32


class Tools(NamedTuple):
    """The pieces of tools that are read: (tools, pieces) each."""

    rows: torch.Tensor
    fields: torch.Tensor
    """The field that a piece stands in."""
    places: torch.Tensor
    """Its place there."""

    def of(self, numbers: torch.Tensor) -> Tools:
        """Return some of the tools."""
        return Tools(*(column[numbers] for column in self))


class Table:
    """The vectors and weights of the package's pieces, none of which is trained.

    Args:
        device: Where they are kept.
        folder: Holds `table.npz`.
    """

    def __init__(self, device: str, folder: Path = WEIGHTS) -> None:
        with np.load(folder / "table.npz", allow_pickle=False) as arrays:
            scale = arrays["scale"].astype(np.float32)
            vectors = arrays["vectors"].astype(np.float32) * scale[:, None]
            query_weight = arrays["query_weight"].astype(np.float32)
            doc_weight = arrays["doc_weight"].astype(np.float32)
            self._gain, self._power = arrays["gain"].tolist(), arrays["power"].tolist()
            self.version = str(arrays["version"])
        self.device = device
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        sizes = (lengths[:, 0], query_weight, doc_weight)
        extras = np.stack([np.log(size + 1e-4) for size in sizes], axis=1)
        extras = (extras - extras.mean(0)) / extras.std(0)
        self.units = self._kept(vectors / np.maximum(lengths, 1e-6))
        """The unit vectors."""
        self.extras = self._kept(extras.astype(np.float32))
        """How long the vectors are and what the pieces weigh, in logarithms: three a piece."""
        self._vectors = self._kept(vectors)
        self._query_weight, self._doc_weight = self._kept(query_weight), self._kept(doc_weight)

    def _kept(self, rows: np.ndarray) -> torch.Tensor:
        """Return rows after one of zeros, which is that of places without a piece."""
        return torch.from_numpy(np.concatenate((np.zeros_like(rows[:1]), rows))).to(self.device)

    def requests(self, rows: torch.Tensor) -> torch.Tensor:
        """Return the unit vectors of requests, given their rows."""
        found = []
        for part in rows.split(8192):
            own = part.to(self.device).long()
            summed = (self._vectors[own] * self._query_weight[own][..., None]).sum(1)
            found.append(F.normalize(summed, dim=1, eps=1e-6))
        return torch.cat(found)

    def tools(self, rows: torch.Tensor) -> torch.Tensor:
        """Return the unit vectors of tools, given the rows of their fields side by side."""
        found = []
        for part in rows.split(4096):
            total: Any = 0
            fields = part.to(self.device).long().split(FIELD_LIMITS, dim=1)
            for own, gain, power in zip(fields, self._gain, self._power, strict=False):
                weight = self._doc_weight[own] * (own > 0)
                mass = weight.sum(1, keepdim=True) + 1e-3
                summed = (self._vectors[own] * weight[..., None]).sum(1)
                total = total + gain / mass**power * summed
            found.append(F.normalize(total, dim=1, eps=1e-6))
        return torch.cat(found)


def cut(queries: list[str], tools: list[list[str]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the rows of requests, and those of the fields of tools side by side.

    Args:
        queries: The requests.
        tools: Name, source, lead, rest and parameters of each tool.
    """
    with Pool() as pool:
        requests = np.stack(pool.map(_request_rows, queries, chunksize=500))
        fields = np.stack(pool.map(_tool_rows, tools, chunksize=500))
    return torch.from_numpy(requests), torch.from_numpy(fields)


def read_of(rows: torch.Tensor) -> Tools:
    """Return the first pieces of tools, given the rows of their fields side by side."""
    fields = [number for number, limit in enumerate(FIELD_LIMITS) for _ in range(limit)]
    places = [place for limit in FIELD_LIMITS for place in range(limit)]
    order = torch.argsort((rows == 0).to(torch.int8), dim=1, stable=True)[:, :TOOL_LIMIT]
    return Tools(
        rows.gather(1, order),
        torch.tensor(fields, device=rows.device)[order].to(torch.uint8),
        torch.tensor(places, device=rows.device)[order].to(torch.uint8),
    )


@cache
def _pieces() -> Pieces:
    return Pieces((WEIGHTS / "vocabulary.txt").read_text(encoding="utf-8").split("\n"))


def _padded(text: str, limit: int) -> np.ndarray:
    rows = _pieces().rows(text, limit) if text else []
    found = np.zeros(limit, np.int32)
    found[: len(rows)] = np.array(rows, np.int32) + 1
    return found


def _request_rows(query: str) -> np.ndarray:
    return _padded(query, REQUEST_LIMIT)


def _tool_rows(texts: list[str]) -> np.ndarray:
    own = zip(texts, FIELD_LIMITS, strict=True)
    return np.concatenate([_padded(text, limit) for text, limit in own])
