"""`discreet attack`: the attack lab. Each attack is a file of its own, and stands in one list."""

from __future__ import annotations

import typer

from discreet.cli.attack import (
    attack_attributes,
    attack_averaging,
    attack_differencing,
    attack_floating_point,
    attack_linkage,
    attack_membership,
    attack_reconstruction,
    attack_scoreboard,
    attack_sticky,
    attack_tracing,
    attack_uniqueness,
)
from discreet.cli.options import group

__all__ = ["add_to"]

ATTACKS = (  # In the order in which people meet them.
    attack_uniqueness,
    attack_linkage,
    attack_scoreboard,
    attack_differencing,
    attack_averaging,
    attack_tracing,
    attack_reconstruction,
    attack_sticky,
    attack_floating_point,
    attack_membership,
    attack_attributes,
)


def add_to(app: typer.Typer, panel: str) -> None:
    """Add the group, with every attack in it."""
    attack = group("Attack a table or release of yours. Results are about real people: not private, and for you only.")
    for one in ATTACKS:
        one.add_to(attack)
    app.add_typer(attack, name="attack", rich_help_panel=panel)
