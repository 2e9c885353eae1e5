"""BM25F in numpy: stemmed words, weighted fields, one sparse column a word.

score(q, d) = sum over query words of idf * tf * (k1 + 1) / (tf + k1), where tf sums the fields' counts, each times its
weight over its length norm. Postings hold the finished numbers, so a search adds a few columns.
"""

from __future__ import annotations

import math
from collections import Counter
from functools import lru_cache

import numpy as np
import snowballstemmer

from catalog import Tool
from text import words

STOP = frozenset(
    "a an the of to in for on at by with and or from is are be been am as it its this that these those your you i me my we our us "
    "can could will would should if not no any some all has have had was were which who what when where how do does did there "
    "their they them he she his her s t e g please want need like help let also then than so about into out up just".split()
)
FIELD_WEIGHT = {"name": 3.0, "server": 0.7, "description": 1.0, "parameters": 0.7, "details": 0.25}
FIELD_B = {"name": 0.3, "server": 0.3, "description": 0.6, "parameters": 0.6, "details": 0.6}
K1 = 1.2

SYNONYMS = {
    "repo": "repository", "repos": "repository", "msg": "message", "pr": "pull request", "prs": "pull request", "pic": "image photo",
    "pics": "image photo", "picture": "image photo", "photo": "image", "img": "image", "doc": "document", "docs": "document",
    "info": "information", "dir": "directory", "folder": "directory", "db": "database", "config": "configuration",
    "auth": "authentication", "temp": "temperature", "calc": "calculate", "id": "identifier", "max": "maximum", "min": "minimum",
    "num": "number", "addr": "address", "app": "application", "lang": "language", "org": "organization", "env": "environment",
    "fetch": "get retrieve", "retrieve": "get", "obtain": "get", "grab": "get", "show": "get list", "see": "get view",
    "find": "search", "look": "search find", "lookup": "search", "remove": "delete", "erase": "delete", "edit": "update",
    "modify": "update", "change": "update", "make": "create", "add": "create", "new": "create", "remind": "reminder schedule event",
    "buy": "purchase order", "purchase": "buy order", "book": "reserve reservation", "reserve": "book", "compute": "calculate",
    "convert": "conversion", "movie": "film", "film": "movie", "song": "music track", "tweet": "twitter", "email": "mail",
    "mail": "email", "pay": "payment", "meeting": "event calendar", "appointment": "event calendar", "flight": "airline",
    "hotel": "accommodation", "cost": "price", "price": "cost", "job": "employment", "car": "vehicle", "vehicle": "car",
    "weather": "forecast", "forecast": "weather", "translate": "translation", "stock": "share", "crypto": "cryptocurrency",
    "picture's": "image", "sum": "add", "multiply": "product", "delete": "remove", "create": "make", "send": "message",
    "text": "message", "call": "phone", "taxi": "ride", "cab": "ride taxi", "company": "business", "news": "article headline",
}
SYNONYM_WEIGHT = 0.4

_STEMMER = snowballstemmer.stemmer("english")


@lru_cache(maxsize=200_000)
def stem(word: str) -> str:
    """Return the Snowball stem."""
    return _STEMMER.stemWord(word)


def terms(text: str) -> list[str]:
    """List a text's stems without stopwords."""
    return [stem(w) for w in words(text) if w not in STOP and not (w.isdigit())]


EXPANSION = {stem(k): tuple(dict.fromkeys(stem(w) for w in v.split())) for k, v in SYNONYMS.items()}


class BM25:
    """An index over tools."""

    def __init__(self, tools: list[Tool], weight: dict[str, float] = FIELD_WEIGHT, b: dict[str, float] = FIELD_B, k1: float = K1) -> None:
        """Count every field of every tool and keep finished postings."""
        self.size = len(tools)
        fields = {
            "name": [t.name for t in tools],
            "server": [t.server for t in tools],
            "description": [t.description for t in tools],
            "parameters": [" . ".join(n for n, _ in t.parameters) for t in tools],
            "details": [" . ".join(d for _, d in t.parameters) for t in tools],
        }
        total: list[dict[str, float]] = [{} for _ in tools]
        self.name_terms: list[frozenset[str]] = []
        for field, texts in fields.items():
            cut = [terms(text) for text in texts]
            if field == "name":
                self.name_terms = [frozenset(c) for c in cut]
            mean = max(1e-9, sum(map(len, cut)) / max(1, sum(1 for c in cut if c)))
            for counts, found in zip(total, cut, strict=True):
                if not found:
                    continue
                norm = weight[field] / (1 - b[field] + b[field] * len(found) / mean)
                for word, n in Counter(found).items():
                    counts[word] = counts.get(word, 0.0) + n * norm
        places: dict[str, list[int]] = {}
        values: dict[str, list[float]] = {}
        for i, counts in enumerate(total):
            for word, n in counts.items():
                places.setdefault(word, []).append(i)
                values.setdefault(word, []).append(n * (k1 + 1) / (n + k1))
        self.idf = {w: math.log(1 + (self.size - len(p) + 0.5) / (len(p) + 0.5)) for w, p in places.items()}
        self.postings = {
            w: (np.array(p, dtype=np.int32), np.array(values[w], dtype=np.float32)) for w, p in places.items()
        }
        self.unseen = math.log(1 + (self.size + 0.5) / 0.5)

    def weights(self, query: str, synonyms: float = SYNONYM_WEIGHT) -> dict[str, float]:
        """Weigh the query's stems: 1 for each said, less for each that is only meant."""
        said = dict.fromkeys(terms(query), 1.0)
        if synonyms:
            for word in list(said):
                for other in EXPANSION.get(word, ()):
                    if other not in said:
                        said[other] = synonyms
        return said

    def scores(self, query: str, synonyms: float = SYNONYM_WEIGHT) -> np.ndarray:
        """Score every tool."""
        found = np.zeros(self.size, dtype=np.float32)
        for word, weight in self.weights(query, synonyms).items():
            posting = self.postings.get(word)
            if posting is not None:
                found[posting[0]] += weight * self.idf[word] * posting[1]
        return found
