"""Where a process of `discreet` begins, and ends with an exit code."""

from __future__ import annotations

from typing import NoReturn

__all__ = ["main"]


def main() -> NoReturn:
    """Run the command that the arguments of this process name, and end the process with its exit code."""
    import signal
    import sys

    from discreet.cli.command_runner import run

    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `discreet … | head` ends quietly, like other commands.
    sys.exit(run(sys.argv[1:]))
