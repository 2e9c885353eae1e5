"""Train everything in one call on a GPU: MiniLM with mined negatives, then static tables taught by it.

python3 training/gpu.py --fold --variants 256:pairs,256:plain,384:pairs
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

import dataset
import minilm
import mining
import numpy as np
import static
import torch
from text import Pieces

OUT = Path(os.environ.get("OUT", dataset.DATA / "out"))
START = time.time()


def say(text: str) -> None:
    """Print with the seconds since the start."""
    line = f"[{time.time() - START:6.1f}s] {text}"
    print(line, flush=True)
    with (OUT / "log.txt").open("a", encoding="utf-8") as file:
        file.write(line + "\n")


def measure(name: str, sets: dict[str, Any], vectors: Any) -> None:
    """Print recall@5 of a dense model on every dev set."""
    line = {}
    for label, (tools, queries, gold) in sets.items():
        q, d = vectors(queries, tools)
        line[label] = round(dataset.recall((q @ d.T).float().cpu().numpy(), gold), 3)
    say(f"{name:24s} " + json.dumps(line))


def main() -> None:
    """Train, measure on dev, export."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fold", action="store_true")
    parser.add_argument("--variants", default="256:pairs")
    parser.add_argument("--minilm-steps", type=int, default=1500)
    parser.add_argument("--minilm-batch", type=int, default=384)
    parser.add_argument("--static-steps", type=int, default=4000)
    parser.add_argument("--static-batch", type=int, default=1024)
    parser.add_argument("--static-seconds", type=float, default=60.0)
    parser.add_argument(
        "--keep", type=float, default=0.6, help="share of the fine-tuned weights in the average"
    )
    parser.add_argument("--save", type=int, default=3, help="how many of the variants come back")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--onnx", action="store_true")
    arguments = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    data = dataset.load(arguments.fold, ours=True)
    if arguments.tiny:
        keep = np.random.default_rng(0).choice(len(data.queries), 3000, replace=False)
        for name in ("queries", "gold", "source"):
            values = getattr(data, name)
            setattr(data, name, [values[i] for i in keep])
    sets = dataset.dev_sets(data, limit=50 if arguments.tiny else 1000)
    if arguments.tiny:
        sets = {k: v for k, v in sets.items() if k in ("metatool",)}
    tools = sum(c != "gloss" for c in data.catalog)
    say(
        f"{len(data.docs)} docs, {len(data.queries)} queries {dict(Counter(data.source))} on {device}"
    )

    q_ids = minilm.tokens(data.queries, minilm.QUERY)
    d_ids = minilm.tokens([dataset.passage(t) for t in data.docs], minilm.PASSAGE)
    say("tokenised")
    model = minilm.load(device)
    base = {k: v.clone() for k, v in model.state_dict().items()}
    if arguments.tiny:
        q, d = (
            torch.nn.functional.normalize(torch.randn(len(q_ids), 384), dim=1),
            torch.nn.functional.normalize(torch.randn(len(d_ids), 384), dim=1),
        )
    else:
        q, d = minilm.encode(model, q_ids), minilm.encode(model, d_ids)
    say("encoded")
    asked = [i for i, s in enumerate(data.source) if s != "gloss"]
    bm25 = torch.zeros(len(data.queries), 12, dtype=torch.int32)
    bm25[asked] = mining.lexical_top(data, tools, asked, 12, device)
    say("mined by words")
    hard = mining.negatives(data, q, d, bm25)
    say("mined by MiniLM")

    def by_minilm(queries: list[str], docs: list[Any]) -> tuple[torch.Tensor, torch.Tensor]:
        passages = minilm.tokens([dataset.passage(t) for t in docs], minilm.PASSAGE)
        return minilm.encode(model, minilm.tokens(queries, minilm.QUERY)), minilm.encode(
            model, passages
        )

    measure("MiniLM untouched", sets, by_minilm)
    q_ids, d_ids = q_ids.to(device), d_ids.to(device)
    minilm.fine_tune(
        model,
        mining.Sampler(data, hard, d, 1),
        q_ids,
        d_ids,
        arguments.minilm_steps,
        arguments.minilm_batch,
    )
    measure("MiniLM fine-tuned", sets, by_minilm)
    minilm.average(model, base, arguments.keep)
    measure("MiniLM averaged", sets, by_minilm)
    if not arguments.tiny:
        q, d = minilm.encode(model, q_ids), minilm.encode(model, d_ids)
        hard = mining.negatives(data, q, d, bm25, 1)
    say("mined again")
    if arguments.onnx:
        path = OUT.parent / "minilm.onnx"
        minilm.export(copy.deepcopy(model), path)
        blob = path.read_bytes()
        for part in range(0, len(blob), 12 << 20):
            (OUT / f"minilm.onnx.{part // (12 << 20)}").write_bytes(blob[part : part + (12 << 20)])
        say(f"onnx {len(blob)} bytes")

    vocabulary = json.loads((dataset.DATA / "vocabulary.json").read_text(encoding="utf-8"))
    saved = 0
    tables: dict[str, tuple[list[str], torch.Tensor, list[torch.Tensor]]] = {}
    for variant in arguments.variants.split(","):
        dim, kind, *options = variant.split(":")
        distil = float(options[0]) if options else 1.0
        rate = float(options[1]) if len(options) > 1 else 2e-3
        if kind not in tables:
            kept = vocabulary if kind == "pairs" else [v for v in vocabulary if " " not in v]
            pieces = Pieces(kept)
            ids = torch.from_numpy(static.padded(pieces, data.queries, static.QUERY)).to(device)
            fields = [torch.from_numpy(f).to(device) for f in static.doc_rows(pieces, data.docs)]
            tables[kind] = (kept, ids, fields)
            say(f"cut into {len(kept)} pieces")
        kept, ids, fields = tables[kind]
        pieces = Pieces(kept)
        frequency = (
            sum(
                torch.bincount(f.flatten().long(), minlength=len(kept) + 1) for f in [ids, *fields]
            )[1:]
            .cpu()
            .numpy()
            + 1.0
        )
        rows = minilm.encode(model, minilm.tokens([v.removeprefix("##") for v in kept], 8))
        torch.manual_seed(1)
        table = static.Static(*static.initial(rows, frequency, int(dim))).to(device)

        def by_table(queries: list[str], docs: list[Any]) -> tuple[torch.Tensor, torch.Tensor]:
            with torch.no_grad():
                cut = torch.from_numpy(static.padded(pieces, queries, static.QUERY)).to(device)
                return table.query(cut), table.doc(
                    [torch.from_numpy(f).to(device) for f in static.doc_rows(pieces, docs)]
                )

        measure(f"static {variant} start", sets, by_table)
        sampler = mining.Sampler(data, hard, d, 2)
        static.train(
            table,
            sampler,
            ids,
            fields,
            (q, d),
            arguments.static_steps,
            arguments.static_batch,
            rate,
            distil,
            seconds=arguments.static_seconds,
        )
        measure(f"static {variant}", sets, by_table)
        label = variant.replace(":", "-")
        if saved < arguments.save:
            saved += 1
            np.savez(OUT / f"static-{label}.npz", **static.saved(table))
        say(
            f"{table.scale.exp().item():.1f} gain {table.gain.exp().tolist()} power {torch.sigmoid(table.power).tolist()}"
        )


if __name__ == "__main__":
    main()
