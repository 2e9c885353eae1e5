"""Where tools come from: Python functions and files."""

from toolfold.sources.catalog_file import load_catalog
from toolfold.sources.functions import bind, tool_from_function

__all__ = ["bind", "load_catalog", "tool_from_function"]
