"""Where tools come from: Python functions and files."""

from toolfold.sources.catalog_file import load_catalog
from toolfold.sources.functions import tool_from_function

__all__ = ["load_catalog", "tool_from_function"]
