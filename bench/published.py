"""The figures of the README's table: measured here, kept in `docs/figures.json`.

    python -m bench.published              # measure, and write the file; some minutes
    .venv/bin/python docs/generate.py      # then put them into the README

Catalogs of which nothing was trained on, neither tools nor requests, so that a catalog of the
reader's own does about as well; requests of dev splits. A peer is asked what a model asks, need
by need, for five hits each, in the same run.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from bench import data
from bench.asked import OURS, UNSERVED, asked
from bench.tokens import exact_counter, why_not_exact
from toolfold import Settings, fold
from toolfold.evaluation import Corpus, load_corpus, measure

__all__ = ["CATALOGS", "FILE", "measured_tokens", "published"]

CATALOGS = ("azure-mcp", "acebench", "nestful")
"""What the rates are means over."""

FILE = Path(__file__).resolve().parents[1] / "docs" / "figures.json"

Figures = dict[str, Any]


def published(folder: Path) -> Figures:
    """Return every figure of the table, each rate by system.

    Args:
        folder: The corpora.
    """
    corpora = [load_corpus(folder / name, split="dev") for name in CATALOGS]
    return {
        "catalogs": {corpus.name: len(corpus.catalog) for corpus in corpora},
        "people_first_five": _people(corpora),
        **_asked(),
        "tokens": measured_tokens(),
    }


def _people(corpora: list[Corpus]) -> dict[str, float]:
    """Return the recall@5 of requests in people's words, the mean over the catalogs."""
    results = [measure(corpus, Settings(enabled="on", cache_dir="off")) for corpus in corpora]
    return {OURS: round(fmean(r.metrics["recall@5"] or 0.0 for r in results), 3)}


def _asked() -> Figures:
    """Return what requests get that are put as a model puts them."""
    rows = asked(CATALOGS)
    wanted = ("azure-asked", *CATALOGS[1:])
    figures: Figures = {}
    for key, column in (
        ("asked_in_the_answer", "in the answer"),
        ("asked_first_hit", "first hit"),
        ("asked_tokens", "tokens"),
    ):
        by_system: dict[str, list[float]] = {}
        for row in rows:
            if row["corpus"] in wanted:
                by_system.setdefault(row["system"], []).append(row[column])
        figures[key] = {name: round(fmean(values), 3) for name, values in by_system.items()}
    unserved = [row for row in rows if row["corpus"].startswith(UNSERVED)]
    figures["unserved_hits"] = {row["system"]: row["gets hits"] for row in unserved}
    figures["unserved_close"] = {row["system"]: row["as a close match"] for row in unserved}
    return figures


def measured_tokens() -> Figures:
    """Return the tokens of 226 real tools, as they are and as a model sees them folded."""
    count = exact_counter()
    if count is None:
        raise SystemExit(f"tokens cannot be counted: {why_not_exact()}")
    tools = list(data.catalog("deploy-226").tools)

    def counted(seen: Sequence[Any]) -> int:
        return count(json.dumps(seen, ensure_ascii=False, separators=(",", ":")))

    def folded(**settings: Any) -> int:
        shown = Settings(enabled="on", **settings)
        return counted(fold(tools, shape="openai-chat", settings=shown).tools)

    keys = ("name", "description", "parameters")
    whole = [{"type": "function", "function": {key: t[key] for key in keys}} for t in tools]
    return {
        "tools": len(tools),
        "unfolded": counted(whole),
        "folded": folded(),
        "with_names": folded(listing="names"),
    }


def main() -> None:
    """Measure, and write the file."""
    folder = data.corpora()
    if folder is None:
        raise SystemExit("the corpora are absent; docs/corpora.md says where they come from")
    text = json.dumps(published(folder), indent=2)
    FILE.write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
