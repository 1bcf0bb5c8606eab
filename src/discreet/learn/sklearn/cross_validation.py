"""What of scikit-learn may fit around a private estimator: steps that pay, and nothing that looks for free.

Cross-validation keeps exact scores; calibration, stacking and their like learn from private rows without paying; a
plain scaler in a pipeline tells exact means, and one row then moves all others. So on the data of a session whoever is
not known is refused. Without a session nothing is charged and scores are the caller's own, but a reported epsilon must
still be true: a plain step that is fitted on the rows before a private one is refused as well.

scikit-learn does not tell a step which pipeline it is in, and what comes out of a plain scaler is an array like any
other. So what is at work is read off the stack: objects by their type, functions of scikit-learn and joblib by the
module they are in, and a search of ours by the very function through which it fits.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, TypeVar

from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    StackingClassifier,
    StackingRegressor,
)
from sklearn.linear_model import RANSACRegressor

from discreet.errors import Refused
from discreet.learn.sklearn.pipeline_steps import COMPOSED, all_pay, learns_before_private, moves_columns_before

__all__ = ["answered_for", "refuse_moved_columns", "refuse_plain_steps", "refuse_unpaid_looks"]

_ALLOWED = (
    "sklearn.base",
    "sklearn.pipeline",
    "sklearn.compose._column_transformer",
    "sklearn.utils",
    "sklearn.callback",
)
_LEARNING = (TransformedTargetRegressor, StackingClassifier, StackingRegressor, RANSACRegressor)
_FILLING = "sklearn.impute."  # Its imputers begin with plain means, whichever estimator they go on with.
_DRAWING = (BaggingClassifier, BaggingRegressor, AdaBoostRegressor)
_WORKERS = "joblib."
T = TypeVar("T")


def answered_for(work: Callable[[], T]) -> T:
    """Let a search quote or fit its candidates: its own charge is checked by itself, with all that stands above it."""
    return work()


def refuse_unpaid_looks() -> None:
    """With a session, raise if something of scikit-learn is at work above us whose looks at the rows nobody pays for.

    A refusal in `score` would be caught in model selection and become a missing number, and scorers that call `predict`
    would not even see it; so the fit itself is refused, and where every fit fails, model selection says so. A private
    search above us answers for what stands above itself. A worker of joblib does not show who has sent it.
    """
    above = list(_above())
    hidden = bool(above) and above[-1][0].startswith(_WORKERS)
    if hidden or not all(name.startswith((*_ALLOWED, _WORKERS)) or _is_composed(owner) for name, owner in above):
        raise Refused(
            "cross-validation and searches of scikit-learn are refused on the data of a session, and so is what else "
            "looks at rows around a fit: calibration, stacking, bagging, selection of features, workers of n_jobs",
            reason="their scores are exact facts about private rows, and every fold would be charged anew",
            way_out="choose with discreet.learn.sklearn.PrivateSearch, whose whole price is charged once",
        )
    if not all(all_pay(owner) for _, owner in above if _is_composed(owner)):
        raise Refused(
            "a step of this pipeline learns from the rows, and no session is charged for it",
            reason="what it keeps are exact facts about private rows, and one row would move all others after it",
            way_out=_WAY_OUT.format("all with the same session; "),
        )


def refuse_plain_steps() -> None:
    """Without a session, raise if our rows were made by a step that learnt from all of them and is not private."""
    for name, owner in _above():
        if issubclass(type(owner), _DRAWING) and getattr(owner, "bootstrap", True):
            raise Refused(
                "bagging and boosting hand over some rows several times",
                reason="whoever is drawn three times loses three times the epsilon that is reported here",
                way_out="use bagging with bootstrap=False, which draws every row once at most",
            )
        learns = name.startswith(_FILLING) or issubclass(type(owner), _LEARNING)
        if learns or (_is_composed(owner) and learns_before_private(owner, at_work=True)):
            raise Refused(
                "a step before this estimator is fitted on the rows, and is not private",
                reason="one row would move all others after it, so the epsilon that is reported here would not hold",
                way_out=_WAY_OUT.format(""),
            )


def refuse_moved_columns(estimator: Any) -> None:
    """Raise if a pipeline makes or moves columns before an estimator whose bounds are told by place."""
    owners = [owner for _, owner in _above() if _is_composed(owner)]
    if any(moves_columns_before(owner, [estimator, *owners]) for owner in owners):
        raise Refused(
            "bounds by place stand behind a step that makes or moves columns",
            reason="pairs would clamp other columns than those that they were written for, and nobody would notice",
            way_out='name the columns, bounds={"age": (0, 120), …}, and say .set_output(transform="pandas") on the '
            "pipeline so that they keep their names (ColumnTransformer puts that of a step before them unless "
            "verbose_feature_names_out=False); or give one pair for all columns",
        )


_WAY_OUT = (
    "use scalers and estimators of discreet.learn.sklearn, {}encoders with declared categories "
    '(OneHotEncoder(categories=[…], handle_unknown="ignore", sparse_output=False)), Normalizer, Binarizer, '
    "PolynomialFeatures, and RowFunction for a function of single rows"
)


def _is_composed(owner: Any) -> bool:
    return issubclass(type(owner), COMPOSED)


def _above() -> Iterator[tuple[str, Any]]:
    """List what of scikit-learn or made like it is at work above us: its module, and the object if there is one."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code is answered_for.__code__:
            return
        name = frame.f_globals.get("__name__", "")
        owner = frame.f_locals.get("self")
        if name.startswith(("sklearn.", _WORKERS)) or _is_composed(owner):
            yield name, owner
        frame = frame.f_back
