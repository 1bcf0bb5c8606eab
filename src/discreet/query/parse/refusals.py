"""Say where a query is refused: the line, the column, and a caret under the place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, cast, final

from discreet.errors import Refused

if TYPE_CHECKING:
    from sqlglot import exp
    from sqlglot.tokenizer_core import Token

__all__ = ["Place", "Script"]

Place: TypeAlias = "exp.Expr | Token | int | None"
_WIDTH = 100  # characters of a line that are shown
_BEFORE = 60  # of them, at most, before the caret


@final
@dataclass(frozen=True, slots=True)
class Script:
    """The text of a query. It is shown to whoever wrote it and goes nowhere else."""

    text: str

    def refuse(self, place: Place, problem: str, *, reason: str, way_out: str) -> Refused:
        """Return a refusal that points at a place."""
        start = min(max(self.start_of(place), 0), len(self.text))
        before = self.text[:start]
        line = before.count("\n") + 1
        column = start - (before.rfind("\n") + 1) + 1
        excerpt, caret = self._excerpt(line, column)
        return Refused(problem, reason=reason, way_out=way_out, line=line, column=column, excerpt=excerpt, caret=caret)

    def point(self, refused: Refused, place: Place) -> Refused:
        """Add a place to a refusal that has none."""
        if refused.line is not None:
            return refused
        return self.refuse(place, refused.problem, reason=refused.reason, way_out=refused.way_out)

    def _excerpt(self, line: int, column: int) -> tuple[str, int]:
        text = "".join(letter if letter.isprintable() else " " for letter in self.text.split("\n")[line - 1])
        cut = max(0, column - 1 - _BEFORE) if len(text) > _WIDTH else 0
        shown = text[cut : cut + _WIDTH]
        return ("…" + shown, column - cut) if cut else (shown, column - 1)

    def start_of(self, place: Place) -> int:
        """Return where a place begins, in characters; the start of the text if nothing is known."""
        if place is None or isinstance(place, int):
            return place or 0
        start = getattr(place, "start", None)  # Tokens have one; nodes say it in other ways.
        return start if isinstance(start, int) else _start_of_node(cast("exp.Expr", place))


def _start_of_node(node: exp.Expr) -> int:
    """Return the first position that the parser noted in a node, or else in what is around it."""
    current: exp.Expr | None = node
    while current is not None:
        starts = [part.meta["start"] for part in current.walk() if "start" in part.meta]
        if starts:
            return int(current.meta.get("start", min(starts)))
        current = current.parent
    return 0
