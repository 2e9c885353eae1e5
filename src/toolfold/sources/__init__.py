"""Where tools come from and where calls of them go: functions, files, MCP servers."""

from toolfold.sources.calls import CallContext, Output, PendingCall, Refusal, current_call
from toolfold.sources.catalog_file import load_catalog
from toolfold.sources.definitions import Definitions
from toolfold.sources.functions import bind, tool_from_function
from toolfold.sources.merged import Sources
from toolfold.sources.registry import Registered, Registry, Runner
from toolfold.sources.source import Bounds, Source, SourceError

__all__ = [
    "Bounds",
    "CallContext",
    "Definitions",
    "Output",
    "PendingCall",
    "Refusal",
    "Registered",
    "Registry",
    "Runner",
    "Source",
    "SourceError",
    "Sources",
    "bind",
    "current_call",
    "load_catalog",
    "tool_from_function",
]
