"""What the reader and its teacher are shown: requests, each with a tool that serves it and others.

The others are those that `reader_data.py` names, those that the table confuses with the request
(among all tools, and among some, as if there were fewer), and now and then any tool at all.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from reader_drawn import SHARE as DRAWN
from reader_drawn import Drawn, drawn
from reader_steps import DATA, say
from reader_table import Table, cut, read_of

GROUP = 8
"""So many tools are shown with a request."""

JUDGED = 12
"""So many tools the teacher judges for each request: the right one, if there is one, and others."""

GOLD, AGAINST = 6, 16
"""Of the tools that serve a request, and of those that are named as others, so many are kept."""

MINED = ((20, 1.0), (14, 0.03), (8, 0.003))
"""How many tools are taken that the table has first, and of which share of all tools."""

TWIN = 0.9
"""A tool that is nearer than this to one that serves a request is taken for one that may."""


class Examples:
    """Requests and tools, and which of them are shown together.

    Args:
        raw: What `reader_data.py` wrote.
        table: The package's.
    """

    def __init__(self, raw: dict[str, Any], table: Table) -> None:
        self.table = table
        device = self.device = table.device
        self.queries: list[str] = raw["queries"]
        self.texts: list[list[str]] = raw["tools"]
        requests, tools = cut(self.queries, self.texts)
        draw = np.random.default_rng(1)
        against = [draw.permutation(own).tolist() if own else [] for own in raw["against"]]
        self.gold = torch.from_numpy(_padded(raw["gold"], GOLD)).to(device)
        """The tools that serve each request; -1 where there are no more."""
        self._against = torch.from_numpy(_padded(against, AGAINST)).to(device)
        self.weight = torch.from_numpy(_weights(raw["group"], raw["share"])).float().to(device)
        """How often each request is drawn."""
        known = [group not in DRAWN for group in raw["group"]]
        self.is_known = torch.tensor(known, device=device)
        """Whether it is known what serves each request; of others the teacher says."""
        self._mined = self._mine(table.requests(requests), table.tools(tools))
        self.requests = requests.to(device)
        """The rows of each request."""
        self.tools = read_of(tools.to(device))

    def groups(self, requests: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return tools for requests: (requests, count), and whether the first one serves.

        Args:
            requests: Their numbers.
            count: How many tools each gets.
        """
        device, gold = self.device, self.gold[requests]
        pick = (torch.rand(len(requests), device=device) * (gold >= 0).sum(1)).long()
        first = gold.gather(1, pick.clamp(max=gold.shape[1] - 1)[:, None])[:, 0]
        others = self._others(requests, count)
        spare = torch.randint(len(self.texts), others.shape, device=device)
        others = torch.where(others < 0, spare, others)
        others[:, -1] = spare[:, -1]
        is_served = first >= 0
        tools = others.clone()
        tools[:, 0] = torch.where(is_served, first, others[:, 0])
        is_gold = (tools[:, 1:, None] == gold[:, None]).any(2)
        tools[:, 1:] = torch.where(is_gold, spare[:, 1:].flip(0), tools[:, 1:])
        return tools, is_served

    def batch(self, size: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return some requests, tools for each, and whether the first one serves."""
        requests = torch.multinomial(self.weight, size, replacement=True)
        return requests, *self.groups(requests, GROUP)

    def _others(self, requests: torch.Tensor, count: int) -> torch.Tensor:
        """Return tools near to requests, the nearer the more often; -1 where there are none."""
        near = torch.cat((self._against[requests], self._mined[requests]), 1)
        ranks = [torch.arange(kept) for kept in (AGAINST, *(kept for kept, _ in MINED))]
        chance = torch.rand(near.shape, device=self.device)
        chance[:, :AGAINST] *= 2.0
        chance = chance / (1 + 0.05 * torch.cat(ranks).to(self.device))
        return near.gather(1, chance.masked_fill(near < 0, -1).topk(count, dim=1).indices)

    def _mine(self, requests: torch.Tensor, tools: torch.Tensor) -> torch.Tensor:
        """Return the tools that the table has first for requests; -1 for those that may serve."""
        device, found = self.device, []
        generator = torch.Generator(device=device).manual_seed(3)
        for start in range(0, len(requests), 4096):
            gold = self.gold[start : start + 4096]
            scores = requests[start : start + 4096] @ tools.T
            parts = []
            for count, share in MINED:
                if share == 1:
                    parts.append(scores.topk(count, dim=1).indices)
                    continue
                some = torch.rand(len(tools), generator=generator, device=device) < share
                some[:count] = True
                numbers = some.nonzero()[:, 0]
                parts.append(numbers[scores[:, numbers].topk(count, dim=1).indices])
            near = torch.cat(parts, 1)
            like = torch.einsum("nkd,ngd->nkg", tools[near], tools[gold.clamp(min=0)])
            like = like.masked_fill((gold < 0)[:, None], -1).amax(2)
            is_gold = (near[:, :, None] == gold[:, None]).any(2)
            found.append(near.masked_fill(is_gold | (like > TWIN), -1))
        return torch.cat(found)


class Judgements(NamedTuple):
    """What the teacher says of some tools for each request: (requests, tools) each."""

    tools: torch.Tensor
    """Their numbers, the right one first, if there is one."""
    logits: torch.Tensor
    """The teacher's."""


def examples_of(is_tiny: bool, is_more: bool) -> Examples:
    """Return what `reader_data.py` wrote, for a GPU if there is one.

    Args:
        is_tiny: Only a few of the requests and tools.
        is_more: With requests that nobody wrote.
    """
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    raw = json.loads((DATA / "data.json").read_text(encoding="utf-8"))
    if is_tiny:
        raw = few(raw, requests=100, tools=1000)
    if is_more:
        more = list(drawn(raw, glosses()))
        add(raw, more[:: len(more) // 60] if is_tiny else more)
    groups = dict(Counter(raw["group"]))
    say(f"{len(raw['queries'])} requests {groups}, {len(raw['tools'])} tools, on {device}")
    examples = Examples(raw, Table(device))
    say("mined")
    return examples


def glosses() -> list[str]:
    """Return what words mean, as `prepare.py` took it from WordNet."""
    with gzip.open(DATA.parent / "glosses.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line)[1] for line in lines]


def add(raw: dict[str, Any], more: Sequence[Drawn]) -> None:
    """Add requests that nobody wrote to those that `reader_data.py` wrote."""
    raw["queries"] += [one.query for one in more]
    raw["group"] += [one.group for one in more]
    raw["gold"] += [[] for _ in more]
    raw["against"] += [list(one.named) for one in more]
    raw["share"] |= DRAWN


def few(raw: dict[str, Any], requests: int, tools: int) -> dict[str, Any]:
    """Return some of the requests, and of the tools those that they name and some others.

    Args:
        raw: What `reader_data.py` wrote.
        requests: How many requests.
        tools: How many other tools.
    """
    draw = np.random.default_rng(0)
    chosen = draw.choice(len(raw["queries"]), requests, replace=False).tolist()
    found = {key: [raw[key][i] for i in chosen] for key in ("queries", "group", "gold", "against")}
    named = {i for key in ("gold", "against") for own in found[key] for i in own}
    kept = sorted(named | set(draw.choice(len(raw["tools"]), tools, replace=False).tolist()))
    place = {number: i for i, number in enumerate(kept)}
    for key in ("gold", "against"):
        found[key] = [[place[i] for i in own] for own in found[key]]
    rest = {key: raw[key] for key in ("share", "kept_out")}
    return found | rest | {"tools": [raw["tools"][i] for i in kept]}


def _weights(groups: list[str], share: dict[str, float]) -> np.ndarray:
    """Return how often each request is drawn, so that each group has its share."""
    names, inverse, counts = np.unique(groups, return_inverse=True, return_counts=True)
    weight = np.array([share[name] for name in names.tolist()])[inverse] / counts[inverse]
    return weight / weight.sum()


def _padded(rows: list[list[int]], width: int) -> np.ndarray:
    """Return the beginnings of lists as one array, with -1 after the end of one."""
    found = np.full((len(rows), width), -1, np.int64)
    for i, row in enumerate(rows):
        found[i, : len(row)] = row[:width]
    return found
