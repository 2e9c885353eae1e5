"""One process that opens the largest catalog: `python -m bench.scale CACHE_FOLDER`."""

from __future__ import annotations

import json
import resource
import sys
import time
from statistics import median

from bench import data
from toolfold import Catalog, Settings
from toolfold.bridge import Bridge
from toolfold.evaluation.measure import percentile


def main() -> None:
    """Read the catalog, build or load its index, search, and print what each took."""
    tools = list(data.catalog("scale-46936").tools)
    started = time.perf_counter()
    catalog = Catalog.read(tools)
    read = time.perf_counter()
    count = len(tools)
    del tools
    bridge = Bridge.over(catalog, Settings(enabled="on", cache_dir=sys.argv[1]))
    bridge.search("open a pull request", 5)
    built = time.perf_counter()
    row: dict[str, object] = {
        "tools": count,
        "read s": round(read - started, 2),
        "index s": round(built - read, 2),
    }
    for kind in ("short", "long"):
        times: list[float] = []
        for query in data.queries(kind):
            began = time.perf_counter()
            bridge.search(query, 5)
            times.append((time.perf_counter() - began) * 1e3)
        row[f"{kind} p50 ms"] = round(median(times), 3)
        row[f"{kind} p95 ms"] = round(percentile(times, 95), 3)
    row["peak MB"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    json.dump(row, sys.stdout)


if __name__ == "__main__":
    main()
