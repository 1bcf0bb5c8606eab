"""Ask the matrix library for results that do not depend on where in memory a row begins.

MKL peels vectors by the alignment of their address, so two equal rows of 6 floats in one batch get sums that differ in
their last bits. In its reproducible mode they do not, at the same speed. It reads the mode from the environment when it
first multiplies, so this is set as soon as this package is imported; where something was multiplied before, the probe
finds what is uneven and says what to do.
"""

from __future__ import annotations

import os

__all__ = ["MODE"]

MODE = "MKL_CBWR"
os.environ.setdefault(MODE, "AUTO")
