"""MiniLM: encoding, fine-tuning with mined negatives, weight averaging, int8 ONNX."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from tokenizers import Tokenizer

DATA = Path(__file__).parent / ".data"
QUERY, PASSAGE = 64, 112
LARGE = 10_000
"""Matrices of more numbers are written as whole ones."""


def tokens(texts: list[str], length: int) -> torch.Tensor:
    """Return padded piece numbers (0 is padding)."""
    tokenizer = Tokenizer.from_file(str(DATA / "minilm/tokenizer.json"))
    tokenizer.enable_truncation(length)
    tokenizer.enable_padding(length=length)
    found = np.zeros((len(texts), length), dtype=np.int32)
    for start in range(0, len(texts), 20_000):
        batch = tokenizer.encode_batch(texts[start : start + 20_000])
        found[start : start + len(batch)] = [e.ids for e in batch]
    return torch.from_numpy(found)


def empty() -> Any:
    """Return a model of the same shape, not trained."""
    from transformers import BertConfig, BertModel

    config = BertConfig.from_json_file(str(DATA / "minilm/config.json"))
    return BertModel(config, add_pooling_layer=False)


def load(device: str) -> Any:
    """Load the untouched model."""
    model = empty()
    missing = model.load_state_dict(read(DATA / "minilm/model.safetensors"), strict=False)
    assert not [k for k in missing.missing_keys if "position_ids" not in k], missing
    return model.to(device)


def read(path: Path) -> dict[str, torch.Tensor]:
    """Read weights; a matrix may be whole numbers with a scale a row."""
    from safetensors.torch import load_file

    state = load_file(path)
    for key in [key for key in state if key.endswith(".scale")]:
        name = key.removesuffix(".scale")
        state[name] = state[name].float() * state.pop(key).float()[:, None]
    return {k: v.float() if v.is_floating_point() else v for k, v in state.items()}


def write(state: dict[str, torch.Tensor], path: Path) -> None:
    """Write weights in a quarter of the room, for `read`."""
    from safetensors.torch import save_file

    small: dict[str, torch.Tensor] = {}
    for key, own in state.items():
        value = own.detach().cpu().contiguous()
        small[key] = value.half() if value.is_floating_point() else value
        if value.ndim == 2 and value.numel() > LARGE:
            scale = value.float().abs().amax(1) / 127
            small[key] = (value.float() / scale.clamp(min=1e-9)[:, None]).round().to(torch.int8)
            small[f"{key}.scale"] = scale
    save_file(small, path)


def embed(model: Any, ids: torch.Tensor) -> torch.Tensor:
    """Mean-pool and normalise."""
    longest = int((ids != 0).sum(1).max())
    ids = ids[:, :longest].long()
    mask = (ids != 0).long()
    out = model(input_ids=ids, attention_mask=mask).last_hidden_state
    weight = mask.unsqueeze(-1).to(out.dtype)
    return F.normalize(((out * weight).sum(1) / weight.sum(1)).float(), dim=1)


@torch.no_grad()
def encode(model: Any, ids: torch.Tensor, batch: int = 4096) -> torch.Tensor:
    """Embed many texts, short ones together."""
    model.eval()
    device = next(model.parameters()).device
    order = torch.argsort((ids != 0).sum(1))
    found = torch.empty(len(ids), model.config.hidden_size, device=device)
    for part in order.split(batch):
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=device.type == "cuda"):
            found[part] = embed(model, ids[part].to(device))
    return found


def contrast(
    queries: torch.Tensor, docs: torch.Tensor, blocked: torch.Tensor, scale: float | torch.Tensor
) -> torch.Tensor:
    """InfoNCE: the i-th document is the i-th query's; `blocked` marks documents that are no negatives."""
    scores = (queries @ docs.T) * scale
    scores = scores.masked_fill(blocked, -1e4)
    target = torch.arange(len(queries), device=queries.device)
    back = scores[:, : len(queries)].T
    return F.cross_entropy(scores, target) + 0.3 * F.cross_entropy(back, target)


def fine_tune(
    model: Any,
    sampler: Any,
    q_ids: torch.Tensor,
    d_ids: torch.Tensor,
    steps: int,
    batch: int,
    rate: float = 6e-5,
) -> None:
    """Train in place. The sampler gives (queries, documents, blocked) for a batch."""
    model.train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, rate, total_steps=steps, pct_start=0.08
    )
    for step in range(steps):
        queries, docs, blocked = sampler(batch, 3)
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=q_ids.is_cuda):
            q = embed(model, q_ids[queries])
            d = embed(model, d_ids[docs])
        loss = contrast(q, d, blocked, 20.0)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        if step % 200 == 0:
            print(f"minilm step {step} loss {loss.item():.3f}", flush=True)


def average(model: Any, base: dict[str, torch.Tensor], share: float) -> None:
    """Move the weights back towards `base`: `share` of the trained ones remains."""
    with torch.no_grad():
        for name, value in model.state_dict().items():
            if value.is_floating_point():
                value.copy_(share * value + (1 - share) * base[name].to(value.device))


def export(model: Any, path: Path) -> None:
    """Write the encoder, pooled and normalised, as dynamic int8 ONNX."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    class Pooled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = model

        def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
            out = self.inner(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
            weight = attention_mask.unsqueeze(-1).to(out.dtype)
            return F.normalize((out * weight).sum(1) / weight.sum(1), dim=1)

    model.eval().float().cpu()
    ids = torch.ones(2, 16, dtype=torch.long)
    axes = {0: "batch", 1: "length"}
    full = path.with_suffix(".full.onnx")
    torch.onnx.export(
        Pooled(),
        (ids, torch.ones_like(ids)),
        str(full),
        input_names=["input_ids", "attention_mask"],
        output_names=["embedding"],
        dynamic_axes={"input_ids": axes, "attention_mask": axes, "embedding": {0: "batch"}},
        opset_version=17,
        dynamo=False,
    )
    quantize_dynamic(str(full), str(path), weight_type=QuantType.QInt8, per_channel=True)
