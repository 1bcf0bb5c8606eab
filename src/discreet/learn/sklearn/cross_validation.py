"""What of scikit-learn may fit on the data of a session: pipelines of steps that pay, and nothing that looks for free.

Cross-validation keeps exact scores; calibration, stacking and their like learn from private rows without paying; a
plain scaler in a pipeline tells exact means, and one row then moves all others. So whoever is not known is refused.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

from sklearn.utils import get_tags

from discreet.errors import Refused

__all__ = ["refuse_cross_validation"]

_ALLOWED = (
    "sklearn.base",
    "sklearn.pipeline",
    "sklearn.compose._column_transformer",
    "sklearn.utils",
    "sklearn.callback",
)
_COMPOSED = ("steps", "transformer_list", "transformers")
_BY_SHAPE = "PolynomialFeatures"  # It has a fit, which looks at the number of columns only.
_SEARCH = "discreet.learn.sklearn.search"
_INNER = ("_plan", "_fitted")  # Where a search quotes and fits its candidates; its own charge is checked by itself.


def refuse_cross_validation() -> None:
    """Raise if something of scikit-learn is at work above us whose looks at the rows nobody pays for.

    A refusal in `score` would be caught in model selection and become a missing number, and scorers that call `predict`
    would not even see it; so the fit itself is refused, and where every fit fails, model selection says so. A private
    search above us answers for what stands above itself.
    """
    above = list(_above())
    if not all(name.startswith(_ALLOWED) for name, _ in above):
        raise Refused(
            "cross-validation and searches of scikit-learn are refused on the data of a session, and so is what else "
            "looks at rows around a fit: calibration, stacking, bagging, selection of features",
            reason="their scores are exact facts about private rows, and every fold would be charged anew",
            way_out="choose with discreet.learn.sklearn.PrivateSearch, whose whole price is charged once",
        )
    if not all(_pays(owner) for _, owner in above if any(hasattr(owner, part) for part in _COMPOSED)):
        raise Refused(
            "a step of this pipeline learns from the rows, and no session is charged for it",
            reason="what it keeps are exact facts about private rows, and one row would move all others after it",
            way_out="use scalers and estimators of discreet.learn.sklearn, all with the same session",
        )


def _above() -> Iterator[tuple[str, Any]]:
    """List what of scikit-learn is at work above us: the name of its file, and the object if there is one."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name == _SEARCH and frame.f_code.co_name in _INNER:
            return
        if name.startswith("sklearn."):
            yield name, frame.f_locals.get("self")
        frame = frame.f_back


def _pays(step: Any) -> bool:
    """Tell whether a step, or every step within it, is charged to a session or learns nothing from values."""
    if step is None or isinstance(step, str):
        return True
    for part in _COMPOSED:
        if hasattr(step, part):
            return all(_pays(within[1]) for within in getattr(step, part))
    if getattr(step, "session", None) is not None or type(step).__name__ == _BY_SHAPE:
        return True
    return not get_tags(step).requires_fit
