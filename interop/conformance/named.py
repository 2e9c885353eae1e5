"""Checks that may come to something else through the gateway, one by one, and why."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.suite import Check

__all__ = ["FOLDED", "named"]

_UNLISTED = "needs its tool in `tools/list`, where the bridge stands when tools are folded"
_PRESERVED = "json-schema-2020-12"
_HEADERS = "http-custom-header-server-validation"
_BAD_CHARACTERS = "sep-2243-server-reject-invalid-param-chars"
_MISMATCH = "sep-2243-server-reject-param-mismatch"
_MATCH = "sep-2243-server-validate-param-match"

FOLDED: Mapping[Check, str] = {
    Check(scenario, id, name): _UNLISTED
    for scenario, id, name in (
        (_PRESERVED, "json-schema-2020-12-tool-found", "JsonSchema2020_12ToolFound"),
        (_PRESERVED, "json-schema-2020-12-$schema", "JsonSchema2020_12$Schema"),
        (_PRESERVED, "json-schema-2020-12-$defs", "JsonSchema2020_12$Defs"),
        (
            _PRESERVED,
            "json-schema-2020-12-additionalProperties",
            "JsonSchema2020_12AdditionalProperties",
        ),
        (
            _PRESERVED,
            "sep-2106-composition-keywords-preserved",
            "JsonSchema2020_12CompositionKeywords",
        ),
        (
            _PRESERVED,
            "sep-2106-conditional-keywords-preserved",
            "JsonSchema2020_12ConditionalKeywords",
        ),
        (_PRESERVED, "sep-2106-anchor-keyword-preserved", "JsonSchema2020_12AnchorKeyword"),
        (_HEADERS, "sep-2243-server-decode-base64", "ServerAcceptsValidBase64"),
        (_HEADERS, _BAD_CHARACTERS, "ServerRejectsInvalidBase64Padding"),
        (_HEADERS, _MISMATCH, "ServerRejectsInvalidBase64PaddingErrorCode"),
        (_HEADERS, _BAD_CHARACTERS, "ServerRejectsInvalidBase64Chars"),
        (_HEADERS, _MISMATCH, "ServerRejectsInvalidBase64CharsErrorCode"),
        (_HEADERS, _MATCH, "ServerLiteralMissingBase64Prefix"),
        (_HEADERS, _MATCH, "ServerLiteralMissingBase64Suffix"),
        (_HEADERS, _MATCH, "ServerRejectsMissingCustomHeader"),
        (_HEADERS, _MISMATCH, "ServerRejectsMissingCustomHeaderErrorCode"),
    )
}
"""With `enabled: on`."""


def named(folding: str) -> Mapping[Check, str]:
    """Return the checks that may differ with a setting, with the reasons."""
    return FOLDED if folding == "on" else {}
