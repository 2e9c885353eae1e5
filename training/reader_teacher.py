"""Teach the reader's teacher, MiniLM, which reads a request and a tool as one text; on a GPU.

    python training/reader_data.py
    python training/reader_teacher.py

Writes .data/reader/teacher.safetensors, in a quarter of the room.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import minilm
import torch
from reader_drawn import WORD
from reader_examples import GROUP, JUDGED, Examples, Judgements, examples_of
from reader_steps import DATA, Average, in_half, loss_of, pace, say
from torch import nn

FILE = DATA / "teacher.safetensors"

QUERY, PASSAGE = 32, 72
"""So many of MiniLM's pieces are read of a request and of a tool."""


class Teacher(nn.Module):
    """Judges pairs of a request and a tool.

    Args:
        bert: MiniLM.
    """

    def __init__(self, bert: Any) -> None:
        super().__init__()
        self.bert = bert
        self.head = nn.Sequential(nn.Linear(384, 384), nn.Tanh(), nn.Linear(384, 1))

    def forward(self, ids: torch.Tensor, types: torch.Tensor) -> torch.Tensor:
        """Return the logit of each pair that the tool serves the request.

        Args:
            ids: The pieces of each pair, 0 after the last one.
            types: 1 for those of the tool.
        """
        mask = (ids > 0).long()
        out = self.bert(input_ids=ids, token_type_ids=types, attention_mask=mask).last_hidden_state
        weight = mask.unsqueeze(-1).to(out.dtype)
        return self.head((out * weight).sum(1) / weight.sum(1))[:, 0].float()


class Pairs:
    """Requests and tools in MiniLM's pieces, to be joined.

    Args:
        examples: The requests and tools.
    """

    def __init__(self, examples: Examples) -> None:
        passages = [passage(texts) for texts in examples.texts]
        self._requests = minilm.tokens(examples.queries, QUERY).to(examples.device)
        # A pair has one [CLS], the request's.
        self._tools = minilm.tokens(passages, PASSAGE)[:, 1:].to(examples.device)

    def of(self, requests: torch.Tensor, tools: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the pieces of pairs, given the numbers of both; and which are the tool's."""
        asked, read = self._requests[requests].long(), self._tools[tools].long()
        ids = torch.cat((asked, read), 1)
        types = torch.cat((torch.zeros_like(asked), torch.ones_like(read)), 1)
        order = torch.argsort((ids == 0).int(), dim=1, stable=True)
        longest = int((ids > 0).sum(1).max())
        ids, types = (own.gather(1, order)[:, :longest] for own in (ids, types))
        return ids, types * (ids > 0)

    def lengths(self, requests: torch.Tensor, tools: torch.Tensor) -> torch.Tensor:
        """Return how many pieces pairs have."""
        return (self._requests > 0).sum(1)[requests] + (self._tools > 0).sum(1)[tools]


def passage(texts: list[str]) -> str:
    """Write a tool as the text that the teacher reads, given its five texts."""
    name, source, lead, rest, parameters = texts
    head = " ".join(WORD.findall(name))
    head = f"{head} ({source})" if source else head
    return f"{head}: {lead} {rest[:160]} | {parameters[:120]}"


def taught(examples: Examples, pairs: Pairs, seconds: float, size: int, rate: float) -> Teacher:
    """Return a teacher, fine-tuned.

    Args:
        examples: What it is shown.
        pairs: The same in its pieces.
        seconds: How long it is trained.
        size: How many requests there are in a step.
        rate: The largest learning rate.
    """
    device = examples.device
    teacher = Teacher(minilm.load(device)).to(device)
    optimiser = torch.optim.AdamW(
        teacher.parameters(), lr=rate, weight_decay=0.01, fused=device == "cuda"
    )
    average = Average(teacher, 0.03)
    teacher.train()
    begin, step, mean = time.monotonic(), 0, 0.0
    while (part := (time.monotonic() - begin) / seconds) < 1:
        for group in optimiser.param_groups:
            group["lr"] = rate * pace(part)
        requests, tools, is_served = examples.batch(size)
        ids, types = pairs.of(requests.repeat_interleave(GROUP), tools.reshape(-1))
        with in_half(device):
            logits = teacher(ids, types).view(size, GROUP)
        loss = loss_of(logits, is_served)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(teacher.parameters(), 1.0)
        optimiser.step()
        if step % 10 == 0:
            mean = 0.98 * mean + 0.02 * loss.item()
        step += 1
        if step % 10 == 0:
            average.follow()
        if step % 1000 == 0:
            say(f"teacher step {step} loss {loss.item():.3f} mean {mean:.3f}")
    say(f"teacher {step} steps, mean {mean:.3f}")
    average.settle()
    return teacher


@torch.no_grad()
def judged(examples: Examples, pairs: Pairs, teacher: Teacher) -> Judgements:
    """Return tools for each request, the right one first, and the teacher's logits of them.

    Args:
        examples: The requests and tools.
        pairs: The same in the teacher's pieces.
        teacher: The teacher.
    """
    every = torch.arange(len(examples.queries), device=examples.device)
    tools = torch.cat([examples.groups(part, JUDGED)[0] for part in every.split(20_000)])
    requests, flat = every.repeat_interleave(JUDGED), tools.reshape(-1)
    logits = torch.empty(len(flat), device=examples.device, dtype=torch.float16)
    # Pairs of one length together, so that little of what is computed is padding.
    for part in torch.argsort(pairs.lengths(requests, flat)).split(8192):
        ids, types = pairs.of(requests[part], flat[part])
        with in_half(examples.device):
            logits[part] = teacher(ids, types).half()
    return Judgements(tools, logits.view(tools.shape))


def written() -> Teacher:
    """Return the teacher that was taught, on a GPU if there is one."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    teacher = Teacher(minilm.empty())
    teacher.load_state_dict(minilm.read(FILE))
    return teacher.to(device).eval()


def main() -> None:
    """Teach the teacher, and write it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=360)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--tiny", action="store_true", help="on little, to see that it runs")
    arguments = parser.parse_args()
    examples = examples_of(arguments.tiny, is_more=False)
    pairs = Pairs(examples)
    say("tokenised")
    teacher = taught(examples, pairs, arguments.seconds, arguments.batch, arguments.rate)
    minilm.write(teacher.state_dict(), FILE)


if __name__ == "__main__":
    main()
