"""Hard negatives: what the words and a model confuse with a query's own tool, and the sampler that deals them."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import torch
from dataset import Dataset
from text import words

KEPT = 32
TWIN = 0.93
"""Documents more alike than this are one tool told twice, never a negative of each other."""


def lexical_top(data: Dataset, tools: int, asked: list[int], k: int, device: str) -> torch.Tensor:
    """Return the BM25 best `k` tools of each asked query."""
    frequency: Counter[str] = Counter()
    bags = []
    for tool in data.docs[:tools]:
        bag = Counter(words(tool.name) * 2 + words(tool.description)[:80])
        bags.append(bag)
        frequency.update(bag.keys())
    row = {w: i for i, w in enumerate(w for w, n in frequency.items() if 2 <= n < 0.2 * tools)}
    mean = np.mean([sum(b.values()) for b in bags])
    places, values = [], []
    for i, bag in enumerate(bags):
        length = 0.4 + 0.8 * sum(bag.values()) / mean
        for w, n in bag.items():
            if w in row:
                idf = np.log(1 + (tools - frequency[w] + 0.5) / (frequency[w] + 0.5))
                places.append((i, row[w]))
                values.append(idf * n * 2.2 / (n + 1.2 * length))
    index = torch.tensor(np.array(places).T, device=device)
    matrix = torch.sparse_coo_tensor(
        index, torch.tensor(values, device=device, dtype=torch.float32), (tools, len(row))
    )
    matrix = matrix.coalesce().to_sparse_csr()
    found = torch.empty(len(asked), k, dtype=torch.int32)
    for start in range(0, len(asked), 1024):
        part = asked[start : start + 1024]
        dense = torch.zeros(len(row), len(part), device=device)
        held = [
            (row[w], j)
            for j, q in enumerate(part)
            for w in set(words(data.queries[q])[:60])
            if w in row
        ]
        cells = torch.tensor(held, device=device).reshape(-1, 2)
        dense[cells[:, 0], cells[:, 1]] = 1.0
        found[start : start + len(part)] = (matrix @ dense).T.topk(k, dim=1).indices.int().cpu()
    return found


def negatives(
    data: Dataset, q: torch.Tensor, d: torch.Tensor, bm25: torch.Tensor | None, seed: int = 0
) -> torch.Tensor:
    """List KEPT negatives of each query: half by the model, the others of the same catalog or by words."""
    random_ = np.random.default_rng(seed)
    catalog = np.array(data.catalog)
    tools = int((catalog != "gloss").sum())
    small = {
        c: np.flatnonzero(catalog == c)
        for c in set(data.source) & set(data.catalog)
        if c != "gloss"
    }
    mates: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for i, doc in enumerate(data.docs[:tools]):
        mates[data.catalog[i], doc.server].append(i)
    found = np.empty((len(data.queries), KEPT), dtype=np.int32)
    source = np.array(data.source)
    for name in dict.fromkeys(data.source):
        members = np.flatnonzero(source == name)
        low, high = (tools, len(data.docs)) if name == "gloss" else (0, tools)
        for start in range(0, len(members), 4096):
            part = members[start : start + 4096]
            scores = q[part] @ d[low:high].T
            top = (scores.topk(60, dim=1).indices + low).cpu().numpy()
            own = None
            if name in small and len(small[name]) > 30:
                places = torch.from_numpy(small[name]).to(q.device)
                own = small[name][scores[:, places].topk(24, dim=1).indices.cpu().numpy()]
            for j, i in enumerate(part):
                gold = data.gold[i]
                model = random_.permutation(top[j])[:24].tolist()
                if own is not None:
                    other = own[j][:16].tolist()
                elif name == "synthetic" or name.startswith(("written", "registry")):
                    group = mates[data.catalog[gold[0]], data.docs[gold[0]].server]
                    other = (
                        [group[k] for k in random_.integers(0, len(group), 8)]
                        if len(group) > 3
                        else []
                    )
                else:
                    other = []
                if bm25 is not None and name != "gloss":
                    other += bm25[i][:12].tolist()
                mixed = [x for x in other + model if x not in gold]
                found[i] = (mixed * KEPT)[:KEPT] if mixed else random_.integers(low, high, KEPT)
    return torch.from_numpy(found)


class Sampler:
    """Deal batches: queries by their share, one gold document each, then negatives."""

    def __init__(self, data: Dataset, hard: torch.Tensor, docs: torch.Tensor, seed: int) -> None:
        """Keep everything on the device of `docs`, the document embeddings that tell twins."""
        device = docs.device
        self.generator = torch.Generator(device=device).manual_seed(seed)
        self.weight = torch.from_numpy(data.weights()).float().to(device)
        width = 10
        gold = np.full((len(data.gold), width), -1, dtype=np.int32)
        for i, g in enumerate(data.gold):
            gold[i, : min(width, len(g))] = g[:width]
        self.gold = torch.from_numpy(gold).to(device)
        self.count = (self.gold >= 0).sum(1)
        self.hard = hard.to(device)
        self.docs = docs.half() if docs.is_cuda else docs

    def __call__(
        self, batch: int, negatives: int
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return query numbers, document numbers (gold first) and which documents are no negatives."""
        device = self.gold.device
        queries = torch.multinomial(self.weight, batch, replacement=True, generator=self.generator)
        pick = (
            torch.rand(batch, generator=self.generator, device=device) * self.count[queries]
        ).long()
        positive = self.gold[queries].gather(1, pick[:, None])[:, 0].long()
        chosen = torch.randint(0, KEPT, (batch, negatives), generator=self.generator, device=device)
        hard = self.hard[queries].gather(1, chosen).long()
        docs = torch.cat([positive, hard.flatten()])
        blocked = (self.docs[positive] @ self.docs[docs].T) > TWIN
        for column in self.gold[queries].T:
            blocked |= column[:, None] == docs[None, :]
        blocked[torch.arange(batch), torch.arange(batch)] = False
        return queries, docs, blocked
