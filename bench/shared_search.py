"""One process that searches a shared catalog and holds none of it.

    python -m bench.shared_search ADDRESS TENANT < requests.json

It prints what it found, how long each search took, and what the process holds in memory.
"""

from __future__ import annotations

import json
import sys

from bench.processes import resident_mb
from bench.timed import timed
from toolfold.shared import SharedCatalog


def main() -> None:
    """Search for each of a list of requests."""
    address, tenant = sys.argv[1:]
    queries: list[str] = json.load(sys.stdin)
    with SharedCatalog(address, tenant=tenant) as catalog:
        hits, times = timed(lambda q: [h.tool.name for h in catalog.search(q, 5)], queries)
        memory = resident_mb()
    json.dump({"hits": hits, "times": times, "memory": memory}, sys.stdout)


if __name__ == "__main__":
    main()
