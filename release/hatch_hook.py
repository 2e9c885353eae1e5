"""Give the package its page: the README, with links that work where it is shown."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class PackagePage(MetadataHookInterface):
    """Sets `readme`, which `[project]` says is dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Put the page among the project's metadata."""
        root = Path(self.root)
        # The builder loads this file alone, so what stands beside it is not importable.
        made = runpy.run_path(str(root / "release" / "package_page.py"))
        address = made["repository"](metadata.get("urls", {}))
        readme = (root / "README.md").read_text(encoding="utf-8")
        text = made["package_page"](readme, address, metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
