"""Differentially private learning: DP-SGD and DP-FTRL for PyTorch, and scikit-learn estimators.

`make_private` and `discreet.learn.torch` need the extra `torch`; `discreet.learn.sklearn` needs the extra `sklearn`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["sklearn", "torch", "training"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'discreet.learn' has no attribute {name!r}")
    return import_module(f"discreet.learn.{name}")


def __dir__() -> list[str]:
    return sorted(__all__)
