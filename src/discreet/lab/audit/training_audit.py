"""Audit private training (DP-SGD) by canaries: from every step of two runs, or from a single run with many canaries.

A canary is an example whose gradient is known, such as a coordinate that nobody else uses. Its score is high if the
canary was in. White box: the product of its gradient with the noisy sum of a step, or with all updates together. Black
box: how much the loss of the canary fell.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from math import log
from typing import final

import numpy as np

from discreet.errors import InvalidParameter
from discreet.exact import Number, exact, up
from discreet.formatting import record
from discreet.lab.audit.confidence_limits import at_most
from discreet.pages.progress import working
from discreet.privacy import Event, Gaussian, PoissonSampled, Relation, Repeated, epsilon, epsilon_bounds, gdp_mu

__all__ = [
    "Errors",
    "Guesses",
    "TrainingAudit",
    "audit_one_run",
    "audit_steps",
    "epsilon_from_errors",
    "epsilon_from_guesses",
    "epsilon_from_guesses_gdp",
    "errors_of",
    "guess",
    "guesses_p_value",
    "mu_from_errors",
    "mu_from_guesses",
]


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

    __repr__ = __str__

    def to_json(self) -> str:
        """Write everything as one JSON object; what is not claimed is null."""
        fields = {name: None if value == math.inf else value for name, value in asdict(self).items()}
        return json.dumps({**fields, "refuted": self.refuted}, ensure_ascii=False)


@working("auditing", terminal=False)
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

    Args:
        without: The scores of all steps of the run without the canary.
        with_it: The scores of all steps of the run with it.
        step: What one step claims to spend.
        steps: How many steps the whole run has.
        sampling_rate: The probability with which a record is in a step.
        delta: The delta at which epsilons are compared.
        error: The chance at most with which a claim that holds is refuted.

    Returns:
        What was shown beside what was claimed, with `refuted`; it prints as a report.

    Raises:
        InvalidParameter: If there are fewer than four scores of a kind, or a score is no number.

    Examples:
        >>> told = dp.audit.audit_steps(
        ...     [0.0] * 400, [1.0] * 400, step=dp.privacy.Gaussian(1), steps=50, sampling_rate="0.1", delta="1e-5"
        ... )
        >>> told.refuted
        True
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


@working("auditing", terminal=False)
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

    Args:
        scores: One score for each canary; a higher one speaks for "in".
        included: Whether each canary was in.
        claim: What the run claims to spend.
        high: How many of the best scores are guessed in; to be chosen before scores are seen.
        low: How many of the worst are guessed out; to be chosen before scores are seen.
        delta: The delta at which epsilons are compared.
        error: The chance at most with which a claim that holds is refuted.

    Returns:
        What was shown beside what was claimed, with `refuted`; it prints as a report.

    Raises:
        InvalidParameter: If there is not one score for each canary, or a score is no number.

    Examples:
        >>> told = dp.audit.audit_one_run(
        ...     range(1000), [False] * 500 + [True] * 500, claim=dp.privacy.PureDP(1), high=100, low=100, delta=1e-5
        ... )
        >>> told.refuted
        True
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


# --- canaries: Audits of training that see scores of canaries: many runs, and every step of two runs. ---


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """How often a test that was fixed beforehand was wrong: false alarms without the canary, misses with it.

    Args:
        false_alarms: How often the test said yes without the canary.
        misses: How often it said no with the canary.
        without: The runs or steps without the canary.
        with_it: The runs or steps with it.

    Examples:
        >>> errors = dp.audit.Errors(false_alarms=5, misses=10, without=1000, with_it=1000)
        >>> round(dp.audit.epsilon_from_errors(errors, delta=1e-5, error=0.05), 2)
        4.44
    """

    false_alarms: int
    misses: int
    without: int  # runs or steps without the canary
    with_it: int

    __repr__ = record

    def limits(self, error: float) -> tuple[float, float]:
        """Return what both rates are at most, together wrong with probability `error` at most."""
        return at_most(self.false_alarms, self.without, error / 2), at_most(self.misses, self.with_it, error / 2)


def errors_of(without: Sequence[float], with_it: Sequence[float]) -> Errors:
    """Choose the threshold on one half of the scores, and count errors on the other.

    Args:
        without: Scores without the canary, at least four.
        with_it: Scores with it, at least four; higher ones if it can be told.

    Returns:
        The errors on the half that did not choose the threshold.

    Raises:
        InvalidParameter: If there are too few scores, or a score is no number.

    Examples:
        >>> dp.audit.errors_of([0.0] * 400, [1.0] * 400)
        Errors(false_alarms=0, misses=0, without=200, with_it=200)
    """
    outs, ins = np.asarray(without, np.float64), np.asarray(with_it, np.float64)
    if min(len(outs), len(ins)) < 4:
        raise InvalidParameter("there must be at least four scores of each kind")
    if np.isnan(outs).any() or np.isnan(ins).any():
        raise InvalidParameter("a score is not a number, and tells nothing of a canary: find out why, or leave it out")
    a, b = len(outs) // 2, len(ins) // 2
    tried = np.unique(np.concatenate([outs[:a], ins[:b]]))
    alarms = 1 - np.searchsorted(np.sort(outs[:a]), tried, "left") / a
    missed = np.searchsorted(np.sort(ins[:b]), tried, "left") / b
    cut = float(tried[int(np.argmin(alarms + missed))])
    return Errors(
        false_alarms=int(np.count_nonzero(outs[a:] >= cut)),
        misses=int(np.count_nonzero(ins[b:] < cut)),
        without=len(outs) - a,
        with_it=len(ins) - b,
    )


def epsilon_from_errors(errors: Errors, *, delta: float, error: float) -> float:
    """Return an epsilon that is below the true one, but for a chance of `error`. [JUO20]

    Args:
        errors: The errors of a test, as `errors_of` counts them.
        delta: The delta of the epsilon, below 1.
        error: The chance at most with which the returned number is too large.

    Returns:
        The epsilon, 0 where nothing is shown.

    Raises:
        InvalidParameter: If delta is no probability below 1.

    Examples:
        >>> errors = dp.audit.errors_of([0.0] * 400, [1.0] * 400)
        >>> round(dp.audit.epsilon_from_errors(errors, delta=1e-5, error=0.05), 2)
        3.98
    """
    if not 0 <= delta < 1:
        raise InvalidParameter("delta must be a probability below 1")
    alarms, misses = errors.limits(error)
    found = [log((1 - delta - one) / other) for one, other in ((alarms, misses), (misses, alarms)) if one + delta < 1]
    return max([0.0, *found])


def mu_from_errors(errors: Errors, *, error: float) -> float:
    """Return the like for µ of Gaussian privacy, which holds only if the trade-off curve is Gaussian. [NHSB23]

    Args:
        errors: The errors of a test, as `errors_of` counts them.
        error: The chance at most with which the returned number is too large.

    Returns:
        The µ, 0 where nothing is shown.

    Examples:
        >>> errors = dp.audit.errors_of([0.0] * 400, [1.0] * 400)
        >>> round(dp.audit.mu_from_errors(errors, error=0.05), 2)
        4.18
    """
    from scipy.stats import norm

    alarms, misses = errors.limits(error)
    return max(0.0, float(norm.ppf(1 - alarms) - norm.ppf(misses)))


# --- one_run ---
# Audit a training run from a single run: many canaries, each in or out by a fair coin, and guesses about them.
#
# Theorem     Let m examples each be included with probability 1/2, independently, and let an attacker see the output of
#             an (ε, δ)-DP algorithm and guess r of them. With q = e^ε / (1 + e^ε) and β = P[Bin(r, q) ≥ v], the chance
#             of
#             v or more correct guesses is at most β + 2 m δ max_i (P[Bin(r, q) ≥ v - i] - β) / i. [SNJ23]


_MOST = 60.0  # epsilon, or µ
_HALVINGS = 40


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Guesses:
    """How many canaries there were, about how many a guess was made, and how many guesses were right.

    Args:
        canaries: How many canaries there were, each in or out by a fair coin.
        made: About how many of them a guess was made.
        right: How many guesses were right.

    Raises:
        InvalidParameter: If there are no canaries, more guesses than canaries, or more right ones than guesses.

    Examples:
        >>> guesses = dp.audit.Guesses(canaries=1000, made=100, right=95)
        >>> round(dp.audit.epsilon_from_guesses(guesses, delta=0, error=0.05), 2)
        2.17
    """

    canaries: int
    made: int
    right: int

    __repr__ = record

    def __post_init__(self) -> None:
        if not 0 <= self.right <= self.made <= self.canaries or self.canaries < 1:
            raise InvalidParameter("0 <= right <= made <= canaries must hold, with at least one canary")


def guess(scores: Sequence[float], included: Sequence[bool], *, high: int, low: int) -> Guesses:
    """Guess that the `high` best scores are in and the `low` worst are out, and abstain from the rest.

    How many to guess is the auditor's choice, to be made before the scores are seen.

    Args:
        scores: One score for each canary; a higher one speaks for "in".
        included: Whether each canary was in.
        high: How many of the best scores are guessed in.
        low: How many of the worst are guessed out.

    Returns:
        How many guesses were made, and how many were right.

    Raises:
        InvalidParameter: If there is not one score for each canary, or a score is no number, or guesses are too many.

    Examples:
        >>> dp.audit.guess([0.1, 0.9, 0.4, 0.7], [False, True, True, False], high=1, low=1)
        Guesses(canaries=4, made=2, right=2)
    """
    seen, truth = np.asarray(scores, np.float64), np.asarray(included, bool)
    if len(seen) != len(truth) or high < 0 or low < 0 or high + low > len(seen) or np.isnan(seen).any():
        raise InvalidParameter("there must be a score for each canary, no NaN, and at most one guess for each")
    # Equal scores are taken at their worst: the order in which canaries are listed may tell which of them are in.
    order = np.lexsort((~truth, seen))
    right = int(truth[order[len(order) - high :]].sum()) + int((~truth[order[:low]]).sum())
    return Guesses(canaries=len(order), made=high + low, right=right)


def guesses_p_value(guesses: Guesses, epsilon: float, delta: float) -> float:
    """Return the largest chance of so many right guesses under (epsilon, delta)."""
    from scipy.special import expit
    from scipy.stats import binom

    tails = binom.sf(
        np.arange(guesses.right, -1, -1) - 1, guesses.made, expit(epsilon)
    )  # P[Bin >= v], P[Bin >= v-1], …
    beta = float(tails[0])
    steps = (tails[1:] - beta) / np.arange(1, guesses.right + 1)
    return min(1.0, beta + 2 * guesses.canaries * delta * float(np.max(steps, initial=0.0)))


def epsilon_from_guesses(guesses: Guesses, *, delta: float, error: float) -> float:
    """Return an epsilon that is below the true one, but for a chance of `error`.

    Args:
        guesses: The guesses about one run.
        delta: The delta of the epsilon.
        error: The chance at most with which the returned number is too large.

    Returns:
        The epsilon, 0 where nothing is shown. [SNJ23]

    Raises:
        InvalidParameter: If delta or error are no probabilities.

    Examples:
        >>> guesses = dp.audit.Guesses(canaries=1000, made=100, right=95)
        >>> round(dp.audit.epsilon_from_guesses(guesses, delta=0, error=0.05), 2)
        2.17
    """
    if not 0 <= delta <= 1 or not 0 < error < 1:
        raise InvalidParameter("delta must be a probability, and error one between 0 and 1")
    return _largest(lambda epsilon: guesses_p_value(guesses, epsilon, delta) <= error)


def epsilon_from_guesses_gdp(guesses: Guesses, *, delta: float, error: float) -> float:
    """Return the like for Gaussian trade-off curves, which is tighter, and holds only if the curve is such a one.

    Args:
        guesses: The guesses about one run.
        delta: The delta of the epsilon, above 0.
        error: The chance at most with which the returned number is too large.

    Returns:
        The epsilon, 0 where nothing is shown. [MMC24]

    Raises:
        InvalidParameter: If delta is not strictly between 0 and 1.

    Examples:
        >>> guesses = dp.audit.Guesses(canaries=1000, made=100, right=95)
        >>> round(dp.audit.epsilon_from_guesses_gdp(guesses, delta=1e-5, error=0.05), 2)
        3.32
    """
    if not 0 < delta < 1:
        raise InvalidParameter("delta must be above 0: a Gaussian trade-off curve has no epsilon at delta = 0")
    mu = mu_from_guesses(guesses, error=error)
    if mu == 0:
        return 0.0
    return epsilon(Gaussian(variance=1, squared_sensitivity=Fraction(mu) ** 2), delta, relation=Relation.ADD_REMOVE)


def mu_from_guesses(guesses: Guesses, *, error: float) -> float:
    """Return a µ of Gaussian privacy that is below the true one, but for a chance of `error`. [MMC24]

    Args:
        guesses: The guesses about one run.
        error: The chance at most with which the returned number is too large.

    Returns:
        The µ, 0 where nothing is shown.

    Examples:
        >>> guesses = dp.audit.Guesses(canaries=1000, made=100, right=95)
        >>> round(dp.audit.mu_from_guesses(guesses, error=0.05), 2)
        0.79
    """
    return _largest(lambda mu: _refutes_gaussian(guesses, mu, error))


def _refutes_gaussian(guesses: Guesses, mu: float, error: float) -> bool:
    """Follow the recursion of the paper from the number of right guesses down."""
    from scipy.special import ndtr, ndtri

    right, wrong = guesses.right, guesses.made - guesses.right
    r, h = error * right / guesses.canaries, error * wrong / guesses.canaries
    for i in range(right - 1, -1, -1):
        above = max(h, float(ndtr(ndtri(r) - mu)))
        if above == h:
            break
        r = min(r + i / (guesses.made - i) * (above - h), 1.0)
        h = above
    return r + h > guesses.made / guesses.canaries


def _largest(refutes: Callable[[float], bool]) -> float:
    """Bisect for the largest number that is refuted; refutations only become rarer as it grows."""
    if not refutes(1e-9):
        return 0.0
    low, high = 0.0, _MOST
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if refutes(middle) else (low, middle)
    return low
