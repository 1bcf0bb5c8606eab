"""Show the statements of a docstring (Guarantee, Theorem, Utility) as a list on the pages of the reference."""

from __future__ import annotations

import re
from typing import Any

from griffe import Docstring, Extension, Object

_STATEMENT = re.compile(r"^(Guarantee|Theorem|Utility|Source|Cost) {2,}(?=\S)", re.MULTILINE)
_CONTINUED = re.compile(r"^ {8,}(?=\S)", re.MULTILINE)


def as_list(text: str) -> str:
    """Turn `Guarantee   what is promised` into an item of a list, with the lines that continue it."""
    if not _STATEMENT.search(text):
        return text
    return _STATEMENT.sub(r"- **\1.** ", _CONTINUED.sub("  ", text))


class Statements(Extension):
    """Rewrite docstrings before they are parsed."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite the docstring of one object."""
        if isinstance(obj.docstring, Docstring):
            obj.docstring.value = as_list(obj.docstring.value)
