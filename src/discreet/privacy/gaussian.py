"""The Gaussian mechanism, exactly: its privacy profile, its inverse, and the noise that a target needs.

All Gaussian releases of one account are together as hard as telling N(0, 1) from N(mu, 1), where mu^2 is the sum
of (sensitivity / sigma)^2. [DRS22] This stays so if each release, and its mu, is chosen after seeing those before:

Theorem     Each answer is given what was released before it. Let it be mu_t-Gaussian private, where mu_t may depend on
            that past, and let the sum of all mu_t^2 never pass a limit. Then all answers together are as private as one
            Gaussian mechanism of mu^2 = limit.
Proof       Fix two neighbours and watch a Brownian motion on the time from 0 to the limit, without drift for one of
            them and with drift 1 for the other. An increment over the time mu_t^2 is N(0, mu_t^2) or
            N(mu_t^2, mu_t^2), as hard to tell apart as N(0, 1) and N(mu_t, 1), so answer t can be made from it by a
            rule that depends on the past and the two neighbours, but not on which of them is true [DRS22]. Answers use
            increments after one another and the time suffices, so the transcript is post-processing of the whole path,
            and all that a path tells about its drift is where it ends: N(0, limit) or N(limit, limit). [ST22, KTH23]

The accounts of a ledger and of synthetic tables both add up mu^2 by it.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from discreet.balls import ball, normal_cdf
from discreet.errors import InvalidParameter, Refused
from discreet.exact import Number, exact, nonnegative, positive, up
from discreet.formatting import significant_up
from discreet.privacy.enclosures import crossing, enclose, float_down, float_up, log_of

if TYPE_CHECKING:
    from flint import arb

__all__ = ["classic_gaussian_sigma", "gaussian_sigma", "largest_mu_squared", "profile", "tradeoff"]

_DIGITS = 12  # Decimal digits of a sigma: a float of so few digits means the same number read back exactly.


def profile(mu_squared: Fraction, epsilon: Fraction) -> arb:
    """Enclose delta(epsilon) = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu). [BW18, DRS22]"""

    def formula() -> arb:
        mu, level = ball(mu_squared).sqrt(), ball(epsilon)
        first, second = normal_cdf(mu / 2 - level / mu), level.exp() * normal_cdf(-mu / 2 - level / mu)
        # Beyond all exponents the second term is not known, but the difference lies between 0 and the first.
        return first - second if second.is_finite() else first.union(ball(0))

    return enclose(formula)


def epsilon_ceiling(mu_squared: Fraction, delta: Fraction) -> float:
    """Return about mu^2/2 + mu sqrt(2 log(1/delta)), where the profile has surely fallen to delta. [BS16]"""
    try:
        half = up(mu_squared / 2)
        return half + 2 * math.sqrt(half) * math.sqrt(-log_of(delta)) + math.ulp(half)
    except OverflowError:
        return math.inf


def tradeoff(mu_squared: Fraction, fpr: Fraction) -> arb:
    """Enclose the least false negative rate at a false positive rate: Phi(Phi^-1(1 - fpr) - mu). [DRS22]"""
    from flint import arb

    def formula() -> arb:
        quantile = arb(2).sqrt() * (2 * ball(fpr)).erfcinv()
        return normal_cdf(quantile - ball(mu_squared).sqrt())

    return ball(1 - fpr) if fpr in (0, 1) else enclose(formula)


def gaussian_sigma(epsilon: Number, delta: Number, sensitivity: Number = 1) -> float:
    """Return the standard deviation that makes Gaussian noise (epsilon, delta)-private.

    Guarantee   never below the exact value, and within 1e-9 of it; `sensitivity` is l2, in the unit of sigma.
    Theorem     Gaussian noise is (epsilon, delta)-private if and only if `profile` <= delta. [BW18]

    The float has 12 digits, so that it means the same number when it is read exactly.

    Args:
        epsilon: The epsilon to reach, above 0.
        delta: The delta to reach, above 0 and below 1.
        sensitivity: The l2 sensitivity.

    Returns:
        The standard deviation.

    Raises:
        InvalidParameter: If no finite noise reaches this epsilon and delta.

    Examples:
        >>> round(dp.privacy.gaussian_sigma(1, 1e-5), 3)
        3.731
    """
    level = nonnegative(epsilon, name="epsilon")
    target = exact(delta, name="delta")
    if not 0 < target < 1:
        raise InvalidParameter("delta must be above 0 and below 1: Gaussian noise never satisfies pure DP")
    unit = positive(sensitivity, name="sensitivity")
    # In units of the sensitivity mu is 1 / sigma, and delta falls as sigma grows.
    sigma = crossing(lambda x: _at_sigma(x, level), target, _sigma_ceiling(level, target))[1]
    if not math.isfinite(sigma):
        raise InvalidParameter("no finite noise reaches this epsilon and delta: make them larger")
    return _few_digits_up(Fraction(sigma) * unit)


def largest_mu_squared(epsilon: Number, delta: Number) -> Fraction:
    """Return the largest mu^2 known to be (epsilon, delta)-private, rounded down: the limit of the theorem above."""
    return 1 / Fraction(gaussian_sigma(epsilon, delta)) ** 2


# What textbooks print: sigma^2 = sensitivity^2 / epsilon^2 times this factor of log(numerator / delta).
_CLASSIC = {"1.25/delta": (2, Fraction(5, 4)), "2/delta": (2, Fraction(2)), "4 log(1/delta)": (4, Fraction(1))}


def classic_gaussian_sigma(
    epsilon: Number, delta: Number, sensitivity: Number = 1, *, formula: str = "1.25/delta"
) -> float:
    """Return the standard deviation of a textbook formula where that is private, and refuse where it is not.

    The formulas are sensitivity / epsilon times sqrt(2 log(1.25 / delta)), which is proven for epsilon below 1 [DR14],
    sqrt(2 log(2 / delta)), or 2 sqrt(log(1 / delta)). None holds at every epsilon: each falls as 1 / epsilon, and what
    is needed falls as 1 / sqrt(epsilon) in the end. `gaussian_sigma` is right everywhere and never larger; these are
    here to check numbers that others printed.

    Guarantee   what is returned is (epsilon, delta)-private, by the exact profile [BW18], not by the formula's proof.

    Args:
        epsilon: The epsilon to reach, above 0.
        delta: The delta to reach, above 0 and below 1.
        sensitivity: The l2 sensitivity.
        formula: `"1.25/delta"`, `"2/delta"` or `"4 log(1/delta)"`.

    Returns:
        The standard deviation, rounded up.

    Raises:
        Refused: If the formula gives too little noise at this epsilon and delta.

    Examples:
        >>> round(dp.privacy.classic_gaussian_sigma(0.5, 1e-5), 2), round(dp.privacy.gaussian_sigma(0.5, 1e-5), 2)
        (9.69, 7.03)
    """
    if formula not in _CLASSIC:
        raise InvalidParameter(f"formula must be one of {', '.join(map(repr, _CLASSIC))}")
    level, unit = positive(epsilon, name="epsilon"), positive(sensitivity, name="sensitivity")
    needed = Fraction(gaussian_sigma(level, delta))
    factor, numerator = _CLASSIC[formula]
    ratio = numerator / exact(delta, name="delta")
    sigma = enclose(lambda: (factor * ball(ratio).log()).sqrt() / ball(level))
    least = Fraction(float_down(sigma))
    if least < needed:
        raise Refused(
            f"the formula with {formula} is not private here: at epsilon = {significant_up(level)} and delta = "
            f"{significant_up(exact(delta))} it gives a sigma of {float(least):.4g} for a sensitivity of 1, and "
            f"{float(needed):.4g} are needed: take gaussian_sigma, which is right at every epsilon"
        )
    return _few_digits_up(Fraction(float_up(sigma)) * unit)


def _at_sigma(sigma: Fraction, epsilon: Fraction) -> arb:
    return profile(1 / sigma**2, epsilon) if sigma else ball(1)


def _sigma_ceiling(epsilon: Fraction, delta: Fraction) -> float:
    """Return a sigma that surely suffices: by Chernoff, or by the total variation delta(0) <= mu / sqrt(2 pi)."""
    log_term = -2 * log_of(delta)
    level = up(epsilon)
    chernoff = 2 * level / (math.sqrt(log_term + 2 * level) + math.sqrt(log_term))
    mu = max(min(chernoff, 1e150), 2.5 * float(delta))
    return 1.000001 / mu if mu > 1e-300 else math.inf


def _few_digits_up(value: Fraction) -> float:
    """Round up so that both the float and its shortest decimal are at least `value`."""
    if not Fraction(1, 10**290) < value < 10**290:
        raise InvalidParameter("the noise scale is outside the range of floats: choose another unit")
    context = Context(prec=_DIGITS, rounding=ROUND_CEILING)
    safe = value * (1 + Fraction(1, 2**51))
    numerator, denominator = Decimal(safe.numerator), Decimal(safe.denominator)
    return float(context.divide(numerator, denominator))
