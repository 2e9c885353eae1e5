"""What the training of the reader and of its teacher have in common."""

from __future__ import annotations

import math
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

DATA = Path(__file__).parent / ".data" / "reader"
START = time.time()


def say(text: str) -> None:
    """Print with the seconds since the start."""
    print(f"[{time.time() - START:6.1f}s] {text}", flush=True)


def loss_of(
    logits: torch.Tensor, is_served: torch.Tensor, is_known: torch.Tensor | None = None
) -> torch.Tensor:
    """Return how wrong logits are: of the right tool against the others, and of each by itself.

    Args:
        logits: Those of some tools for each request, the right one first: (requests, tools).
        is_served: Whether the first one is right; else none is.
        is_known: Of which requests that is known; without it of all.
    """
    served = is_served.float()
    label = torch.cat((served[:, None], torch.zeros_like(logits[:, 1:])), 1)
    each = F.binary_cross_entropy_with_logits(logits, label * 0.98 + 0.01, reduction="none")
    weight = 1 + 2 * label
    if is_known is not None:
        weight = weight * is_known.float()[:, None]
    alone = (each * weight).sum() / weight.sum()
    among = -(logits.log_softmax(1)[:, 0] * served).sum() / served.sum().clamp(min=1)
    return among + 2 * alone


def pace(part: float) -> float:
    """Return the share of the peak rate: up over the first twentieth, then a cosine down.

    Args:
        part: How much of the training is over.
    """
    part = min(1.0, part)
    if part < 0.05:
        return part / 0.05
    return 0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * (part - 0.05) / 0.95))


def in_half(device: str, is_cached: bool = True) -> torch.autocast:
    """Return a context in which a GPU computes with half as many bits.

    Args:
        device: The machine's.
        is_cached: Whether weights are cut once for several uses, which a captured step cannot do.
    """
    is_gpu = device == "cuda"
    return torch.autocast("cuda", torch.bfloat16, enabled=is_gpu, cache_enabled=is_cached)


class Average:
    """A moving mean of a model's weights, which is better than the last of them.

    Args:
        model: The model.
        share: How much of the mean is new each time.
    """

    def __init__(self, model: nn.Module, share: float) -> None:
        self._model, self._share = model, share
        state = model.state_dict().items()
        self._mean = {k: v.detach().clone().float() for k, v in state if v.is_floating_point()}

    @torch.no_grad()
    def follow(self) -> None:
        """Move the mean towards the weights."""
        state = self._model.state_dict()
        own = [state[name].float() for name in self._mean]
        torch._foreach_lerp_(list(self._mean.values()), own, self._share)

    def settle(self) -> None:
        """Give the model the mean, and be done with training."""
        self._model.load_state_dict(self._mean, strict=False)
        self._model.eval()
