"""Discrete Gaussian noise on whole numbers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import final

from discreet import noise
from discreet.exact import Number, integer, positive, positive_integer
from discreet.mechanisms.parameters import check_noise_variance, read_relation, settle
from discreet.mechanisms.release import NoiseAccuracy, Release
from discreet.noise.laws import DiscreteGaussianLaw
from discreet.privacy import events, outcomes
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.relation import Relation

__all__ = ["DiscreteGaussian"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteGaussian:
    """Add discrete Gaussian noise to a whole number.

    Guarantee   rho = sensitivity^2 / (2 variance) of zero-concentrated privacy, or its own loss distribution; *not*
                the analytic formula of the continuous law, of which it falls short.
    Theorem     Its Renyi divergences are at most those of the continuous law, at every order. [CKS20]
    Utility     standard deviation at most sigma.
    """

    sensitivity: int  # in grid steps, for one unit under the relation
    variance: Fraction  # the parameter sigma^2, in squared grid steps
    relation: Relation

    def __post_init__(self) -> None:
        settle(
            self,
            variance=check_noise_variance(positive(self.variance, name="variance")),
            sensitivity=positive_integer(self.sensitivity, name="sensitivity"),
        )
        read_relation(self.relation)

    @classmethod
    def for_rho(cls, rho: Number, *, sensitivity: int, relation: Relation) -> DiscreteGaussian:
        """Choose the variance that spends rho exactly."""
        size = positive_integer(sensitivity, name="sensitivity")
        variance = Fraction(size**2) / (2 * positive(rho, name="rho"))
        return cls(sensitivity=size, variance=variance, relation=relation)

    @property
    def event(self) -> events.DiscreteGaussian:
        return events.DiscreteGaussian(variance=self.variance, sensitivity=self.sensitivity)

    def release(self, answer: int) -> Release[int]:
        """Add noise to a private answer."""
        return Release(
            value=integer(answer, name="answer") + noise.discrete_gaussian(variance=self.variance),
            event=self.event,
            relation=self.relation,
            accuracy=NoiseAccuracy(noise=DiscreteGaussianLaw(self.variance), step=Fraction(1)),
        )

    def distribution(self, answer: int) -> Outcomes:
        return outcomes.from_law(DiscreteGaussianLaw(self.variance), answer)
