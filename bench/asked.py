"""Requests as a model puts them to a search tool: what the answers name, and what they cost.

    python -m bench asked         # dev requests, and what no tool serves
    python -m bench asked-test    # test requests, to report and not to choose by

Ours is the whole answer of `tool_search`. A peer is asked need by need, for five hits each, as
its own search tool would be; what it writes is counted as it stands. `first hit` is how often
the first hit of a need is right, `come first` which share of the right tools stands first. The
plain answer is ours with the same number of hits, all with signatures and nothing behind them:
what the tokens of ours are held to.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from bench import data
from bench.peers.peers import Peer, PeerUnavailableError
from toolfold import Settings
from toolfold.evaluation import Corpus, LabelledRequest, load_corpus, measure_answers
from toolfold.evaluation.answers import SHARES
from toolfold.evaluation.measure import recall

__all__ = ["OURS", "UNSERVED", "asked", "asked_test", "mean_row", "served_rows", "unserved_rows"]

Row = dict[str, Any]

OURS = "toolfold"
UNSERVED = "unserved"
"""What the rows of requests that no tool serves begin with."""

_DEV_SETS = ("acebench", "nestful", "seal-tools", "metatool")
_TEST_SETS = ("callnavi", "toollinkos", "bfcl", "stabletoolbench")
_PEERS = ("hermes", "fastmcp", "everruns")
_CHARACTERS_A_TOKEN = 4
_UNSERVED_AT_MOST = 200
_SEED = 2


class _Asked(NamedTuple):
    """What a peer answered to one request, need by need."""

    request: LabelledRequest
    needs: tuple[tuple[tuple[str, ...], int], ...]
    """The names of each need's hits, and the characters of its answer."""

    @property
    def names(self) -> list[str]:
        return [name for names, _ in self.needs for name in names]

    @property
    def firsts(self) -> list[str]:
        return [names[0] for names, _ in self.needs if names]

    @property
    def tokens(self) -> float:
        return sum(characters for _, characters in self.needs) / _CHARACTERS_A_TOKEN


def asked(names: Sequence[str] = _DEV_SETS) -> list[Row]:
    """As models ask: right tools in the answer, first hits, tokens (characters over four).

    Args:
        names: The sets that are measured beside Azure's. What no tool serves is drawn from all.
    """
    folder = _folder()
    if folder is None:
        return []
    azure, *others = corpora = [
        load_corpus(folder / "azure-asked", split="dev"),
        *(_of(folder, name, "dev") for name in _DEV_SETS),
    ]
    measured = [corpus for corpus in corpora if corpus is azure or corpus.name in names]
    return [*_served(measured), *_unserved(azure, others)]


def asked_test() -> list[Row]:
    """The same on test requests: for reporting alone."""
    folder = _folder()
    return [] if folder is None else _served([_of(folder, name, "test") for name in _TEST_SETS])


def _folder() -> Path | None:
    folder = data.corpora()
    if folder is None or not (folder / "asked").is_dir():
        print("note: skipped, the corpora are absent", file=sys.stderr)
        return None
    return folder


def _of(folder: Path, name: str, split: str) -> Corpus:
    return load_corpus(folder / name, split=split, queries=folder / "asked" / f"{name}.jsonl")


def _served(corpora: Sequence[Corpus]) -> list[Row]:
    rows = [row for corpus in corpora for row in served_rows(corpus)]
    return [*rows, *(mean_row(system, rows) for system in dict.fromkeys(r["system"] for r in rows))]


def served_rows(corpus: Corpus) -> list[Row]:
    """Return what ours names of what a corpus asks for, and what each peer does."""
    return [_ours(corpus), *(_row(corpus.name, name, told) for name, told in _peers(corpus))]


def _ours(corpus: Corpus) -> Row:
    metrics = measure_answers(corpus, Settings(enabled="on", cache_dir="off")).metrics
    return {
        "corpus": corpus.name,
        "system": OURS,
        "in the answer": round(metrics["answer_recall"], 3),
        "first five": round(metrics["first_five_recall"], 3),
        "first hit": round(metrics["first_hit"], 3),
        "come first": round(metrics["first_hit_recall"], 3),
        "tokens": round(metrics["answer_tokens"]),
        "plain": round(metrics["plain_tokens"]),
        **{f"in {share} %": round(metrics[f"recall_within_{share}"], 3) for share in SHARES},
    }


def _peers(corpus: Corpus) -> list[tuple[str, list[_Asked]]]:
    """Return what each peer that can be had answers to every request."""
    tools = [dict(tool.raw or {}) for tool in corpus.catalog]
    told: list[tuple[str, list[_Asked]]] = []
    for name in _PEERS:
        try:
            with Peer(name, tools) as peer:
                results = peer.search([need for r in corpus.requests for need in r.needs])
        except PeerUnavailableError as error:
            print(f"note: {error}", file=sys.stderr)
            continue
        answers = iter(zip(results.names, results.characters, strict=True))
        told.append(
            (name, [_Asked(r, tuple(next(answers) for _ in r.needs)) for r in corpus.requests])
        )
    return told


def _row(corpus: str, system: str, told: Sequence[_Asked]) -> Row:
    found = fmean(recall(one.request, one.names, len(one.names)) for one in told)
    firsts = [recall(one.request, one.firsts, len(one.firsts)) for one in told]
    return {
        "corpus": corpus,
        "system": system,
        "in the answer": round(found, 3),
        # Five hits a need are all that a peer was asked for.
        "first five": round(found, 3),
        "first hit": round(fmean(float(share > 0) for share in firsts), 3),
        "come first": round(fmean(firsts), 3),
        "tokens": round(fmean(one.tokens for one in told)),
    }


def mean_row(system: str, rows: Sequence[Row]) -> Row:
    """Return the means of a system's rows."""
    own = [row for row in rows if row["system"] == system]
    keys = [key for key in own[0] if key not in ("corpus", "system")]
    means = {key: fmean(row[key] for row in own) for key in keys}
    rounded = {k: round(v) if k in ("tokens", "plain") else round(v, 3) for k, v in means.items()}
    return {"corpus": "mean", "system": system, **rounded}


def _unserved(azure: Corpus, others: Sequence[Corpus]) -> list[Row]:
    """Put what a model asked of other catalogs to Azure's tools, which serve next to none of it."""
    needs = [need for corpus in others for request in corpus.requests for need in request.needs]
    drawn = random.Random(_SEED).sample(needs, min(len(needs), _UNSERVED_AT_MOST))
    name = f"{UNSERVED} by {len(azure.catalog)} tools"
    requests = tuple(LabelledRequest(need, frozenset()) for need in drawn)
    return unserved_rows(azure._replace(name=name, requests=requests, unknown=()))


def unserved_rows(corpus: Corpus) -> list[Row]:
    """Return how often ours has hits for requests that nothing serves, and how often peers do."""
    metrics = measure_answers(corpus, Settings(enabled="on", cache_dir="off")).metrics
    ours: Row = {
        "corpus": corpus.name,
        "system": OURS,
        "tokens": round(metrics["answer_tokens"]),
        "gets hits": round(metrics["unserved_hit"], 3),
        "as a close match": round(metrics["unserved_close"], 3),
    }
    return [ours, *(_unserved_row(corpus.name, name, told) for name, told in _peers(corpus))]


def _unserved_row(corpus: str, system: str, told: Sequence[_Asked]) -> Row:
    hits = round(fmean(float(bool(one.names)) for one in told), 3)
    tokens = round(fmean(one.tokens for one in told))
    # A peer marks no hit as weak.
    row: Row = {"corpus": corpus, "system": system, "tokens": tokens, "gets hits": hits}
    return {**row, "as a close match": hits}
