"""Cross-validation on the data of a session is refused: it keeps exact scores, and every fold would be charged."""

from __future__ import annotations

import sys
from types import FrameType

from discreet.errors import Refused

__all__ = ["refuse_cross_validation"]

_HOME = "sklearn.model_selection"


def refuse_cross_validation() -> None:
    """Raise if scikit-learn's model selection is at work above us.

    A refusal in `score` would be caught there and become a missing number, and scorers that call `predict` would not
    even see it; so the fit itself is refused, and where every fit fails, model selection says so.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith(_HOME):
            raise Refused(
                "cross-validation and searches of scikit-learn are refused on the data of a session",
                reason="their scores are exact facts about private rows, and every fold would be charged anew",
                way_out="choose with discreet.learn.sklearn.PrivateSearch, whose whole price is charged once",
            )
        frame = frame.f_back
