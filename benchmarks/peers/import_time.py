"""CPU seconds of importing some modules in a fresh interpreter, and of the NumPy before them."""

from __future__ import annotations

import sys
from importlib import import_module, util

from benchmarks.peers.protocol import emit
from benchmarks.timing import once


def main(modules: list[str]) -> None:
    """Import NumPy first where the subject needs it, so that what the subject adds is seen apart."""
    numpy = once(lambda: import_module("numpy")).cpu if util.find_spec("numpy") else 0.0
    above = once(lambda: [import_module(module) for module in modules]).cpu
    emit(numpy_s=numpy, above_numpy_s=above)


if __name__ == "__main__":
    main([argument for argument in sys.argv[1:] if not argument.startswith("--")])
