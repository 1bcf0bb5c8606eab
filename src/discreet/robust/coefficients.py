"""Coefficients of a private fit as they are released, and what they predict."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.exact import Number, exact
from discreet.mechanisms.accuracy import Accuracy, NoInterval
from discreet.mechanisms.budget import GaussianNoise
from discreet.mechanisms.release import Release
from discreet.privacy.events import Event
from discreet.privacy.relation import Relation
from discreet.robust.design import Design, Integers

__all__ = ["NO_INTERVAL", "check_rows", "coefficients_release", "labels", "predict"]

NO_INTERVAL = NoInterval(
    reason="how noise on the moments moves the coefficients depends on the data: no interval follows from public "
    "facts. A part of the budget pays for one: inference_share, inference=True, or `robust.regression`"
)


class Regression(Protocol):
    """What a fit says about itself."""

    @property
    def design(self) -> Design: ...

    @property
    def relation(self) -> Relation: ...

    @property
    def noise(self) -> GaussianNoise: ...

    @property
    def event(self) -> Event: ...


def coefficients_release(
    mechanism: Regression, fit: Sequence[float], accuracy: Accuracy = NO_INTERVAL
) -> Release[tuple[Fraction, ...]]:
    """Release a fit within the frame in the units of the data."""
    return Release(
        value=mechanism.design.original(fit),
        event=mechanism.event,
        relation=mechanism.relation,
        accuracy=accuracy,
        labels=labels(mechanism.design),
        delta=mechanism.noise.delta,
    )


def labels(design: Design) -> tuple[str, ...]:
    """Return the public names of the coefficients."""
    return "intercept", *(f"x{number}" for number in range(1, design.dimension))


def check_rows(rows: Integers, size: int | None) -> None:
    """Refuse data whose length is not the one that was declared public."""
    if size is not None and len(rows) != size:
        raise InvalidParameter("the data do not have the declared number of rows")


def predict(coefficients: Sequence[Number], features: Any) -> NDArray[np.float64]:
    """Return what released coefficients, the intercept first, predict for a table of features."""
    first, *slopes = (float(exact(value, name="a coefficient")) for value in coefficients)
    table = np.asarray(features.to_numpy() if hasattr(features, "to_numpy") else features, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != len(slopes):
        raise InvalidParameter("features must be a table with a column for each slope")
    found: NDArray[np.float64] = first + table @ np.array(slopes)
    return found
