"""Calls to every tool of the six servers whose answer depends on the world alone."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias

from servers import World

__all__ = ["CALLS", "LEFT_OUT", "UNFIT", "comparable"]

Calls: TypeAlias = list[tuple[str, dict[str, Any]]]

LEFT_OUT = {
    "everything": {
        "get-env": "tells the environment, and that of the gateway is its own",
        "get-roots-list": "asks the client: see test_questions.py",
        "trigger-elicitation-request": "asks the client: see test_questions.py",
        "trigger-sampling-request": "asks the client: see test_questions.py",
        "trigger-url-elicitation": "asks the client: see test_questions.py",
    }
}
"""Tools that are not compared, and why."""

UNFIT: dict[str, Calls] = {
    "everything": [("echo", {}), ("get-sum", {"a": "one", "b": 2})],
    "git": [("git_log", {"repo_path": 3})],
    "memory": [("open_nodes", {"names": "Ada"})],
}
"""Calls whose arguments do not fit. The bridge answers those itself, with what would fit."""

_CLOCK = re.compile(
    r"\d{1,2}:\d\d:\d\d [AP]M"  # everything
    r"|\d\d:\d\d:\d\d(?=[+-]\d\d:\d\d)"  # time
    r"|\d\d:\d\d:\d\d(?= GMT)"  # filesystem
)


def comparable(result: str) -> str:
    """Return a result's JSON without the time that went by between two calls."""
    return _CLOCK.sub("(time)", result)


def _everything(world: World) -> Calls:
    data = "data:text/plain,hello"
    return [
        ("echo", {"message": "grüße ✓ \u2028 😀"}),
        ("get-sum", {"a": 1.5, "b": -2}),
        ("get-tiny-image", {}),
        ("get-annotated-message", {"messageType": "error", "includeImage": True}),
        ("get-structured-content", {"location": "Chicago"}),
        ("get-resource-links", {"count": 3}),
        ("get-resource-reference", {"resourceType": "Text", "resourceId": 1}),
        ("gzip-file-as-resource", {"name": "a.gz", "data": data, "outputType": "resource"}),
        ("gzip-file-as-resource", {"name": "b.gz", "data": data, "outputType": "resourceLink"}),
        ("trigger-long-running-operation", {"duration": 0.1, "steps": 1}),
        ("simulate-research-query", {"topic": "needs a task, which the client does not ask for"}),
        ("toggle-subscriber-updates", {}),
        ("toggle-subscriber-updates", {}),
        ("toggle-simulated-logging", {}),
        ("toggle-simulated-logging", {}),
    ]


def _filesystem(world: World) -> Calls:
    notes, inner = str(world.files / "notes.md"), str(world.files / "inner")
    edit = [{"oldText": "first line", "newText": "the first line"}]
    return [
        ("list_allowed_directories", {}),
        ("read_file", {"path": notes}),
        ("read_text_file", {"path": notes, "tail": 1}),
        ("read_text_file", {"path": str(world.files / "missing.md")}),
        ("read_text_file", {"path": "/etc/hostname"}),
        ("read_media_file", {"path": str(world.files / "pixel.png")}),
        ("read_media_file", {"path": str(world.files / "silence.wav")}),
        ("read_multiple_files", {"paths": [notes, str(world.files / "inner" / "deep.txt")]}),
        ("list_directory", {"path": str(world.files)}),
        ("list_directory_with_sizes", {"path": str(world.files), "sortBy": "size"}),
        ("directory_tree", {"path": str(world.files)}),
        ("search_files", {"path": str(world.files), "pattern": "**/*.txt"}),
        ("get_file_info", {"path": notes}),
        ("create_directory", {"path": f"{inner}/more"}),
        ("write_file", {"path": f"{inner}/more/new.txt", "content": "new\n"}),
        ("edit_file", {"path": notes, "edits": edit, "dryRun": True}),
        ("edit_file", {"path": notes, "edits": edit}),
        ("move_file", {"source": notes, "destination": f"{inner}/moved.md"}),
        ("directory_tree", {"path": str(world.files)}),
    ]


def _memory(world: World) -> Calls:
    ada = {"name": "Ada", "entityType": "person", "observations": ["counts", "weaves"]}
    loom = {"name": "Loom", "entityType": "machine", "observations": []}
    uses = {"from": "Ada", "to": "Loom", "relationType": "uses"}
    more = {"entityName": "Ada", "contents": ["writes"]}
    return [
        ("read_graph", {}),
        ("create_entities", {"entities": [ada, loom]}),
        ("create_relations", {"relations": [uses]}),
        ("add_observations", {"observations": [more]}),
        ("add_observations", {"observations": [{**more, "entityName": "Nobody"}]}),
        ("search_nodes", {"query": "weaves"}),
        ("open_nodes", {"names": ["Loom"]}),
        ("delete_observations", {"deletions": [{"entityName": "Ada", "observations": ["counts"]}]}),
        ("delete_relations", {"relations": [uses]}),
        ("delete_entities", {"entityNames": ["Loom"]}),
        ("read_graph", {}),
    ]


def _time(world: World) -> Calls:
    noon = {"source_timezone": "Etc/UTC", "time": "12:00", "target_timezone": "Asia/Kolkata"}
    return [
        ("get_current_time", {"timezone": "Europe/Berlin"}),
        ("get_current_time", {"timezone": "Nowhere/At_All"}),
        ("convert_time", noon),
        ("convert_time", {**noon, "time": "25:00"}),
    ]


def _git(world: World) -> Calls:
    here = {"repo_path": str(world.repository)}
    return [
        ("git_status", here),
        ("git_diff_unstaged", here),
        ("git_add", {**here, "files": ["new.txt"]}),
        ("git_diff_staged", {**here, "context_lines": 0}),
        ("git_reset", here),
        ("git_add", {**here, "files": ["readme.txt"]}),
        ("git_commit", {**here, "message": "second"}),
        ("git_log", here),
        ("git_show", {**here, "revision": "HEAD"}),
        ("git_show", {**here, "revision": "no-such-revision"}),
        ("git_create_branch", {**here, "branch_name": "side"}),
        ("git_branch", {**here, "branch_type": "local"}),
        ("git_checkout", {**here, "branch_name": "side"}),
        ("git_diff", {**here, "target": "HEAD~1"}),
        ("git_status", {"repo_path": "/"}),
    ]


def _fetch(world: World) -> Calls:
    return [
        ("fetch", {"url": f"{world.web}/page"}),
        ("fetch", {"url": f"{world.web}/page", "raw": True, "max_length": 20}),
        ("fetch", {"url": f"{world.web}/missing"}),
    ]


CALLS: dict[str, Callable[[World], Calls]] = {
    "everything": _everything,
    "filesystem": _filesystem,
    "memory": _memory,
    "time": _time,
    "git": _git,
    "fetch": _fetch,
}
"""By server, in the order in which they are made."""
