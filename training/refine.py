"""Teach a table how people talk: requests written for this purpose, beside a replay of the rest.

    python training/refine.py TABLE.npz OUT.npz [--fold] [--steps 600]

`requests/*.jsonl` holds tools with seven requests each, colloquial ones among them. Half
of a batch are these, half are requests of the first training; on the latter the table is held
to the ranking it had before, so that nothing is forgotten. A tenth of the tools is kept
out as dev, with `--fold` three tenths, for fitting the scorer.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import dataset
import numpy as np
import static
import torch
import torch.nn.functional as F
from text import Pieces
from written import is_kept_out, written


def model_of(table: dict[str, np.ndarray]) -> static.Static:
    """Return a trainable table from a saved one."""
    vectors = torch.from_numpy(
        table["vectors"].astype(np.float32) * table["scale"].astype(np.float32)[:, None]
    )
    model = static.Static(
        vectors, torch.from_numpy(table["doc_weight"].astype(np.float32)).clamp(min=1e-6).log()
    )
    with torch.no_grad():
        model.query_weight[1:] = (
            torch.from_numpy(table["query_weight"].astype(np.float32)).clamp(min=1e-6).log()
        )
        model.gain.copy_(torch.from_numpy(table["gain"]).log())
        model.power.copy_(torch.logit(torch.from_numpy(table["power"]).clamp(1e-4, 1 - 1e-4)))
        model.scale.fill_(3.0)
    return model


def recall(
    model: static.Static, queries: torch.Tensor, gold: np.ndarray, fields: list[torch.Tensor]
) -> float:
    """Return recall@5 of requests over all written tools."""
    with torch.no_grad():
        scores = model.query(queries) @ model.doc(fields).T
        return float(
            (scores.topk(5, 1).indices == torch.from_numpy(gold)[:, None]).any(1).float().mean()
        )


def main() -> None:
    """Refine and save."""
    parser = argparse.ArgumentParser()
    parser.add_argument("table", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--fold", action="store_true")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--rate", type=float, default=1.5e-3)
    parser.add_argument("--half", type=int, default=192)
    parser.add_argument("--hold", type=float, default=1.0)
    arguments = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(2)
    random = np.random.default_rng(0)
    vocabulary = json.loads((dataset.DATA / "vocabulary.json").read_text(encoding="utf-8"))
    pieces = Pieces(vocabulary)
    with np.load(arguments.table) as arrays:
        model = model_of(dict(arrays))
        before = model_of(dict(arrays))

    tools, queries, owner = written()
    gold = np.array(owner)
    out = np.array([is_kept_out(tool, arguments.fold) for tool in tools])
    asked = torch.from_numpy(static.padded(pieces, queries, static.QUERY))
    fields = [torch.from_numpy(f) for f in static.doc_rows(pieces, tools)]
    taught, dev = np.flatnonzero(~out[gold]), np.flatnonzero(out[gold])

    data = dataset.load(arguments.fold, 1)
    picks = random.choice(len(data.queries), 24_000, p=data.weights())
    needed = sorted({data.gold[i][0] for i in picks})
    place = {d: i for i, d in enumerate(needed)}
    old_asked = torch.from_numpy(
        static.padded(pieces, [data.queries[i] for i in picks], static.QUERY)
    )
    old_fields = [
        torch.from_numpy(f) for f in static.doc_rows(pieces, [data.docs[i] for i in needed])
    ]
    old_gold = np.array([place[data.gold[i][0]] for i in picks])
    print(
        f"{len(tools)} tools, {len(taught)} requests taught, {len(dev)} dev, {len(picks)} replayed",
        flush=True,
    )
    print(f"before: dev {recall(before, asked[dev], gold[dev], fields):.3f}", flush=True)

    with torch.no_grad():
        near = (
            (before.doc(fields) @ before.doc(fields).T)
            .fill_diagonal_(-1)
            .topk(12, 1)
            .indices.numpy()
        )
    weights = [model.doc_weight, model.query_weight, model.gain, model.power, model.scale]
    optimiser = torch.optim.Adam(
        [
            {"params": [model.vectors], "lr": arguments.rate},
            {"params": weights, "lr": arguments.rate},
        ],
        betas=(0.9, 0.98),
    )
    half = arguments.half
    for step in range(arguments.steps):
        for group in optimiser.param_groups:
            group["lr"] = arguments.rate * min(1.0, step / 50) * (1 - step / arguments.steps)
        new = random.choice(taught, half)
        mates = near[gold[new], random.integers(0, 12, half)]
        old = random.integers(0, len(picks), half)
        new_docs = np.concatenate((gold[new], mates))
        q_ids = torch.cat((asked[new], old_asked[old]))
        drop = torch.rand(q_ids.shape) > 0.1
        q = model.query(_packed(q_ids * drop))
        d = torch.cat(
            (
                model.doc([f[new_docs] for f in fields], 0.2),
                model.doc([f[old_gold[old]] for f in old_fields], 0.2),
            )
        )
        keys = np.concatenate((new_docs, 1_000_000 + old_gold[old]))
        own = np.concatenate((np.arange(half), 2 * half + np.arange(half)))
        blocked = torch.from_numpy(
            (keys[None, :] == keys[own][:, None]) & (np.arange(len(keys))[None, :] != own[:, None])
        )
        scores = ((q @ d.T) * model.scale.exp()).masked_fill(blocked, -1e4)
        loss = F.cross_entropy(scores, torch.from_numpy(own))
        with torch.no_grad():
            was_q = before.query(old_asked[old])
            was_d = torch.cat(
                (
                    before.doc([f[new_docs] for f in fields]),
                    before.doc([f[old_gold[old]] for f in old_fields]),
                )
            )
            guide = ((was_q @ was_d.T) * 20.0).masked_fill(blocked[half:], -1e4).log_softmax(1)
        loss = loss + arguments.hold * F.kl_div(
            scores[half:].log_softmax(1), guide, reduction="batchmean", log_target=True
        )
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        if step % 50 == 0:
            print(
                f"step {step} loss {loss.item():.3f} dev {recall(model, asked[dev], gold[dev], fields):.3f}",
                flush=True,
            )
    print(f"after: dev {recall(model, asked[dev], gold[dev], fields):.3f}")
    np.savez(arguments.out, **static.saved(model))


def _packed(ids: torch.Tensor) -> Any:
    """Move what a dropped piece left empty to the end."""
    return torch.gather(ids, 1, torch.argsort((ids == 0).int(), dim=1, stable=True))


if __name__ == "__main__":
    main()
