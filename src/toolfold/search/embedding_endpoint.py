"""An embedding endpoint that reorders what the embedded search found.

It can only reorder: whatever goes wrong there (no answer, a late one, a malformed one)
leaves the embedded order as it is, is logged once, and is never raised. One request a
query: the query's vector and those of shortlisted tools not seen before come together.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, sqrt
from typing import Any
from urllib.parse import urlsplit

from toolfold._memo import Memo
from toolfold.search._document import fields
from toolfold.search.ranker import Match, Ranker, Searcher
from toolfold.settings import Reranker
from toolfold.tool import Tool, is_array, is_object

__all__ = ["EndpointError", "Reranked", "embed"]

SHORTLIST = 25
"""How many of the embedded search's matches are reordered."""

LIFTED = 0.5
"""The score of a best hit that the endpoint's own floor lets pass: as likely as not."""

PAUSE_SECONDS = 10.0
"""How long a failed endpoint is left alone."""

_ANSWER_LIMIT = 64 * 1024 * 1024
_TEXT_LIMIT = 2_000
_WAITING_AT_MOST = 8

_log = logging.getLogger(__name__)

Vector = tuple[float, ...]
_VECTORS: Memo[tuple[str, str, str, str], Vector] = Memo(
    8_192, room=64 * 1024 * 1024, size=lambda vector: 32 * len(vector)
)


class EndpointError(Exception):
    """The endpoint gave no usable answer."""


class EndpointBusyError(EndpointError):
    """So many requests wait for the endpoint that another would not help."""


@dataclass(frozen=True, slots=True)
class Reranked:
    """A ranker whose matches an endpoint reorders."""

    inner: Ranker
    settings: Reranker

    @property
    def name(self) -> str:
        """The inner ranker's name, with the mode."""
        return f"{self.inner.name}+{self.settings.mode}"

    @property
    def calibrated(self) -> bool:
        """Whether scores are probabilities: reordered, they still are the inner ranker's."""
        return self.inner.calibrated

    @property
    def waits(self) -> bool:
        """Whether a search may wait: for the endpoint."""
        return True

    def searcher(self, tools: Sequence[Tool]) -> Searcher:
        """Return a searcher over the tools."""
        texts = [(tool.digest, _document(tool)) for tool in tools]
        lifts = self.calibrated and self.settings.floor > 0
        return RerankedSearcher(self.inner.searcher(tools), texts, self.settings, lifts=lifts)


class RerankedSearcher:
    """Answers queries over one list of tools, in the endpoint's order where there is one.

    Args:
        inner: The embedded search.
        texts: The digest and the text of each tool.
        settings: The endpoint, and how to use it.
        lifts: Whether the endpoint may find probable what the embedded search did not.
    """

    def __init__(
        self,
        inner: Searcher,
        texts: Sequence[tuple[str, str]],
        settings: Reranker,
        *,
        lifts: bool = False,
    ) -> None:
        self._lifts = lifts
        self._inner = inner
        self._texts = texts
        self._settings = settings

    def search(self, query: str, limit: int) -> Sequence[Match]:
        """Return the inner matches, reordered; as they are where the endpoint fails."""
        found = self._inner.search(query, max(limit, SHORTLIST))
        endpoint = self._settings.endpoint
        if len(found) < (1 if self._lifts else 2) or time.monotonic() < _PAUSED_UNTIL.get(
            endpoint, 0.0
        ):
            return found[:limit]
        try:
            similar = self._similarities(query, [match.position for match in found])
        except EndpointBusyError:
            return found[:limit]
        except EndpointError as error:
            _pause(endpoint, error)
            return found[:limit]
        _PAUSED_UNTIL.pop(endpoint, None)
        order = sorted(range(len(found)), key=lambda i: (-similar[i], i))
        if self._settings.mode == "rrf":
            place = {i: rank for rank, i in enumerate(order)}
            k = self._settings.rrf_k
            order.sort(key=lambda i: (-(1 / (k + i + 1) + 1 / (k + place[i] + 1)), i))
        # Scores keep their meaning and their order; only which tool holds which changes.
        scores = [match.score for match in found]
        if self._lifts and similar[order[0]] >= self._settings.floor and scores[0] < LIFTED:
            share = LIFTED / scores[0] if scores[0] > 0 else 0.0
            scores = [LIFTED, *(score * share for score in scores[1:])]
        return [Match(found[i].position, s) for i, s in zip(order, scores, strict=True)][:limit]

    def explain(self, query: str, position: int) -> str:
        """Say why the inner search found the tool, and who ordered it."""
        return f"{self._inner.explain(query, position)}; ordered by {self._settings.model}"

    def _similarities(self, query: str, positions: Sequence[int]) -> list[float]:
        own = self._settings
        keys = [(own.endpoint, own.model, own.doc_prefix, self._texts[p][0]) for p in positions]
        missing = [(k, p) for k, p in zip(keys, positions, strict=True) if _VECTORS.get(k) is None]
        texts = [own.query_prefix + query[:_TEXT_LIMIT]]
        texts += [own.doc_prefix + self._texts[position][1] for _, position in missing]
        vectors = embed(texts, own)
        known = dict(zip((key for key, _ in missing), vectors[1:], strict=True))
        for key, vector in known.items():
            _VECTORS.put(key, vector)
        documents = [known.get(key) or _VECTORS.get(key) or () for key in keys]
        if any(len(document) != len(vectors[0]) for document in documents):
            for key in keys:  # the model behind the name has changed: what it made before is void
                _VECTORS.drop(key)
            raise EndpointError("vectors of different lengths")
        return [sum(a * b for a, b in zip(vectors[0], d, strict=True)) for d in documents]


_PAUSED_UNTIL: dict[str, float] = {}
"""When to ask an endpoint again that has failed; it leaves when it has answered."""


def _pause(endpoint: str, error: EndpointError) -> None:
    """Leave an endpoint alone for a while, and say so the first time."""
    if endpoint not in _PAUSED_UNTIL:
        _log.warning(
            "the reranker at %s gave no usable answer (%s); the embedded order stands",
            _host(endpoint),
            error,
        )
    _PAUSED_UNTIL[endpoint] = time.monotonic() + PAUSE_SECONDS


def embed(texts: Sequence[str], settings: Reranker) -> list[Vector]:
    """Return the unit vectors of texts, all in one request.

    Raises:
        EndpointError: There was no usable answer within the time allowed.
    """
    outcome: list[list[Vector] | EndpointError] = []
    # A socket's timeout starts anew with every byte; only waiting from outside bounds the whole.
    if not _waiting.acquire(blocking=False):
        raise EndpointBusyError("too many requests are waiting")

    def ask() -> None:
        try:
            outcome.append(_vectors(_post(texts, settings), len(texts)))
        except EndpointError as error:
            outcome.append(error)
        except Exception as error:  # a reranker's failure never is the search's
            outcome.append(EndpointError(type(error).__name__))
        finally:
            _waiting.release()

    asking = threading.Thread(target=ask, name="toolfold-reranker", daemon=True)
    asking.start()
    asking.join(settings.timeout)
    if not outcome:
        raise EndpointError(f"no answer within {settings.timeout:g} s")
    if isinstance(outcome[0], EndpointError):
        raise outcome[0]
    return outcome[0]


_waiting = threading.BoundedSemaphore(_WAITING_AT_MOST)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows nowhere: a redirect would carry the key to another host."""

    def redirect_request(self, *arguments: Any, **more: Any) -> None:
        """Refuse every redirect."""


def _post(texts: Sequence[str], settings: Reranker) -> Any:
    if urlsplit(settings.endpoint).scheme not in ("http", "https"):
        raise EndpointError("its address is neither http nor https")
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    key = os.environ.get(settings.api_key_env) if settings.api_key_env else None
    if key:
        headers["Authorization"] = f"Bearer {key}"
    body = json.dumps({"model": settings.model, "input": list(texts)}).encode()
    request = urllib.request.Request(settings.endpoint, body, headers, method="POST")
    opener = urllib.request.build_opener(_NoRedirect)
    try:
        with opener.open(request, timeout=settings.timeout) as answer:
            text = answer.read(_ANSWER_LIMIT + 1)
    except urllib.error.HTTPError as refused:
        refused.close()  # it holds the connection
        raise
    if len(text) > _ANSWER_LIMIT:
        raise EndpointError("its answer is too long")
    return json.loads(text)


def _vectors(answer: Any, count: int) -> list[Vector]:
    data = answer.get("data") if is_object(answer) else None
    if not is_array(data) or len(data) != count:
        raise EndpointError(f"it did not answer with {count} vectors")
    ordered: list[Vector | None] = [None] * count
    for place, item in enumerate(data):
        i = item.get("index", place) if is_object(item) else None
        if not isinstance(i, int) or not 0 <= i < count or ordered[i] is not None:
            raise EndpointError("its vectors are misnumbered")
        ordered[i] = _unit(item)
    vectors = [vector for vector in ordered if vector is not None]
    if len({len(vector) for vector in vectors}) != 1:
        raise EndpointError("vectors of different lengths")
    return vectors


def _unit(item: Mapping[str, Any]) -> Vector:
    values = item.get("embedding")
    if not is_array(values) or not values:
        raise EndpointError("a vector is missing")
    if not all(isinstance(v, int | float) and isfinite(v) for v in values):
        raise EndpointError("a vector holds something other than numbers")
    norm = sqrt(sum(v * v for v in values))
    if not norm or not isfinite(norm):
        raise EndpointError("a vector is zero")
    return tuple(v / norm for v in values)


def _document(tool: Tool) -> str:
    texts = fields(tool)
    words = tool.name.replace("_", " ").replace(".", " ")
    return f"{words}: {texts.description} {texts.parameters}"[:_TEXT_LIMIT]


def _host(endpoint: str) -> str:
    """Return the endpoint's host: its address may hold a password."""
    try:
        return urlsplit(endpoint).hostname or "its endpoint"
    except ValueError:
        return "its endpoint"
