"""Scopes: what a pattern lets in and keeps out (2)."""

from __future__ import annotations

from pathlib import Path

from attacks.attack import attack, must
from attacks.product import Product, wait_for
from attacks.world import Stranger, configured, tool

TOKEN = "t" * 32


@attack(2)
def longer_server(product: Product, folder: Path) -> None:
    """A pattern of one server lets in no tool of another with a longer name."""
    long_name = "drop_every_table_of_the_whole_production_database_at_once_please"
    admin = Stranger.made(folder, "internal-production-database-admin", [tool(long_name)])
    plain = Stranger.made(folder, "internal-production-database", [tool("read_rows")])
    tokens = [{"name": "ci", "env": "CI", "allow": ["internal-production-database__*"]}]
    config = configured(folder, admin, plain, serve={"tokens": tokens})
    with product.listening(config, env={"CI": TOKEN}) as gateway:
        gateway.until(admin.name)
        gateway.until(plain.name)
        said = gateway.call("tool_search", {"query": "drop every table of the database"}, TOKEN)
        must("drop_every" not in said, said)
        must(
            "read_rows" in gateway.call("tool_search", {"query": "read rows"}, TOKEN), "too narrow"
        )


@attack(2)
def like_named_servers(product: Product, folder: Path) -> None:
    """A pattern of `github` lets in nothing of `github_` and `github!`."""
    strangers = [
        Stranger.made(folder, name, [tool(f"open_issue_{n}", "Open an issue.")])
        for n, name in enumerate(("github", "github_", "github!"))
    ]
    tokens = [{"name": "ci", "env": "CI", "allow": ["github__*"]}]
    config = configured(folder, *strangers, serve={"tokens": tokens})
    with product.listening(config, env={"CI": TOKEN}) as gateway:
        for stranger in strangers:
            gateway.until(stranger.name)
        said = gateway.call("tool_search", {"query": "open an issue", "limit": 9}, TOKEN)
        must("open_issue_0" in said, said)
        must("open_issue_1" not in said and "open_issue_2" not in said, said)


@attack(2)
def other_letters(product: Product, folder: Path) -> None:
    """A denied name is denied in other case and in full-width letters."""
    wide = "".join(chr(ord(c) + 0xFEE0) for c in "delete") + "_repo"
    names = ["Delete_repo", "DELETE_ALL", wide, "read_repo"]
    github = Stranger.made(folder, "github", [tool(name, "Delete a repo.") for name in names])
    entry = {"github": github.entry(deny=["delete_*"])}
    with product.gateway(configured(folder, more=entry, fold="off")) as session:
        session.until("github")
        listed = [each["name"] for each in session.listed()]
        must(len(listed) == 1 and "read_repo" in listed[0], f"served: {listed}")
    tokens = [{"name": "ci", "env": "CI", "deny": ["github__delete_*"]}]
    config = configured(folder, github, serve={"tokens": tokens}, fold="off")
    (folder / "gateway.log").unlink()
    with product.listening(config, env={"CI": TOKEN}) as gateway:
        gateway.until("github")
        said = gateway.listed(TOKEN)
        must("read_repo" in said and "Delete_repo" not in said and "DELETE" not in said, said)


@attack(2)
def misspelt_pattern(product: Product, folder: Path) -> None:
    """A pattern that matches nothing is said at start."""
    github = Stranger.made(folder, "github", [tool("read_repo")])
    tokens = [{"name": "ci", "env": "CI", "deny": ["githbu__delete_*"]}]
    config = configured(folder, github, serve={"tokens": tokens})
    with product.listening(config, env={"CI": TOKEN}) as gateway:
        gateway.until("github")
        must(wait_for(lambda: "githbu__delete_*" in gateway.log(), 10), "nothing was said")
