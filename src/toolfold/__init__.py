"""Tool search for every LLM agent: fold large tool lists behind a tiny bridge.

Example:
    from toolfold import fold

    folded = fold(tools, context_length=200_000)
    folded.tools                      # send this to the model
    folded.resolve(name, arguments)   # what its call comes to
"""

from toolfold.answer import Answer, Hit, Invocation
from toolfold.catalog import Catalog
from toolfold.errors import (
    CatalogError,
    ConfigError,
    InvalidToolError,
    MissingExtraError,
    NameClashError,
    ToolfoldError,
    UnknownToolError,
)
from toolfold.fold import Folded, Report, fold
from toolfold.scope import EVERYTHING, Scope
from toolfold.session import Session, SessionStore
from toolfold.settings import MemorySettings, Reranker, Settings, load_settings
from toolfold.tokens import TokenCounter, estimate, exact_counter
from toolfold.tool import Json, Policy, Shape, Tool

__all__ = [
    "EVERYTHING",
    "Answer",
    "Catalog",
    "CatalogError",
    "ConfigError",
    "Folded",
    "Hit",
    "InvalidToolError",
    "Invocation",
    "Json",
    "MemorySettings",
    "MissingExtraError",
    "NameClashError",
    "Policy",
    "Report",
    "Reranker",
    "Scope",
    "Session",
    "SessionStore",
    "Settings",
    "Shape",
    "TokenCounter",
    "Tool",
    "ToolfoldError",
    "UnknownToolError",
    "estimate",
    "exact_counter",
    "fold",
    "load_settings",
]
