"""A catalog of our own to try things on: 207 tools of 13 made-up servers."""

from __future__ import annotations

from pathlib import Path

from toolfold.catalog import Catalog
from toolfold.sources.catalog_file import load_catalog

__all__ = ["CATALOG_FILE", "QUERIES_FILE", "demo_catalog"]

CATALOG_FILE = Path(__file__).with_name("catalog.jsonl")
"""The tools, one a line."""

QUERIES_FILE = Path(__file__).with_name("queries.jsonl")
"""Requests with the tools that serve them, one a line."""


def demo_catalog() -> Catalog:
    """Return the bundled catalog."""
    return load_catalog(CATALOG_FILE)
