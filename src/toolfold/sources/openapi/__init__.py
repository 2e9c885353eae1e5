"""HTTP APIs as a source: the operations of an OpenAPI document are tools."""

from toolfold.sources.openapi.api_document import DocumentError
from toolfold.sources.openapi.client_credentials import ClientCredentials
from toolfold.sources.openapi.http_api import HttpApi
from toolfold.sources.openapi.openapi_source import OpenAPISource

__all__ = ["ClientCredentials", "DocumentError", "HttpApi", "OpenAPISource"]
