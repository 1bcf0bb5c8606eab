"""A robust location of a bounded column, found by questions with noise."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from discreet.adaptive.charging import charge
from discreet.errors import InvalidParameter
from discreet.exact import exact_or_none, positive_integer
from discreet.mechanisms.budget import Noise
from discreet.mechanisms.column import Data
from discreet.mechanisms.fields import read_relation, settle
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.release import Release
from discreet.privacy.events import Event
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation
from discreet.robust.accuracy import NOT_ASKED, accuracy_of
from discreet.robust.dialogue import AdaptiveQueries
from discreet.robust.location_questions import Place
from discreet.robust.psi import Floats, Psi
from discreet.robust.schedules import LocationSchedule

__all__ = ["PrivateLocation"]

_FINEST = 1 << 30  # Steps; sums of 2^22 rows of them stay exact in blocks.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateLocation:
    """Release an M-estimate of location: the root of the sum of psi((x - t) / scale).

    Guarantee   what the noise spends, in the shares of the schedule.
    Theorem     Every question is a sum of whole numbers that one row makes by itself, between public limits; later
                ones depend on the data through noisy answers only. [ABL23, DRS22]
    Utility     for many rows from one law the estimate is normal around its location with the variance of the
                M-estimate and of the noise together; the interval is made of both, and paid for.
    """

    psi: Psi
    grid: Grid
    relation: Relation
    noise: Noise
    schedule: LocationSchedule
    scale: Fraction | None = None  # of the residuals, public; asked for without one
    resolution: int = 1 << 20  # steps up to the largest psi

    def __post_init__(self) -> None:
        read_relation(self.relation)
        settle(
            self,
            scale=exact_or_none(self.scale, name="scale"),
            resolution=positive_integer(self.resolution, name="resolution"),
        )
        if self.scale is not None and self.scale <= 0:
            raise InvalidParameter("scale must be above 0")
        if self.resolution > _FINEST:
            raise InvalidParameter("resolution must be at most 2^30")
        _ = self.dialogue  # Refuses noise that no sampler takes, while nothing is spent yet.

    @property
    def dialogue(self) -> AdaptiveQueries[Place]:
        """The questions, with the noise that pays for each."""
        questions = self.schedule.questions(psi=self.psi, grid=self.grid, scale=self.scale, resolution=self.resolution)
        start = self.schedule.begin(grid=self.grid, scale=self.scale)
        return AdaptiveQueries(questions=questions, start=start, relation=self.relation, noise=self.noise)

    @property
    def event(self) -> Event:
        return self.dialogue.event

    def release(self, data: Data, *, session: Payer | None = None) -> Release[Fraction]:
        """Charge, then ask everything."""
        charge(self, session, purpose="robust location")
        dialogue, known = self.dialogue, self.schedule.inference
        place = dialogue.run(self.values(data))
        return Release(
            value=Fraction(place.centre),
            event=dialogue.event,
            relation=self.relation,
            accuracy=accuracy_of(self.schedule.standard_error(place)) if known else NOT_ASKED,
            limits=(self.grid.low, self.grid.high),
        )

    def distribution(self, data: Data) -> Outcomes:
        """List the law of all noisy answers, from which everything released follows."""
        return self.dialogue.distribution(self.values(data))

    def values(self, data: Data) -> Floats:
        """Return the rows, clamped and on the grid. This is private."""
        return self.grid.indices(data).astype(np.float64) * float(self.grid.step)
