"""CPU seconds of one import in a fresh interpreter, and of the NumPy in it."""

from __future__ import annotations

import sys
from importlib import import_module, util

from benchmarks.peers.protocol import emit
from benchmarks.timing import once


def main(module: str) -> None:
    """Import NumPy first where the subject needs it, so that what the subject adds is seen apart."""
    numpy = once(lambda: import_module("numpy")).cpu if util.find_spec("numpy") else 0.0
    emit(module=module, numpy_s=numpy, above_numpy_s=once(lambda: import_module(module)).cpu)


if __name__ == "__main__":
    main(sys.argv[1])
