"""Compare the package's reader with the one in torch: the same weights must give the same logits.

    python training/reader_check.py [READER.npz]

Fails where they differ by more than rounding does. It needs the package and torch.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from reader_examples import GROUP, few
from reader_model import ReaderModel
from reader_steps import DATA
from reader_table import WEIGHTS, Table, cut, read_of

from toolfold.search._dense import table as package_table
from toolfold.search._excerpts import excerpt
from toolfold.search._reader import PairReader

ALLOWED = 0.05
"""What the package keeps of tools has half as many bits."""

REQUESTS = 400


def of_torch(path: Path, raw: dict[str, Any], shown: np.ndarray) -> np.ndarray:
    """Return the logits of the reader in torch.

    Args:
        path: The weights.
        raw: Requests and tools.
        shown: The numbers of the tools that are shown with each request.
    """
    table = Table("cpu")
    with np.load(path, allow_pickle=False) as arrays:
        own = {name: arrays[name] for name in arrays if name not in ("spec", "version")}
        reader = ReaderModel(table, **json.loads(str(arrays["spec"])))
    reader.load_state_dict({name: torch.from_numpy(value).float() for name, value in own.items()})
    reader.eval()
    requests, fields = cut(raw["queries"], raw["tools"])
    tools = read_of(fields.long())
    found = []
    with torch.no_grad():
        for numbers in torch.arange(len(requests)).split(50):
            own_tools = tools.of(torch.from_numpy(shown[numbers.numpy()]))
            own_tools = own_tools._replace(
                fields=own_tools.fields.long(), places=own_tools.places.long()
            )
            found.append(reader(requests[numbers].long(), own_tools))
    return torch.cat(found).numpy()


def of_package(path: Path, raw: dict[str, Any], shown: np.ndarray) -> dict[str, np.ndarray]:
    """Return the logits of the package's reader, of tools read together and each alone.

    The arguments are the same.
    """
    words = package_table()
    reader = PairReader.read(path, words)
    tools = [reader.tool(excerpt(words.cut((*texts, "")))) for texts in raw["tools"]]
    asked = [reader.request(query) for query in raw["queries"]]
    pairs = [(one, [tools[i] for i in own]) for one, own in zip(asked, shown.tolist(), strict=True)]
    together = [reader.logits(one, own) for one, own in pairs]
    alone = [[reader.logits(one, [tool])[0] for tool in own] for one, own in pairs]
    return {"together": np.array(together), "alone": np.array(alone)}


def main() -> None:
    """Print the largest difference."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else WEIGHTS / "reader.npz"
    raw = few(json.loads((DATA / "data.json").read_text(encoding="utf-8")), REQUESTS, 400)
    draw = np.random.default_rng(0)
    shown = draw.integers(len(raw["tools"]), size=(REQUESTS, GROUP))
    for row, gold, against in zip(shown, raw["gold"], raw["against"], strict=True):
        own = [*gold, *against][: GROUP - 1]  # and at least one that is any tool
        row[: len(own)] = own
    right = of_torch(path, raw, shown)
    print(f"{REQUESTS} requests, {len(raw['tools'])} tools, {right.size} logits")
    print(f"from {right.min():.2f} to {right.max():.2f}, mean {right.mean():.2f}")
    largest = 0.0
    for how, logits in of_package(path, raw, shown).items():
        difference = np.abs(logits - right)
        largest = max(largest, float(difference.max()))
        print(f"{how}: largest difference {difference.max():.4f}, mean {difference.mean():.5f}")
    if largest > ALLOWED:
        sys.exit(f"more than {ALLOWED}")


if __name__ == "__main__":
    main()
