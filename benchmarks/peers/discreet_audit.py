"""Discreet: its count mechanisms, for ε = 1."""

from __future__ import annotations

from fractions import Fraction

from benchmarks.peers.outputs import EPSILON, report_outputs
from discreet.mechanisms import Laplace
from discreet.privacy import Relation

if __name__ == "__main__":
    mechanism = Laplace(sensitivity=1, scale=Fraction(1) / Fraction(EPSILON), relation=Relation.ADD_REMOVE)
    report_outputs({"Laplace": lambda count: mechanism.release(count).value})
