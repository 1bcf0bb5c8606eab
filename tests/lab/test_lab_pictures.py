"""A picture of what is not private says so, as its words do."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from discreet.cli.attack.attack_support import draw
from discreet.lab import attacks
from discreet.mechanisms import RandomizedResponse
from discreet.privacy.not_private import HEADING


@pytest.mark.parametrize("ending", ["svg", "json", "html"])
def test_a_picture_of_people_stands_under_the_heading(tmp_path: Path, ending: str) -> None:
    found = attacks.uniqueness(pa.table({"zip": ["1", "2", "2"], "sex": ["f", "m", "m"]}))
    draw(found, tmp_path / f"drawn.{ending}")
    assert HEADING in (tmp_path / f"drawn.{ending}").read_text()


def test_a_picture_of_nobody_has_no_such_heading(tmp_path: Path) -> None:
    draw(attacks.averaging_curve(RandomizedResponse.for_epsilon(1), [1, 10]), tmp_path / "drawn.svg")
    drawn = (tmp_path / "drawn.svg").read_text()
    assert HEADING not in drawn
    assert "Asking again and averaging" in drawn


def test_every_command_about_people_draws_with_the_heading() -> None:
    folder = Path(attacks.__file__).parents[2] / "cli" / "attack"
    bare = [file.name for file in folder.glob("attack_*.py") if "draw(found.value" in file.read_text()]
    assert bare == ["attack_reconstruction.py"]  # Secrets that were made up are nobody's.
