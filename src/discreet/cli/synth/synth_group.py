"""`discreet synth`: synthetic data. Each step is a file of its own."""

from __future__ import annotations

import typer

from discreet.cli.options import group
from discreet.cli.synth import synth_domain, synth_evaluate, synth_fit, synth_sample

__all__ = ["add_to"]

_STEPS = (synth_domain, synth_fit, synth_sample, synth_evaluate)


def add_to(app: typer.Typer, panel: str) -> None:
    """Add the group, with every step in it."""
    synth = group("Make a table of made-up rows that is like a real one, with a proven promise to everybody in it.")
    for step in _STEPS:
        step.add_to(synth)
    app.add_typer(synth, name="synth", rich_help_panel=panel)
