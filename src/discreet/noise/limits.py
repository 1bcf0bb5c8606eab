"""How narrow or wide noise may be: one rule for everybody, checked while nothing is spent, and again by every sampler.

Noise within these limits is drawn exactly. An array of it holds 64-bit integers; a value that does not fit raises
`NoiseOverflow`, which happens with a chance below e^-4000. Whoever may choose the step of their grid takes the finest
one with which noise is not too wide; whoever may not is refused.
"""

from __future__ import annotations

from fractions import Fraction

from discreet.errors import InvalidParameter

__all__ = ["WIDEST_VARIANCE", "check_noise_scale", "check_noise_variance", "finest_radius"]

_SCALES = (Fraction(1, 1 << 20), Fraction(1 << 50))
WIDEST_VARIANCE = Fraction(1 << 80)  # of Gaussian noise, in squared grid steps
_VARIANCES = (Fraction(1, 1 << 20), WIDEST_VARIANCE)
_CHOSEN = 78  # Bits of a variance where the step is chosen for it: room for parts with up to four times the variance.


def check_noise_scale(scale: Fraction) -> Fraction:
    """Refuse a Laplace scale, in grid steps, that no sampler takes."""
    return _checked(scale, _SCALES, "scale", "2^-20 … 2^50 grid steps")


def check_noise_variance(variance: Fraction) -> Fraction:
    """Refuse a Gaussian variance, in squared grid steps, that no sampler takes."""
    return _checked(variance, _VARIANCES, "variance", "2^-20 … 2^80 squared grid steps")


def _checked(value: Fraction, limits: tuple[Fraction, Fraction], name: str, told: str) -> Fraction:
    if not limits[0] <= value <= limits[1]:
        raise InvalidParameter(f"the noise would have a {name} outside {told}: choose another step or budget")
    return value


def finest_radius(precision: Fraction, *, power: int, most: int, least: int = 1) -> int:
    """Return the largest power of two from `least` to `most` with radius^power / precision at most 2^78.

    That is the variance of noise on what one row moves by up to radius^power, in steps; both ends are powers of two.
    If even `least` is too much, checking its variance refuses it.
    """
    bits = (int(precision * (1 << _CHOSEN)).bit_length() - 1) // power
    return min(most, max(least, 1 << max(bits, 0)))
