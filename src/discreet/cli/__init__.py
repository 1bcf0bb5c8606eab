"""The command line: `discreet --help`. Thin: each command reads its words, calls one function, and shows what came."""

from discreet.cli.entry import main

__all__ = ["main"]
