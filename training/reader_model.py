"""The reader in torch: what `toolfold/search/_reader.py` is in numpy, with its names of weights.

A tool is read by itself, a request by itself, and then the request's pieces look at the tool's
and at each other. States are (texts, pieces, size); a mask says which places have a piece.
"""

from __future__ import annotations

import json
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from reader_table import (
    FIELD_LIMITS,
    LEAD,
    NAME,
    PARAMETERS,
    REQUEST_LIMIT,
    REST,
    SOURCE,
    Table,
    Tools,
)
from torch import nn

SPEC = {"d": 96, "heads": 3, "query": 1, "tool": 3, "cross": 1, "wide": 192}
"""The reader in use; what the numbers are is said of `ReaderModel`."""

NAME_LIMIT = 8
"""Among so many first pieces of a tool are those of its name that are read with the request."""

VECTOR_SCALE = 4.0
SAME = 0.97
"""From this cosine on two pieces count as the same."""

FAR = -0.2
"""What counts as the cosine where there is no piece."""

OUTSIDE = -1e4
"""What hides a place without a piece."""


class Norm(nn.Module):
    """Brings states to a mean square of 1.

    Args:
        size: The size of a state.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(size))

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Return the states, each times the gain."""
        return F.rms_norm(states, (states.shape[-1],), self.gain.to(states.dtype), 1e-6)


class Attention(nn.Module):
    """Lets pieces look at pieces.

    Args:
        size: The size of a state.
        heads: In how many ways they look.
    """

    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(size, size, bias=False) for _ in range(4))

    def forward(
        self, states: torch.Tensor, others: torch.Tensor, bias: torch.Tensor
    ) -> torch.Tensor:
        """Return what each piece finds.

        Args:
            states: Those of the pieces that look.
            others: Those of the pieces that are looked at.
            bias: What is added to each score: (texts, heads, pieces, other pieces), or 1 in the
                place of heads and pieces.
        """
        texts, pieces, size = states.shape
        query, key, value = (
            made(own).view(texts, -1, self.heads, size // self.heads).transpose(1, 2)
            for made, own in ((self.q, states), (self.k, others), (self.v, others))
        )
        bias = bias.to(query.dtype).expand(texts, self.heads, pieces, key.shape[2])
        found = F.scaled_dot_product_attention(query, key, value, attn_mask=bias)
        return self.o(found.transpose(1, 2).reshape(texts, pieces, size))


class Forward(nn.Module):
    """Makes something new of each state.

    Args:
        size: The size of a state.
        wide: The size of what is between.
    """

    def __init__(self, size: int, wide: int) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(size, wide), nn.Linear(wide, size)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Return what is added to the states."""
        return self.b(F.relu(self.a(states)))


class Block(nn.Module):
    """A layer in which pieces look at each other.

    Args:
        size: The size of a state.
        heads: In how many ways they look.
        wide: The size of what is between.
    """

    def __init__(self, size: int, heads: int, wide: int) -> None:
        super().__init__()
        self.n1, self.n2 = Norm(size), Norm(size)
        self.attention, self.forward_ = Attention(size, heads), Forward(size, wide)

    def forward(self, states: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        """Return the states after the layer."""
        own = self.n1(states)
        states = states + self.attention(own, own, bias)
        return states + self.forward_(self.n2(states))


class Evidence(NamedTuple):
    """What the vectors of the table say of requests beside tools."""

    near: torch.Tensor
    """How near each piece of a request is to each of a tool."""
    said: torch.Tensor
    """Six numbers a piece of a request: the largest cosine in the name, the source, the description
    and the parameters; whether the name has the piece itself, and whether any field has."""
    met: torch.Tensor
    """Two numbers a piece of a tool: the largest cosine, and whether the request has the piece."""


class ReaderModel(nn.Module):
    """Judges whether tools serve requests.

    Args:
        table: The pieces, which are not trained.
        d: The size of a state.
        heads: In how many ways pieces look at each other.
        query: How many layers read a request by itself.
        tool: How many read a tool by itself.
        cross: How many read both.
        wide: The size of what is between in each layer.
    """

    def __init__(
        self, table: Table, d: int, heads: int, query: int, tool: int, cross: int, wide: int
    ) -> None:
        super().__init__()
        layers = {"query": query, "tool": tool, "cross": cross}
        self.spec = {"d": d, "heads": heads, **layers, "wide": wide}
        self._table = table
        self.project = nn.Linear(table.units.shape[1] + table.extras.shape[1], d)
        self.field = nn.Parameter(torch.randn(len(FIELD_LIMITS) + 2, d) * 0.1)
        self.place = nn.Parameter(torch.randn(REQUEST_LIMIT, d) * 0.05)
        self.said = nn.Linear(6, d)
        self.met = nn.Linear(2, d)
        self.end = Norm(d)
        self.pool = nn.Linear(d, 1, bias=False)  # only differences of its scores count
        self.head = nn.Sequential(nn.Linear(2 * d, 64), nn.ReLU(), nn.Linear(64, 1))
        self.query = nn.ModuleList(Block(d, heads, wide) for _ in range(query))
        self.tool = nn.ModuleList(Block(d, heads, wide) for _ in range(tool))
        self.tool_end = Norm(d)
        self.cross_norm = nn.ModuleList(Norm(d) for _ in range(cross))
        self.cross = nn.ModuleList(Attention(d, heads) for _ in range(cross))
        self.nearness = nn.Parameter(torch.linspace(0, 6, heads).repeat(cross, 1))
        self.both = nn.ModuleList(Block(d, heads, wide) for _ in range(cross))

    def forward(self, requests: torch.Tensor, tools: Tools) -> torch.Tensor:
        """Return the logit of each tool that it serves its request: (requests, tools of each).

        Args:
            requests: Their rows: (requests, pieces).
            tools: Some for each request: (requests, tools of each, pieces).
        """
        count, each = tools.rows.shape[:2]
        own = Tools(*(column.reshape(count * each, -1) for column in tools))
        units = F.embedding(requests, self._table.units)
        tool_units = F.embedding(own.rows, self._table.units)
        asked = self._asked(requests, units)
        ends = self._read(own, tool_units)
        mask, asked, units = (
            rows.repeat_interleave(each, 0) for rows in (requests > 0, asked, units)
        )
        evidence = _evidence(units, tool_units, mask, own)
        return self._judged(asked, mask, ends, own, evidence).view(count, each)

    def _embedded(self, units: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        extras = F.embedding(rows, self._table.extras)
        return self.project(torch.cat((units * VECTOR_SCALE, extras), -1))

    def _asked(self, rows: torch.Tensor, units: torch.Tensor) -> torch.Tensor:
        """Return the states of requests, each read by itself."""
        states = self._embedded(units, rows) + self.field[-1] + self.place[: rows.shape[1]]
        for block in self.query:
            states = block(states, _veil(rows > 0))
        return states

    def _read(self, tools: Tools, units: torch.Tensor) -> torch.Tensor:
        """Return the states of tools, each read by itself."""
        states = self._embedded(units, tools.rows)
        states = states + F.embedding(tools.fields, self.field)
        states = states + F.embedding(tools.places, self.place)
        for block in self.tool:
            states = block(states, _veil(tools.rows > 0))
        return self.tool_end(states)

    def _judged(
        self,
        asked: torch.Tensor,
        mask: torch.Tensor,
        ends: torch.Tensor,
        tools: Tools,
        evidence: Evidence,
    ) -> torch.Tensor:
        """Return one logit for each request and the tool beside it."""
        asked = asked + self.said(evidence.said.to(asked.dtype))
        is_piece = tools.rows > 0
        is_name = is_piece[:, :NAME_LIMIT] & (tools.fields[:, :NAME_LIMIT] == NAME)
        name = ends[:, :NAME_LIMIT] + self.met(evidence.met[:, :NAME_LIMIT].to(asked.dtype))
        length, is_seen = asked.shape[1], torch.cat((mask, is_name), 1)
        states = torch.cat((asked, name + self.field[-2]), 1)
        for norm, cross, block, weight in zip(
            self.cross_norm, self.cross, self.both, self.nearness, strict=True
        ):
            own = states[:, :length]
            bias = _veil(is_piece) + weight[:, None, None] * evidence.near[:, None]
            own = own + cross(norm(own), ends, bias)
            states = block(torch.cat((own, states[:, length:]), 1), _veil(is_seen))
        return self._summed_up(states, is_seen)

    def _summed_up(self, states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        states, outside = self.end(states), ~mask[..., None]
        scores = self.pool(states).float().masked_fill(outside, OUTSIDE)
        mean = (scores.softmax(1).to(states.dtype) * states).sum(1)
        largest = states.masked_fill(outside, OUTSIDE).amax(1)
        return self.head(torch.cat((mean, largest), 1))[:, 0].float()


def saved(reader: ReaderModel, version: str) -> dict[str, np.ndarray]:
    """Return the weights as the package reads them.

    Args:
        reader: The reader.
        version: The table's.
    """
    arrays = {name: own.detach().half().cpu().numpy() for name, own in reader.state_dict().items()}
    return arrays | {"spec": np.array(json.dumps(reader.spec)), "version": np.array(version)}


def _veil(mask: torch.Tensor) -> torch.Tensor:
    """Return what is added to scores, so that places without a piece are not looked at."""
    return (~mask)[:, None, None].float() * OUTSIDE


def _evidence(
    units: torch.Tensor, tool_units: torch.Tensor, mask: torch.Tensor, tools: Tools
) -> Evidence:
    """Return what the unit vectors of requests and of the tools beside them say."""
    near = (units @ tool_units.transpose(1, 2)).float()
    low = near.masked_fill((tools.rows == 0)[:, None], FAR)
    fields = tools.fields
    groups = (
        fields == NAME,
        fields == SOURCE,
        (fields == LEAD) | (fields == REST),
        fields == PARAMETERS,
    )
    best = torch.stack([low.masked_fill(~own[:, None], FAR).amax(2) for own in groups], -1)
    is_named = (best[..., :1] > SAME).float()
    is_said = (best.amax(-1, keepdim=True) > SAME).float()
    back = near.masked_fill(~mask[..., None], FAR).amax(1)
    met = torch.stack((back, (back > SAME).float()), -1)
    return Evidence(low, torch.cat((best, is_named, is_said), -1), met)
