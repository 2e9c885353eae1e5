"""The command line: one module a command."""

from toolfold.cli.main import main

__all__ = ["main"]
