"""Fold, search and call documents of real size; print what came of it.

    python -m openapi_documents [FOLDER] [--calls N]

Every request is read by openapi-core on the other side. What it refuses is printed, and the
exit code is 1 where it refused anything that is our doing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import sys
import time
from pathlib import Path
from typing import Any

from openapi_documents.examples import arguments_of
from openapi_documents.fetching import DOCUMENTS, AwayError, Published, fetched
from openapi_documents.judge import judging
from openapi_documents.styles import cases, document, segment_of
from toolfold import Answer, Tool, fold
from toolfold.arguments import check
from toolfold.sources.calls import CallContext, Output, PendingCall
from toolfold.sources.openapi import HttpApi, OpenAPISource


def main() -> int:
    """Run all of it."""
    parser = argparse.ArgumentParser(prog="openapi_documents")
    parser.add_argument("folder", nargs="?", default=".openapi/documents", type=Path)
    parser.add_argument("--calls", type=int, default=60, help="operations called of each document")
    given = parser.parse_args()
    logging.disable(logging.WARNING)
    wrong = styles()
    head = (
        "document",
        "operations",
        "read s",
        "tokens",
        "folded",
        "found",
        "called",
        "refused",
        "unjudged",
    )
    print(_row(head))
    for published in DOCUMENTS:
        try:
            file = fetched(published, given.folder)
        except AwayError as error:
            print(f"{published.name}: skipped, {error}")
            continue
        wrong += of_document(published, file, given.calls)
    for line in wrong:
        print(f"  {line}")
    return 1 if wrong else 0


def styles() -> list[str]:
    """Call one operation for each style, and return what the judge refuses."""
    wrong: list[str] = []
    with judging(document()) as (host, judge):
        source = OpenAPISource(HttpApi("styles", base_url=host), document=document())
        tools = {tool.bare_name: tool for tool in source.tools()}
        every = cases()
        for name, (parameter, path, value) in every.items():
            judge.path, judge.segment = path, segment_of(parameter)
            is_spread = name in ("query_form_object_exploded", "cookie_form_object_exploded")
            judge.whole = "color" if is_spread else ""
            asyncio.run(called(source, tools[name], {"color": value}))
        refused = dict(zip(every, judge.verdicts, strict=True))
    wrong = [f"{name}: {said}" for name, said in refused.items() if said]
    print(f"styles: {len(every) - len(wrong)} of {len(every)} read as they were meant")
    return wrong


def of_document(published: Published, file: Path, calls: int) -> list[str]:
    """Fold, search and call one document; print its line and return what was refused."""
    raw = json.loads(file.read_text("utf-8"))
    wrong: list[str] = []
    done = 0
    with judging(raw) as (host, judge):
        began = time.perf_counter()
        source = OpenAPISource(
            HttpApi(published.name, file=str(file.absolute()), base_url=host, auth=_auth(raw))
        )
        seconds = time.perf_counter() - began
        tools = source.tools()
        folded = fold(tools, context_length=200_000)
        found = sum(
            _finds(folded, query, f"{published.name}__{name}") for query, name in published.queries
        )
        for tool in tools[:: max(len(tools) // calls, 1)]:
            for every in (False, True):
                arguments = arguments_of(tool.parameters, every=every)
                if check(tool, dict(arguments)).faults:
                    continue  # our example does not fit: nobody would send it
                judge.path = source.operations[tool.name].path
                before = len(judge.verdicts)
                output = asyncio.run(called(source, tool, arguments))
                said = judge.verdicts[-1] if len(judge.verdicts) > before else output.text
                done += 1
                if said:
                    wrong.append(f"{tool.name}: {said}")
    report = folded.report
    hits = f"{found}/{len(published.queries)}"
    figures = (
        published.name,
        f"{len(tools):,}",
        f"{seconds:.1f}",
        f"{report.tokens_before:,}",
        f"{report.tokens_after:,}",
        hits,
        str(done),
        str(len(wrong)),
        str(judge.unjudged),
    )
    print(_row(figures))
    return wrong


def _auth(raw: dict[str, Any]) -> dict[str, str]:
    """Return something for each of a document's security schemes."""
    schemes = raw.get("components", {}).get("securitySchemes", {})
    return dict.fromkeys(schemes, "user:a-secret-of-the-test")


def _finds(folded: Any, query: str, name: str) -> bool:
    answer = folded.resolve("tool_search", {"query": query})
    assert isinstance(answer, Answer)
    return name in [hit.tool.name for hit in answer.hits]


async def called(source: OpenAPISource, tool: Tool, arguments: dict[str, Any]) -> Output:
    """Return what a call comes to."""
    context = CallContext(PendingCall(tool, arguments), lambda *_: None)
    async with source:
        return await source.call(tool, arguments, context)


def _row(cells: tuple[str, ...]) -> str:
    return "  ".join(
        cell.ljust(11) if place == 0 else cell.rjust(10) for place, cell in enumerate(cells)
    )


if __name__ == "__main__":
    sys.exit(main())
