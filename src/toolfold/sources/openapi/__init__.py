"""HTTP APIs as a source: the operations of an OpenAPI document are tools."""

from toolfold.sources.openapi.api import Api
from toolfold.sources.openapi.document import DocumentError
from toolfold.sources.openapi.openapi_source import OpenAPISource

__all__ = ["Api", "DocumentError", "OpenAPISource"]
