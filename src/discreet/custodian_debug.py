"""What fails after a charge fails with one constant error; whoever holds the data can have it shown on their screen.

The switch is the environment variable `DISCREET_CUSTODIAN_DEBUG=1` of the process that holds the data. It is read once,
when this module is first imported: no question, plan, policy or argument turns it on, and nothing that runs later does.
What is shown goes to standard error only, never into an exception, an answer, the ledger or a log.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import final

from discreet.errors import AnswerFailed, DiscreetError

__all__ = ["ConstantFailure", "is_on", "keep_hidden", "show_hidden", "show_text"]

_IS_ON = os.environ.get("DISCREET_CUSTODIAN_DEBUG") == "1"
_kept: list[str] | None = None
# What ends a process, a generator or (by its module, since loading asyncio is slow) a task. Anything else is hidden,
# the panics of compiled libraries too, which are no `Exception`.
_ENDING = (KeyboardInterrupt, SystemExit, GeneratorExit)
_BEFORE = "DISCREET_CUSTODIAN_DEBUG: why this failed. What follows MAY SHOW PRIVATE VALUES: do not pass it on."


@final
class ConstantFailure:
    """Turn every exception of a block into `AnswerFailed`: which one it was could depend on somebody's row.

    This is the one place that swallows exceptions after a charge. What ends a process (an interrupt) goes through, and
    so do exceptions of the kinds that `but` names, for blocks that nobody paid for, where `failure` is another error.
    """

    def __init__(
        self, *, but: tuple[type[Exception], ...] = (), failure: Callable[[], DiscreetError] = AnswerFailed
    ) -> None:
        self._but, self._failure = but, failure

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or isinstance(error, (*_ENDING, *self._but)) or type(error).__module__ == "asyncio.exceptions":
            return
        show_hidden(error)
        del kind, error, trace  # Whoever prints the variables of this frame would print the error.
        failure = self._failure()
        try:
            raise failure
        finally:
            failure.__context__ = None  # `from None` would only keep it from being printed.


def show_hidden(error: BaseException) -> None:
    """Show the custodian an error that nobody else may see."""
    if _IS_ON or _kept is not None:
        with suppress(Exception):  # Showing it must not become a failure that can be told from others.
            text = "".join(traceback.format_exception(error))
            show_text(text) if _kept is None else _kept.append(text)


def show_text(text: str) -> None:
    """Show the custodian what another process found out."""
    if _IS_ON and text:
        with suppress(Exception):
            print(_BEFORE, text, sep="\n", file=sys.stderr, flush=True)


def is_on() -> bool:
    """Whether the custodian turned the switch on, here."""
    return _IS_ON


def keep_hidden(kept: list[str]) -> None:
    """Keep what would be shown, in a process without a screen: whoever started it has the switch, and shows it."""
    global _kept
    _kept = kept
