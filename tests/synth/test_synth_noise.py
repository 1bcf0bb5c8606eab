"""The noise that is drawn is the noise that was priced, in every release of pictures' sums."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from discreet.synth.diffusion.warm_up import CentralRelease
from discreet.synth.merf.sensitivity import SumPrice


def is_of_variance(drawn: np.ndarray, variance: Fraction) -> bool:
    """False alarm below 1e-9: the mean square of n numbers is within 6.5 of its deviations."""
    return bool(abs((drawn.astype(np.float64) ** 2).mean() / float(variance) - 1) < 6.5 * np.sqrt(2 / drawn.size))


@pytest.mark.statistical
def test_sums_have_the_noise_that_was_priced() -> None:
    paid = SumPrice(variance=Fraction(10**8), squared_sensitivity=10**6)
    drawn = paid.release(np.zeros((4, 5000), np.int64)).values
    central = CentralRelease(pixels=2, classes=8000, noise_multiplier=Fraction(300), products=False)
    sums = central.release(np.zeros((0, 2), np.uint8), np.zeros(0, np.int32))
    for numbers, variance in (
        (drawn, paid.variance),
        *zip((sums.pixels, sums.counts), central.variances[:2], strict=True),
    ):
        assert is_of_variance(numbers, variance)
        assert not is_of_variance(numbers, variance / 2)  # Half of it would be seen.
