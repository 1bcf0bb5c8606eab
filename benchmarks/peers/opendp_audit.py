"""OpenDP: integer counts with its Laplace measurement, and float ones, for ε = 1."""

from __future__ import annotations

import opendp.prelude as dp  # type: ignore[import-not-found]

from benchmarks.peers.outputs import EPSILON, report_outputs

if __name__ == "__main__":
    dp.enable_features("contrib")
    whole = dp.m.make_laplace(dp.atom_domain(T="i64"), dp.absolute_distance(T="i64"), scale=1 / EPSILON)
    real = dp.m.make_laplace(dp.atom_domain(T="f64", nan=False), dp.absolute_distance(T="f64"), scale=1 / EPSILON)
    report_outputs({"Laplace, integers": whole, "Laplace, floats": lambda count: real(float(count))})
