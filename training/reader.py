"""Train the reader on a GPU to follow its teacher.

    python training/reader_teacher.py
    python training/reader.py

Writes reader.npz as the package reads it, for the table that is in the package.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import reader_teacher
import torch
import torch.nn.functional as F
from reader_examples import GROUP, JUDGED, Examples, Judgements, examples_of
from reader_model import SPEC, ReaderModel, saved
from reader_steps import DATA, Average, in_half, loss_of, pace, say
from reader_table import PARAMETERS, REQUEST_LIMIT, SOURCE, TOOL_LIMIT, Tools

OUT = Path(os.environ.get("OUT", DATA))


class Batch:
    """What one step of the reader sees, always in the same place of memory.

    Args:
        examples: The requests and tools.
        judgements: The teacher's.
        size: How many requests a step sees.
    """

    def __init__(self, examples: Examples, judgements: Judgements, size: int) -> None:
        self._examples, self._judgements, self._size = examples, judgements, size
        device, shape = examples.device, (size, GROUP, TOOL_LIMIT)
        self.requests = torch.zeros(size, REQUEST_LIMIT, dtype=torch.long, device=device)
        self.tools = Tools(
            *(torch.zeros(shape, dtype=torch.long, device=device) for _ in Tools._fields)
        )
        self.guide = torch.zeros(size, GROUP, device=device)
        """The teacher's logits."""
        self.is_served = torch.zeros(size, dtype=torch.bool, device=device)
        """Whether the first tool serves; else none does."""
        self.is_known = torch.zeros(size, dtype=torch.bool, device=device)
        """Whether that is known."""

    def fill(self) -> None:
        """Draw what the next step sees."""
        examples, size, device = self._examples, self._size, self._examples.device
        numbers = torch.multinomial(examples.weight, size, replacement=True)
        chance = torch.rand(size, JUDGED, device=device)
        chance[:, 0] = 2  # so that the right one stays first
        chosen = chance.topk(GROUP, dim=1).indices
        rows = examples.requests[numbers].long()
        self.requests.copy_(self._with_gaps(rows))
        tools = examples.tools.of(self._judgements.tools[numbers].gather(1, chosen))
        for kept, own in zip(self.tools, self._without_fields(tools), strict=True):
            kept.copy_(own)
        self.guide.copy_(self._judgements.logits[numbers].gather(1, chosen).float().clamp(-10, 10))
        self.is_served.copy_(examples.gold[numbers, 0] >= 0)
        self.is_known.copy_(examples.is_known[numbers])

    @staticmethod
    def _with_gaps(rows: torch.Tensor) -> torch.Tensor:
        """Return requests of which half lack a piece now and then."""
        is_gone = torch.rand(rows.shape, device=rows.device) < 0.06
        is_some = torch.rand(len(rows), 1, device=rows.device) < 0.5
        rows = rows.masked_fill(is_gone & is_some, 0)
        return rows.gather(1, torch.argsort((rows == 0).to(torch.int8), dim=1, stable=True))

    @staticmethod
    def _without_fields(tools: Tools) -> Tools:
        """Return tools of which some lack their source, and of those some their parameters."""
        chance = torch.rand(len(tools.rows), 1, 1, device=tools.rows.device)
        is_source = (tools.fields == SOURCE) & (chance < 0.4)
        is_parameter = (tools.fields == PARAMETERS) & (chance < 0.15)
        return tools._replace(rows=tools.rows.long().masked_fill(is_source | is_parameter, 0))


class Trainer:
    """A reader and its step, which is captured once where the machine can, and then replayed.

    Args:
        reader: The reader.
        batch: What its steps see.
        rate: The largest learning rate.
        device: The machine's.
    """

    def __init__(self, reader: ReaderModel, batch: Batch, rate: float, device: str) -> None:
        self._reader, self._batch, self._peak, self._device = reader, batch, rate, device
        is_gpu = device == "cuda"
        self._rate = torch.tensor(rate, device=device)
        decaying = [p for p in reader.parameters() if p.ndim > 1]
        others = [p for p in reader.parameters() if p.ndim <= 1]
        self._optimiser = torch.optim.AdamW(
            [
                {"params": decaying, "weight_decay": 0.03},
                {"params": others, "weight_decay": 0.0},
            ],
            lr=self._rate,
            betas=(0.9, 0.98),
            capturable=is_gpu,
            foreach=is_gpu,
        )
        self.average = Average(reader, 0.04)
        self.mean = 0.0
        """The loss, of late."""
        self._loss = torch.zeros((), device=device)
        self._graph: Any = None
        if is_gpu:
            try:
                self._graph = self._captured()
            except RuntimeError as error:  # slower, and the same
                torch.cuda.synchronize()
                say(f"not captured: {str(error)[:300]}")

    def step(self, part: float) -> None:
        """Learn from the batch.

        Args:
            part: How much of the training is over.
        """
        self._rate.fill_(self._peak * pace(part))
        if self._graph is not None:
            self._graph.replay()
            return
        self._optimiser.zero_grad(set_to_none=True)
        self._loss = self._learnt()

    def follow(self) -> None:
        """Move the means of the weights and of the loss."""
        self.mean = 0.9 * self.mean + 0.1 * float(self._loss)
        self.average.follow()

    def _learnt(self) -> torch.Tensor:
        """Move the weights, and return the loss before."""
        batch = self._batch
        with in_half(self._device, is_cached=False):
            logits = self._reader(batch.requests, batch.tools)
        guide = batch.guide
        hard = loss_of(logits, batch.is_served, batch.is_known)
        among = F.kl_div(
            logits.log_softmax(1), guide.log_softmax(1), reduction="batchmean", log_target=True
        )
        alone = F.binary_cross_entropy_with_logits(logits, torch.sigmoid(guide))
        loss = 0.3 * hard + among + 2 * alone
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self._reader.parameters(), 1.0)
        self._optimiser.step()
        return loss.detach()

    def _captured(self) -> Any:
        """Return the step as a graph of the GPU's, after three that warm it up."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self._optimiser.zero_grad(set_to_none=True)
                self._learnt()
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()
        self._optimiser.zero_grad(set_to_none=True)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._loss = self._learnt()
        return graph


def train(reader: ReaderModel, batch: Batch, seconds: float, rate: float, device: str) -> None:
    """Train a reader in place.

    Args:
        reader: The reader.
        batch: What its steps see.
        seconds: How long it is trained.
        rate: The largest learning rate.
        device: The machine's.
    """
    batch.fill()
    trainer = Trainer(reader, batch, rate, device)
    begin, step = time.monotonic(), 0
    while (part := (time.monotonic() - begin) / seconds) < 1:
        batch.fill()
        trainer.step(part)
        step += 1
        if step % 10 == 0:
            trainer.follow()
        if step % 1000 == 0:
            say(f"reader step {step} loss {trainer.mean:.3f}")
    say(f"reader {step} steps, loss {trainer.mean:.3f}")
    trainer.average.settle()


def main() -> None:
    """Train readers of some shapes, one after the other, and write them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=195, help="of each reader's training")
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--shape", action="append", default=[], help="as tool=4,cross=1; several")
    parser.add_argument("--tiny", action="store_true", help="on little, to see that it runs")
    arguments = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    examples = examples_of(arguments.tiny, is_more=True)
    pairs = reader_teacher.Pairs(examples)
    judgements = reader_teacher.judged(examples, pairs, reader_teacher.written())
    say("judged")
    for shape in arguments.shape or [""]:
        changes = (change.split("=") for change in shape.split(",") if change)
        spec = SPEC | {name: int(number) for name, number in changes}
        torch.manual_seed(0)
        reader = ReaderModel(examples.table, **spec).to(examples.device)
        say(f"{spec}: {sum(p.numel() for p in reader.parameters())} weights")
        batch = Batch(examples, judgements, arguments.batch)
        train(reader, batch, arguments.seconds, arguments.rate, examples.device)
        name = f"reader-{shape.replace('=', '').replace(',', '-')}" if shape else "reader"
        np.savez_compressed(OUT / f"{name}.npz", **saved(reader, examples.table.version))


if __name__ == "__main__":
    main()
