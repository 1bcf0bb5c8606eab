"""How much is looked at: public numbers, told on every page, that keep an evaluation within two minutes."""

from __future__ import annotations

__all__ = ["CELLS", "CURVE", "FITTED", "GUESSED", "PAIRS", "PEOPLE", "SETS", "TWINS"]

PAIRS = 1_500  # Tables of two columns that are compared; drawn at random if there are more.
SETS = 400  # Tables of three columns, and of any size where each must be paid for.
CELLS = 100_000  # Cells of a table that is compared; larger ones are left out.
PEOPLE = 1_500  # People on each side whom attackers look for.
GUESSED = 300  # People on each side whose secret is guessed.
TWINS = 50_000  # Rows of a table among which the closest one is looked for.
FITTED = 20_000  # Rows that a model is trained on, and as many on which it is tested.
CURVE = 200  # Points of a drawn curve.
