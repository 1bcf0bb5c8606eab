"""What fails after a charge is hidden; whoever holds the data can have it shown on their own screen.

The switch is the environment variable `DISCREET_CUSTODIAN_DEBUG=1` of the process that holds the data. It is read once,
when this module is first imported: no question, plan, policy or argument turns it on, and nothing that runs later does.
What is shown goes to standard error only, never into an exception, an answer, the ledger or a log.
"""

from __future__ import annotations

import os
import sys
import traceback
from contextlib import suppress
from types import TracebackType
from typing import final

__all__ = ["HiddenFailure"]

_IS_ON = os.environ.get("DISCREET_CUSTODIAN_DEBUG") == "1"
_BEFORE = (
    "DISCREET_CUSTODIAN_DEBUG: an answer that was paid failed. What follows MAY SHOW PRIVATE VALUES: do not pass it on."
)


@final
class HiddenFailure:
    """Stop every exception of a block: which one it was could depend on somebody's row. The custodian may see it."""

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        if _IS_ON:
            with suppress(Exception):  # Showing it must not become a failure that can be told from others.
                shown = traceback.format_exception(kind, error, trace)
                print(_BEFORE, "".join(shown), sep="\n", file=sys.stderr, flush=True)
        return True
