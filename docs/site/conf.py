"""The documentation as a site: how Sphinx reads the pages, and how they are laid out.

The pages are read where they stand, so the same links work in the repository and on the site,
and a link that leads nowhere fails the build. What a page of the repository does not say is
its place in the navigation: that stands here, by need, and a page without a place fails the
build as well.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

HOME = "docs/index"

NAVIGATION: dict[str, list[str]] = {
    "Start": [
        "docs/guides/quickstart",
        "docs/guides/when-not-to-fold",
        "docs/guides/inspector",
        "docs/guides/settings-file",
    ],
    "I have an MCP client": ["docs/guides/gateway"],
    "I write agents": [
        "docs/guides/agents",
        "docs/guides/frameworks",
        "docs/guides/openapi",
        "docs/guides/native",
        "docs/guides/prefetch",
        "docs/guides/live-ab",
    ],
    "I run a local model": [
        "docs/guides/small-models",
        "docs/guides/proxy",
        "docs/guides/chat",
    ],
    "I run a platform": [
        "docs/guides/gateway-access",
        "docs/guides/trust",
        "docs/guides/gateway-operations",
        "docs/guides/gateway-changes",
        "docs/guides/replicas",
        "docs/guides/deployment",
        "docs/guides/store",
        "docs/guides/servers-once",
        "docs/guides/shared-catalog",
        "docs/guides/doctor",
        "docs/guides/memory",
        "docs/guides/enrich",
        "SECURITY",
    ],
    "Concepts": ["docs/concepts/*"],
    "Reference": ["docs/reference/*"],
    "How it is built": [
        "docs/architecture",
        "docs/model-card",
        "docs/corpora",
        "training/README",
        "CONTRIBUTING",
        "CHANGELOG",
    ],
}
"""The pages that the side bar lists, by the need that leads to them; `*` is all of a folder."""

BENEATH = {
    "docs/guides/gateway": ["docs/clients/tried", "docs/clients/*"],
    "docs/guides/frameworks": ["docs/adapters/*"],
    "docs/guides/proxy": ["docs/proxy/*"],
}
"""The pages that stand beneath another, which unfolds in the side bar."""

project = "toolfold"
html_title = "toolfold"
root_doc = HOME
extensions = ["myst_parser", "sphinx_copybutton"]
include_patterns = [
    "docs/*.md",
    "docs/*/*.md",
    "training/README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
]
exclude_patterns = [
    ".*",
    "bench",
    "browser",
    "build",
    "dist",
    "docs/site",
    "frameworks",
    "interop",
    "live",
    "release",
    "src",
    "tests",
]
source_suffix = {".md": "markdown"}
nitpicky = True

myst_heading_anchors = 6
suppress_warnings = ["myst.header"]  # a reference goes from a page's title to what it lists

html_theme = "furo"
html_theme_options = {"navigation_with_keys": True}
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
copybutton_exclude = ".linenos, .gp, .go"


def setup(app: Sphinx) -> None:
    """Add the navigation to the front page, and the site's first address."""
    app.connect("source-read", _with_navigation)
    # After the theme's own handler, which makes the side bar.
    app.connect("html-page-context", _for_every_reader, priority=900)
    app.connect("build-finished", _with_first_address)


def _with_navigation(app: Sphinx, docname: str, content: list[str]) -> None:
    """Append a page's part of the navigation to it, out of sight: the side bar shows it."""
    parts = list(NAVIGATION.items()) if docname == HOME else []
    parts += [("", BENEATH[docname])] if docname in BENEATH else []
    for need, pages in parts:
        options = "\n".join((":hidden:", ":glob:", *([f":caption: {need}"] if need else [])))
        paths = "\n".join(f"/{page}" for page in pages)
        content[0] += f"\n```{{toctree}}\n{options}\n\n{paths}\n```\n"


def _for_every_reader(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: object
) -> None:
    """Give headings of the side bar their level, and the keyboard a hold of what is too wide."""
    bar, body = context.get("furo_navigation_tree", ""), context.get("body", "")
    context["furo_navigation_tree"] = bar.replace('role="heading"', 'role="heading" aria-level="2"')
    table, code = '<div class="table-wrapper', '<div class="highlight"><pre>'
    body = body.replace(table, table.replace(" class", ' tabindex="0" class'))
    context["body"] = body.replace(code, code.replace("<pre>", '<pre tabindex="0">'))


def _with_first_address(app: Sphinx, error: Exception | None) -> None:
    """Lead from the site's own address to the front page, which stands where its file does."""
    if error is None and app.builder.format == "html":
        home = f"{HOME}.html"
        text = f'<!doctype html><meta charset="utf-8"><title>{project}</title>'
        text += f'<meta http-equiv="refresh" content="0; url={home}"><a href="{home}">{project}</a>'
        (Path(app.outdir) / "index.html").write_text(text + "\n", encoding="utf-8")
