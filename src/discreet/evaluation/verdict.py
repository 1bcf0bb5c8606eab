"""A verdict: one sentence, and whether it is good news."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, final

__all__ = ["About", "Kind", "Verdict"]

Kind: TypeAlias = Literal["good", "look", "bad"]
About: TypeAlias = Literal["privacy", "use"]
_MARKS: dict[Kind, str] = {"good": "✓", "look": "!", "bad": "✗"}
_WORDS: dict[Kind, str] = {"good": "Good", "look": "Note", "bad": "Weak"}


@final
@dataclass(frozen=True, slots=True)
class Verdict:
    """One sentence of the judgement."""

    kind: Kind
    about: About
    text: str

    @property
    def mark(self) -> str:
        """A sign for the terminal."""
        return _MARKS[self.kind]

    @property
    def word(self) -> str:
        """A word for the page: no colour says it alone."""
        return "Stop" if self.kind == "bad" and self.about == "privacy" else _WORDS[self.kind]
