"""What transformers share: rows seen through public bounds, and results that declare their own."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from discreet.learn.sklearn.base import PrivateEstimator
from discreet.learn.sklearn.validation import floats, split

__all__ = ["PrivateTransformer"]

Floats: TypeAlias = NDArray[np.float64]


class PrivateTransformer(PrivateEstimator):
    """A private estimator that turns rows into rows, each by itself."""

    keeps_rows_alone = True

    def _moved(self, X: Any) -> Floats:
        """Return rows clamped and moved to [-1, 1]; with a session nothing about the values can end in an error."""
        if self.session is None:
            return self._seen(X)
        check_is_fitted(self)
        validate_data(self, X, "no_validation", skip_check_array=True, reset=False)  # Names and number of columns.
        values = np.stack([floats(column) for column in split(X)], axis=1)
        return np.nan_to_num(self.frame_.scaled(values), nan=0.0)  # What is missing counts as the middle.

    def _middle_and_half(self) -> tuple[Floats, Floats]:
        """Return the middle of the bounds of each column, and half their distance."""
        low, high = self.frame_.limits.T
        return (low + high) / 2, (high - low) / 2
