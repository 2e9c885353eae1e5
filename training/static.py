"""The static table: one vector and two weights a piece, six fields a tool, a weighted sum, cosine.

doc = sum over fields f of gain[f] * S_f / W_f ** power[f], S_f = sum of weight * vector, W_f = sum of weights;
query = the same with the query's own weights and one field.
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from catalog import Tool
from text import Pieces, lead

FIELDS = (
    ("name", 12),
    ("server", 8),
    ("lead", 30),
    ("rest", 40),
    ("parameters", 20),
    ("details", 32),
)
QUERY = 96


def field_texts(tool: Tool) -> tuple[str, ...]:
    """Write a tool's six fields."""
    first, rest = lead(tool.description)
    return (
        tool.name,
        tool.server,
        first,
        rest,
        " . ".join(name for name, _ in tool.parameters),
        " . ".join(text for _, text in tool.parameters if text),
    )


def padded(pieces: Pieces, texts: list[str], length: int) -> np.ndarray:
    """Return rows + 1 of each text, zero where there is none."""
    found = np.zeros((len(texts), length), dtype=np.int32)
    for i, text in enumerate(texts):
        rows = pieces.rows(text, length)
        found[i, : len(rows)] = rows
        found[i, : len(rows)] += 1
    return found


def doc_rows(pieces: Pieces, tools: list[Tool]) -> list[np.ndarray]:
    """Return one padded array per field."""
    texts = list(zip(*(field_texts(t) for t in tools), strict=True))
    return [
        padded(pieces, list(column), length)
        for column, (_, length) in zip(texts, FIELDS, strict=True)
    ]


class Static(torch.nn.Module):
    """The trainable table. Row 0 is padding."""

    def __init__(self, vectors: torch.Tensor, log_weight: torch.Tensor) -> None:
        super().__init__()
        self.vectors = torch.nn.Parameter(F.pad(vectors, (0, 0, 1, 0)))
        self.doc_weight = torch.nn.Parameter(F.pad(log_weight, (1, 0)))
        self.query_weight = torch.nn.Parameter(F.pad(log_weight, (1, 0)))
        self.gain = torch.nn.Parameter(torch.tensor([1.0, 0.6, 1.0, 0.5, 0.4, 0.3]).log())
        self.power = torch.nn.Parameter(torch.full((len(FIELDS),), 0.0))
        self.scale = torch.nn.Parameter(torch.tensor(3.0))

    def pooled(
        self, ids: torch.Tensor, log_weight: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the weighted sum and the sum of weights."""
        ids = ids[:, : int((ids != 0).sum(1).max().clamp(min=1))].long()
        # Indexing would add the gradients of all the padding to one row, one after the other.
        weight = F.embedding(ids, log_weight.unsqueeze(1), padding_idx=0).squeeze(2).exp() * (
            ids != 0
        )
        summed = torch.bmm(
            weight.unsqueeze(1), F.embedding(ids, self.vectors, padding_idx=0)
        ).squeeze(1)
        return summed, weight.sum(1, keepdim=True)

    def query(self, ids: torch.Tensor) -> torch.Tensor:
        """Embed queries."""
        return F.normalize(self.pooled(ids, self.query_weight)[0], dim=1, eps=1e-6)

    def doc(self, fields: list[torch.Tensor], drop: float = 0.0) -> torch.Tensor:
        """Embed tools, in training now and then without a field."""
        total: Any = 0.0
        for f, ids in enumerate(fields):
            summed, weight = self.pooled(ids, self.doc_weight)
            part = self.gain[f].exp() * summed / (weight + 1e-3) ** torch.sigmoid(self.power[f])
            if drop and FIELDS[f][0] not in ("lead",):
                keep = torch.rand(len(ids), 1, device=ids.device) > (
                    drop * (0.4 if f == 0 else 1.0)
                )
                part = part * keep
            total = total + part
        return F.normalize(total, dim=1, eps=1e-6)


def initial(
    teacher_rows: torch.Tensor, frequency: np.ndarray, dim: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """PCA of the teacher's vectors of the pieces; weights fall with frequency, as in SIF."""
    centred = teacher_rows - teacher_rows.mean(0)
    _, _, basis = torch.linalg.svd(centred[:: max(1, len(centred) // 20000)], full_matrices=False)
    vectors = centred @ basis[:dim].T
    p = torch.from_numpy(frequency / frequency.sum()).float().to(vectors.device)
    return vectors, (1e-3 / (1e-3 + p)).log()


class Pace:
    """Counts steps up to a number or a time, and shapes the learning rate over whichever ends first."""

    def __init__(self, steps: int, seconds: float) -> None:
        self.steps, self.seconds, self.done, self.start = steps, seconds, -1, time.monotonic()

    def part(self) -> float:
        """Return how much of the training is over."""
        return max(self.done / self.steps, (time.monotonic() - self.start) / self.seconds)

    def step(self) -> int | None:
        """Return the next step's number, None at the end."""
        self.done += 1
        return self.done if self.part() < 1 else None

    def rate(self) -> float:
        """Return the share of the peak rate: up over the first 8 %, then a cosine down."""
        part = min(1.0, self.part())
        return part / 0.08 if part < 0.08 else 0.5 + 0.5 * math.cos(math.pi * (part - 0.08) / 0.92)


def train(
    model: Static,
    sampler: Any,
    q_ids: torch.Tensor,
    fields: list[torch.Tensor],
    teacher: tuple[torch.Tensor, torch.Tensor] | None,
    steps: int,
    batch: int,
    rate: float = 2e-3,
    distil: float = 1.0,
    negatives: int = 3,
    seconds: float = 60.0,
) -> None:
    """Contrast with mined negatives while following the teacher's ranking of the same candidates."""
    weights = [model.doc_weight, model.query_weight, model.gain, model.power, model.scale]
    optimiser = torch.optim.Adam(
        [{"params": [model.vectors], "lr": rate}, {"params": weights, "lr": rate * 3}],
        betas=(0.9, 0.98),
    )
    pace = Pace(steps, seconds)
    for step in iter(pace.step, None):
        for group, peak in zip(optimiser.param_groups, (rate, rate * 3), strict=True):
            group["lr"] = peak * pace.rate()
        queries, docs, blocked = sampler(batch, negatives)
        ids = q_ids[queries]
        ids = ids * (torch.rand(ids.shape, device=ids.device) > 0.1)
        ids = torch.gather(ids, 1, torch.argsort((ids == 0).int(), dim=1, stable=True))
        q = model.query(ids)
        d = model.doc([f[docs] for f in fields], 0.25)
        scores = (q @ d.T) * model.scale.exp()
        scores = scores.masked_fill(blocked, -1e4)
        target = torch.arange(len(q), device=q.device)
        loss = F.cross_entropy(scores, target) + 0.2 * F.cross_entropy(
            scores[:, : len(q)].T, target
        )
        if teacher is not None and distil:
            guide = (teacher[0][queries] @ teacher[1][docs].T) * 20.0
            guide = guide.masked_fill(blocked, -1e4).log_softmax(1)
            loss = loss + distil * F.kl_div(
                scores.log_softmax(1), guide, reduction="batchmean", log_target=True
            )
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        if step % 500 == 0:
            print(
                f"static step {step} loss {loss.item():.3f} scale {model.scale.exp().item():.1f}",
                flush=True,
            )


def saved(model: Static) -> dict[str, np.ndarray]:
    """Return the table as int8 with a scale a row, and the weights."""
    vectors = model.vectors.detach()[1:].float()
    scale = vectors.abs().amax(1, keepdim=True).clamp(min=1e-8) / 127
    return {
        "vectors": (vectors / scale).round().to(torch.int8).cpu().numpy(),
        "scale": scale[:, 0].half().cpu().numpy(),
        "doc_weight": model.doc_weight.detach()[1:].exp().half().cpu().numpy(),
        "query_weight": model.query_weight.detach()[1:].exp().half().cpu().numpy(),
        "gain": model.gain.detach().exp().cpu().numpy(),
        "power": torch.sigmoid(model.power.detach()).cpu().numpy(),
    }
