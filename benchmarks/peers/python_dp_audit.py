"""python-dp: its Laplace mechanism on integer and float counts, for ε = 1."""

from __future__ import annotations

import pydp.algorithms.numerical_mechanisms as mechanisms  # type: ignore[import-not-found]

from benchmarks.peers.outputs import EPSILON, report_outputs

if __name__ == "__main__":
    laplace = mechanisms.LaplaceMechanism(epsilon=EPSILON, sensitivity=1.0)
    report_outputs(
        {"Laplace, integers": laplace.add_noise, "Laplace, floats": lambda count: laplace.add_noise(float(count))}
    )
