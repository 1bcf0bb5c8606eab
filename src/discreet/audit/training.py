"""Audit private training (DP-SGD) by canaries: from every step of two runs, or from a single run with many canaries.

A canary is an example whose gradient is known, such as a coordinate that nobody else uses. Its score is high if the
canary was in. White box: the product of its gradient with the noisy sum of a step, or with all updates together. Black
box: how much the loss of the canary fell.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import final

from discreet.audit.canaries import errors_of, mu_from_errors
from discreet.audit.one_run import Guesses, epsilon_from_guesses, guess, mu_from_guesses
from discreet.errors import InvalidParameter
from discreet.exact import Number, exact, up
from discreet.privacy import Event, Gaussian, PoissonSampled, Relation, Repeated, epsilon, epsilon_bounds, gdp_mu

__all__ = ["TrainingAudit", "audit_one_run", "audit_steps"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingAudit:
    """What canaries show of a training run. It can refute a claim; it can never prove one."""

    method: str
    scores: int
    mu: float  # of Gaussian privacy: of one step, or of the whole run; at least this much, but for `error`
    mu_claimed: float  # infinity if the claim has none
    epsilon: float  # at delta, of the whole run, at least; by a Gaussian curve if `gaussian`
    epsilon_claimed: float
    delta: float
    gaussian: bool  # whether `epsilon` holds only if the true curve is Gaussian; `refuted` never needs that
    error: float  # the chance with which this refutes a claim that holds

    @property
    def refuted(self) -> bool:
        """Whether the claim is wrong: it says less than was shown, and what it says was tested as it stands."""
        return self.mu > self.mu_claimed or (not self.gaussian and self.epsilon > self.epsilon_claimed)

    def __str__(self) -> str:
        verdict = "REFUTED" if self.refuted else "not refuted"
        shown = f"ε ≥ {self.epsilon:.3g} shown, ε = {self.epsilon_claimed:.3g} claimed, at δ = {self.delta:.2g}"
        sure = f"a claim that holds is refuted with probability {self.error:.0e} at most"
        return f"{verdict}: {shown}\n  {self.method}, {self.scores:,} scores; {sure}"

    def to_json(self) -> str:
        """Write everything as one JSON object; what is not claimed is null."""
        fields = {name: None if value == math.inf else value for name, value in asdict(self).items()}
        return json.dumps({**fields, "refuted": self.refuted}, ensure_ascii=False)


def audit_steps(
    without: Sequence[float],
    with_it: Sequence[float],
    *,
    step: Gaussian,
    steps: int,
    sampling_rate: Number = 1,
    delta: Number,
    error: float = 1e-3,
) -> TrainingAudit:
    """Audit the noise of single steps: scores of a canary in every step of a run without it, and of a run with it.

    `step` is what one step claims to spend on whoever is in it. The canary is in every step of its run, also where
    people are sampled: so the scores show the noise alone. The µ that they show goes through the accountant with the
    sampling and the number of steps of the whole run.

    Theorem     A test with false alarms a and misses b refutes every µ below Φ⁻¹(1 - a) - Φ⁻¹(b), which holds for both
                limits at once with probability 1 - error. [NHSB23]
    """
    rate = exact(sampling_rate, name="sampling_rate")
    claimed = epsilon(_run(step, rate, steps), delta, relation=Relation.ADD_REMOVE)
    mu = mu_from_errors(errors_of(without, with_it), error=error)
    return TrainingAudit(
        method="every step of two runs",
        scores=len(without) + len(with_it),
        mu=mu,
        mu_claimed=gdp_mu(step),
        epsilon=_through_accountant(mu, rate, steps, delta),
        epsilon_claimed=claimed,
        delta=float(exact(delta, name="delta")),
        gaussian=True,
        error=error,
    )


def audit_one_run(
    scores: Sequence[float],
    included: Sequence[bool],
    *,
    claim: Event,
    high: int,
    low: int,
    delta: Number,
    error: float = 1e-3,
) -> TrainingAudit:
    """Audit a single run with many canaries, each in or out by a fair coin.

    The `high` best scores are guessed in and the `low` worst out. Both tests, of (ε, δ) [SNJ23] and of a Gaussian
    curve [MMC24], get half of the error. If the claim has a µ, the second one tests the claim itself.
    """
    guesses = guess(scores, included, high=high, low=low)
    claimed = epsilon(claim, delta, relation=Relation.ADD_REMOVE)
    return TrainingAudit(
        method=f"one run, {guesses.right:,} of {guesses.made:,} guesses right",
        scores=guesses.canaries,
        mu=mu_from_guesses(guesses, error=error / 2),
        mu_claimed=gdp_mu(claim, relation=Relation.ADD_REMOVE),
        epsilon=_shown(guesses, delta, error / 2),
        epsilon_claimed=claimed,
        delta=float(exact(delta, name="delta")),
        gaussian=False,
        error=error,
    )


def _shown(guesses: Guesses, delta: Number, error: float) -> float:
    # A larger delta only shows less.
    return epsilon_from_guesses(guesses, delta=up(exact(delta, name="delta")), error=error)


def _through_accountant(mu: float, rate: Fraction, steps: int, delta: Number) -> float:
    """Return what steps of this µ spend, rounded down."""
    if mu == 0:
        return 0.0
    step = Gaussian(variance=1, squared_sensitivity=Fraction(mu) ** 2)
    return epsilon_bounds(_run(step, rate, steps), delta, relation=Relation.ADD_REMOVE)[0]


def _run(step: Gaussian, rate: Fraction, steps: int) -> Event:
    if steps < 1 or not 0 < rate <= 1:
        raise InvalidParameter("steps must be 1 or more, and the sampling rate above 0 and at most 1")
    return Repeated(step if rate == 1 else PoissonSampled(step, rate), steps)
