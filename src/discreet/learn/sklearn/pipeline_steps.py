"""Which steps may stand before a private estimator: those that pay, and those that learn nothing from the rows.

What a step has learnt from all rows is in every row that it hands on. One person more or less then moves the rows of
everybody, and the noise of the estimator behind it was made for one. So a step is let through only if it is known to
turn each row into another by public facts alone. Whatever is not known is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
)

from discreet.learn.sklearn.row_function import RowFunction

__all__ = ["COMPOSED", "Paying", "all_pay", "learns_before_private", "moves_columns_before"]

COMPOSED = (Pipeline, FeatureUnion, ColumnTransformer)


class Paying:
    """What every estimator of ours is that may be charged to a session."""


def all_pay(step: Any) -> bool:
    """Tell whether a step, and every step within it, is charged to a session or learns nothing from values."""
    if isinstance(step, COMPOSED):
        return _picks_columns_by_names(step, has_session=True) and all(all_pay(part) for part in _parts(step))
    return (_is_private(step) and step.session is not None) or _learns_nothing(step, has_session=True)


def learns_before_private(step: Any, *, at_work: bool = False) -> bool:
    """Tell whether a plain step learns from the rows that a private one behind it is handed, both within this one.

    One that is at work around a private estimator holds it, though no step may show it: its last step counts as private
    then, for it may make one in its own fit.
    """
    parts = list(_parts(step)) if isinstance(step, COMPOSED) else []
    if isinstance(step, Pipeline):
        hidden = len(step.steps) - 1 if at_work else 0
        last = max((place for place, part in enumerate(parts) if _has_private(part)), default=hidden)
        if not all(_is_private_or_plain_rows(part) for part in parts[:last]):
            return True
    if isinstance(step, ColumnTransformer) and _has_private(step) and not _picks_columns_by_names(step):
        return True
    return any(learns_before_private(part) for part in parts)


def moves_columns_before(step: Any, at_work: Sequence[Any]) -> bool:
    """Tell whether, in a pipeline, a step before the one that is at work may change which column stands where."""
    if not isinstance(step, Pipeline):
        return False
    parts = list(_parts(step))
    # A step that is fitted as a copy is not found: then all of them count as standing before.
    here = next((place for place, part in enumerate(parts) if _contains(part, at_work)), len(parts))
    return not all(_keeps_columns(part) for part in parts[:here])


def _contains(step: Any, wanted: Sequence[Any]) -> bool:
    inside = isinstance(step, COMPOSED) and any(_contains(part, wanted) for part in _parts(step))
    return inside or (step is not None and any(step is one for one in wanted))


def _keeps_columns(step: Any) -> bool:
    if isinstance(step, Pipeline):
        return all(_keeps_columns(part) for part in _parts(step))
    one_to_one = isinstance(step, (OneToOneFeatureMixin, FunctionTransformer, SimpleImputer))
    return step is None or isinstance(step, str) or one_to_one


def _parts(step: Any) -> Iterator[Any]:
    """List the steps that are put together."""
    for name in ("steps", "transformer_list", "transformers"):
        yield from (part[1] for part in getattr(step, name, ()))
    yield getattr(step, "remainder", None)


def _has_private(step: Any) -> bool:
    """Tell whether a step is private, or has one that is: in a search, a vote or whatever else takes estimators."""
    if isinstance(step, COMPOSED):
        return any(_has_private(part) for part in _parts(step))
    inside = step.get_params().values() if isinstance(step, BaseEstimator) else ()
    return _is_private(step) or any(map(_is_private, inside))


def _is_private(step: Any) -> bool:
    """Tell whether a step is one of ours that pays; others may call something else a session."""
    return issubclass(type(step), Paying) and hasattr(step, "session")


def _is_private_or_plain_rows(step: Any) -> bool:
    if isinstance(step, COMPOSED):
        return _picks_columns_by_names(step) and all(_is_private_or_plain_rows(part) for part in _parts(step))
    return _is_private(step) or _learns_nothing(step)


def _picks_columns_by_names(step: Any, *, has_session: bool = False) -> bool:
    """Tell whether columns are picked by their names and places, and not by a function that looks at the table.

    A selector by kinds looks at the kinds of columns only; pandas decides those by the values, so with a session it is
    not taken either.
    """
    picks = [part[2] for part in getattr(step, "transformers", ())]
    return all(not callable(pick) or _is_public_selector(pick, has_session) for pick in picks)


def _is_public_selector(pick: Any, has_session: bool) -> bool:
    by_kind = getattr(pick, "dtype_include", None) is not None or getattr(pick, "dtype_exclude", None) is not None
    return type(pick) is make_column_selector and not (has_session and by_kind)


def _learns_nothing(step: Any, *, has_session: bool = False) -> bool:
    """Tell whether a step is known to turn each row into another by public facts alone."""
    if step is None or isinstance(step, str):
        return True
    known = _KNOWN.get(type(step))
    return known is not None and known(step, has_session)


def _has_declared_categories(encoder: Any, has_session: bool) -> bool:
    """Tell whether categories are said, so that none is found; with a session a value that is none must not fail."""
    said = not isinstance(encoder.categories, str)
    counted = encoder.min_frequency is not None or encoder.max_categories is not None
    total = encoder.handle_unknown in ("ignore", "use_encoded_value") and not getattr(encoder, "sparse_output", False)
    return said and not counted and (total or not has_session)


def _is_elementwise(step: Any, _: bool) -> bool:
    """Tell whether a function is none, or one of numpy's that works on each number by itself."""
    if not isinstance(step.func, np.ufunc):
        return step.func is None
    # One that knows objects only was made of a function of Python, which may remember what it has seen.
    return step.func.nin == 1 and not step.kw_args and step.func.types != ["O->O"]


def _fills_a_constant(step: Any, _: bool) -> bool:
    said = step.strategy == "constant" and step.fill_value is not None
    return said and step.keep_empty_features and not step.add_indicator


_KNOWN: dict[type, Callable[[Any, bool], bool]] = {
    Binarizer: lambda *_: True,
    Normalizer: lambda *_: True,
    PolynomialFeatures: lambda *_: True,  # Its fit looks at the number of columns only.
    RowFunction: lambda *_: True,  # It tries at the fit what it was declared as.
    FunctionTransformer: _is_elementwise,
    SimpleImputer: _fills_a_constant,
    OneHotEncoder: _has_declared_categories,
    OrdinalEncoder: _has_declared_categories,
}
