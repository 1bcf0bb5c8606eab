"""Synthetic data: tables by noisy marginals (MST, AIM), tables and pictures by DP-MERF, pictures by diffusion.

    domain = dp.synth.Domain({"age": dp.synth.Numeric(0, 100, whole=True), "sex": dp.synth.Category(["f", "m"])})
    model = dp.synthesize("visits.csv", domain=domain, epsilon=1, delta=1e-9)
    model.sample(1000).to_csv("synthetic.csv")

`discreet.synth.merf` and `discreet.synth.diffusion` need the extra `torch`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.synth import diffusion, domain, merf, tables
    from discreet.synth.domain.category import Category
    from discreet.synth.domain.domain import Domain
    from discreet.synth.domain.domain_file import read_domain
    from discreet.synth.domain.images import Images
    from discreet.synth.domain.numeric import Numeric
    from discreet.synth.domain.source_tables import domain_of_session
    from discreet.synth.model_files import load
    from discreet.synth.synthesis import plan, synthesize

__all__ = [
    "Category",
    "Domain",
    "Images",
    "Numeric",
    "diffusion",
    "domain",
    "domain_of_session",
    "load",
    "merf",
    "plan",
    "read_domain",
    "synthesize",
    "tables",
]

_PARTS = ("diffusion", "domain", "merf", "tables")
_HOMES = {
    "Category": "domain.category",
    "Domain": "domain.domain",
    "Images": "domain.images",
    "Numeric": "domain.numeric",
    "domain_of_session": "domain.source_tables",
    "load": "model_files",
    "plan": "synthesis",
    "read_domain": "domain.domain_file",
    "synthesize": "synthesis",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'discreet.synth' has no attribute {name!r}")
    if name in _PARTS:
        return import_module(f"discreet.synth.{name}")
    return getattr(import_module(f"discreet.synth.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
