"""diffprivlib: its geometric, Laplace and staircase mechanisms on counts, for ε = 1."""

from __future__ import annotations

from diffprivlib import mechanisms  # type: ignore[import-not-found]

from benchmarks.peers.outputs import EPSILON, report_outputs

if __name__ == "__main__":
    report_outputs(
        {
            "Geometric": mechanisms.Geometric(epsilon=EPSILON, sensitivity=1).randomise,
            "Laplace": mechanisms.Laplace(epsilon=EPSILON, sensitivity=1).randomise,
            "Staircase": mechanisms.Staircase(epsilon=EPSILON, sensitivity=1).randomise,
        }
    )
