"""Regression by many small fits and a deep point among them (TukeyEM), inside propose-test-release."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, final

import numpy as np

from discreet import noise
from discreet.adaptive.charging import charge
from discreet.adaptive.no_answer import NoAnswer
from discreet.adaptive.proposals import split_epsilon
from discreet.adaptive.propose_test_release import ProposeTestRelease
from discreet.errors import InvalidParameter
from discreet.exact import positive, positive_integer
from discreet.mechanisms.fields import read_relation, read_share, settle, small_delta
from discreet.mechanisms.release import Release
from discreet.privacy.events import Event
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation
from discreet.robust.coefficients import labels
from discreet.robust.depth import DeepPoint
from discreet.robust.design import Design, Integers, Records

__all__ = ["TukeyRegression", "block_fits"]

_STEPS = 1 << 20  # To a coefficient of one, within the frame.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TukeyRegression:
    """Divide the records into blocks at random, fit each by least squares, and release a point deep among the fits.

    Each record draws its block by itself, from fresh secret bits, so one record is in one block and changes one fit,
    whether it is added, removed or replaced. A block with too few records to fit counts with coefficients at the bound,
    every other such block at the other one, and against passing the test: a quarter of such blocks is too many.

    Guarantee   (epsilon, delta): `test_share` of epsilon for the test, the rest for the deep point, delta for each,
                of which only the larger counts. A refusal costs the same.
    Theorem     See `DeepPoint` and `ProposeTestRelease`. [AJRV23, DL09]
    Utility     noise follows how far fits of different blocks are apart, not the bounds. Needs some thousand records a
                coefficient and several hundred blocks; with fewer it declines.
    """

    design: Design
    relation: Relation
    epsilon: Fraction
    delta: Fraction
    blocks: int = 1000
    coefficient_bound: Fraction = Fraction(1024)  # of each coefficient, within the frame
    test_share: Fraction = Fraction(1, 2)

    def __post_init__(self) -> None:
        read_relation(self.relation)
        settle(
            self,
            epsilon=positive(self.epsilon, name="epsilon"),
            delta=small_delta(self.delta, population=None),
            blocks=positive_integer(self.blocks, name="blocks"),
            coefficient_bound=positive(self.coefficient_bound, name="coefficient_bound"),
            test_share=read_share(self.test_share, name="test_share"),
        )
        if self.blocks < 4:
            raise InvalidParameter("blocks must be at least 4: a deep point has a quarter of them on each side")
        _ = self.event

    @property
    def mechanism(self) -> ProposeTestRelease:
        """What is released of the fits: a deep point, if the test is passed."""
        testing, choosing = split_epsilon(self.epsilon, self.test_share)
        reach = int(self.coefficient_bound * _STEPS)
        point = DeepPoint(
            low=-reach,
            high=reach,
            dimension=self.design.dimension,
            count=self.blocks,
            depth=self.blocks // 4,
            epsilon=choosing,
            delta=self.delta,
            relation=self.relation,
        )

        def distance(fits: Integers) -> int:
            # One record makes one block fail at most, so this moves by one too, and it is still a lower bound.
            failed = int((np.abs(fits[:, 0]) > reach).sum())
            return min(point.distance(fits), max(self.blocks // 4 - failed, 0))

        return ProposeTestRelease(distance=distance, mechanism=point, epsilon=testing, delta=self.delta)

    @property
    def event(self) -> Event:
        return self.mechanism.event

    def release(
        self, records: Records, *, session: Payer | None = None
    ) -> Release[tuple[Fraction, ...]] | Release[NoAnswer]:
        """Fit, or decline to; the intercept comes first, in the units of the data."""
        charge(self, session, purpose="regression by many fits")
        rows = self.design.rows(records)
        blocks = noise.uniform(self.blocks, size=len(rows))
        reach = int(self.coefficient_bound * _STEPS)
        released = self.mechanism.release(block_fits(rows, np.asarray(blocks), self.blocks, reach))
        return released if isinstance(released.value, NoAnswer) else self._in_units(released)

    def _in_units(self, released: Release[Any]) -> Release[tuple[Fraction, ...]]:
        inside = [value / _STEPS for value in released.value]
        return replace(released, value=self.design.original(inside), labels=labels(self.design))


def block_fits(rows: Integers, blocks: Integers, count: int, reach: int) -> Integers:
    """Fit each block of rows (1, x, y) by itself, exactly; a fit in steps, clamped to the reach. They are private.

    Those of a block that cannot be fitted are one beyond the reach, which is how they are told.
    """
    size = rows.shape[1] - 1
    order = np.argsort(blocks, kind="stable")
    ends = np.searchsorted(blocks[order], np.arange(count + 1))
    moments = np.zeros((count, size, size + 1), dtype=np.int64)
    for i in range(size):
        for j in range(i, size + 1):
            # Differences of running sums are exact, even if the sums themselves wrap around.
            running = np.concatenate([[0], np.cumsum(rows[order, i] * rows[order, j])])
            moments[:, i, j] = running[ends[1:]] - running[ends[:-1]]
            if j < size:
                moments[:, j, i] = moments[:, i, j]
    fits = [_fit(block.tolist(), reach, failed=(reach + 1) * (-1) ** number) for number, block in enumerate(moments)]
    return np.array(fits, dtype=np.int64).reshape(count, size)


def _fit(moments: list[list[int]], reach: int, *, failed: int) -> list[int]:
    """Solve the normal equations exactly and round; where they have no single solution, the fit has failed."""
    from flint import fmpz_mat

    size = len(moments)
    try:
        solved = fmpz_mat([row[:size] for row in moments]).solve(fmpz_mat([row[size:] for row in moments]))
    except ZeroDivisionError:
        return [failed] * size
    found = (Fraction(int(solved[i, 0].p), int(solved[i, 0].q)) for i in range(size))
    return [min(max(round(value * _STEPS), -reach), reach) for value in found]
