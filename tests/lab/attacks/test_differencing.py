"""Differencing: exact tables give people away, private ones do not, and private ones with a bug do again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom

from discreet import data, noise
from discreet.lab.attacks import differencing, tabulate
from discreet.lab.attacks.count_tables import CountNoise, CountTable
from discreet.lab.attacks.differencing import Differencing
from discreet.lab.attacks.success_rates import Success
from discreet.privacy import Composed, Gaussian, NotPrivate, epsilon

FALSE_ALARM = 1e-9
WHERE = {"all": "", "young": "age_group <> '95+'", "short": "nights < 28", "early": "admitted < DATE '2025-12-31'"}
SIGMA = Fraction(87, 10)  # Four tables with it cost ε = 1 at δ = 1e-6.
EVENT = Composed([Gaussian(SIGMA)] * len(WHERE))


@dataclass(frozen=True)
class County:
    rows: Path
    exact: tuple[CountTable, ...]

    def attacked(self, tables: tuple[CountTable, ...], **options: object) -> Differencing:
        known = {"attribute": "diagnosis", "person": "patient", "isolating": self.exact} | options
        return differencing(self.rows, tables, **known).value


@pytest.fixture(scope="module")
def county() -> Iterator[County]:
    with data.folder("hospital") as folder:
        rows, by = folder / "stays.parquet", ["district", "sex", "diagnosis"]
        tables = [tabulate(rows, by, where=where, name=name, hide_below=5).value for name, where in WHERE.items()]
        yield County(rows, tuple(tables))


def noised(tables: tuple[CountTable, ...], deviation: Fraction, *, declared: Fraction | None = None):
    """Publish with noise of one deviation, and perhaps declare another."""
    return tuple(
        replace(
            table,
            counts=table.counts + noise.rounded_gaussian(deviation, len(table.counts)),
            noise=CountNoise.GAUSSIAN,
            deviation=float(deviation if declared is None else declared),
        )
        for table in tables
    )


def apart(one: Success, other: Success) -> bool:
    """Whether two chances are surely different."""
    (low, high), (least, most) = one.interval(FALSE_ALARM), other.interval(FALSE_ALARM)
    return high < least or most < low


def test_no_exact_table_shows_a_small_number(county):
    """Each table looks harmless by itself: no shown count is below five, but that men give birth to none."""
    for table in county.exact:
        assert set(table.counts[table.counts < 5]) <= {0.0}


def test_exact_tables_give_every_isolated_person_away(county):
    found = county.attacked(county.exact)
    assert found.named.of >= 30
    assert found.named.hits == found.named.of
    assert found.without == found.commonest
    assert found.without.share < 0.4
    assert found.fresh is None
    assert found.ceiling is None


def test_the_chain_of_an_example_is_a_difference_of_two_large_numbers_that_leaves_one(county):
    for example in county.attacked(county.exact, examples=100).examples:
        assert example.guess == example.truth
        assert sum(times * count for times, _, _, count in example.chain) == 1
        assert all(count >= 5 for _, _, _, count in example.chain)
        assert len(example.chain) == 2


@pytest.mark.statistical
def test_differencing_stays_below_the_ceiling_of_a_private_release(county):
    assert 0.95 < epsilon(EVENT, "1e-6") <= 1
    found = county.attacked(noised(county.exact, SIGMA), event=EVENT, draws=40)
    assert found.fresh is not None
    assert found.fresh_without is not None
    assert found.fresh.of == 40 * found.named.of
    assert not apart(found.fresh, found.fresh_without)
    assert found.fresh.interval(FALSE_ALARM)[0] <= found.ceiling < 0.4
    # As many hits in the one release that was published as the attacker without the row may have by luck.
    usual = found.fresh_without.interval(FALSE_ALARM)[1]
    assert binom.sf(found.named.hits - 1, found.named.of, usual) > FALSE_ALARM


@pytest.mark.statistical
def test_differencing_beats_the_baseline_where_there_is_far_too_little_noise(county):
    found = county.attacked(noised(county.exact, SIGMA / 100), event=EVENT, draws=40)
    assert apart(found.fresh, found.fresh_without)
    assert found.fresh.interval(FALSE_ALARM)[0] > found.ceiling
    usual = found.fresh_without.interval(FALSE_ALARM)[1]
    assert binom.sf(found.named.hits - 1, found.named.of, usual) < FALSE_ALARM


@pytest.mark.statistical
def test_differencing_finds_noise_that_is_far_smaller_than_declared(county):
    """The attacker believes the numbers, not the label."""
    found = county.attacked(noised(county.exact, SIGMA / 100, declared=SIGMA), draws=1)
    usual = found.commonest.interval(FALSE_ALARM)[1]
    assert found.named.hits >= 0.9 * found.named.of
    assert found.without.hits < 0.5 * found.without.of
    assert usual < 0.9


@pytest.mark.statistical
def test_laplace_noise_is_drawn_with_its_own_law(county):
    scale = Fraction(4)
    tables = tuple(
        replace(table, counts=table.counts, noise=CountNoise.LAPLACE, deviation=float(scale) * 2**0.5)
        for table in county.exact
    )
    drawn = tables[0].draw(20_000)
    assert abs(np.std(drawn) / tables[0].deviation - 1) < 0.1
    found = county.attacked(tables, draws=10)
    assert not apart(found.fresh, found.fresh_without)


def test_a_row_that_is_not_there_teaches_nothing():
    """Two tables of three people, one of whom the second leaves out."""
    rows = pa.table({"id": ["1", "2", "3"], "old": [False, False, True], "ill": ["flu", "flu", "gout"]})
    tables = tuple(tabulate(rows, ["ill"], where=where, name=where or "all").value for where in ("", "not old"))
    found = differencing(rows, tables, attribute="ill", person="id").value
    assert found.named == Success(1, 1)
    assert found.without == Success(0, 1)
    (example,) = found.examples
    assert (example.who, example.guess, example.facts) == ("3", "gout", {"not old": False})
    assert str(example) == "3 (not not old): gout"


def test_people_with_several_rows_are_not_attacked():
    rows = pa.table({"id": ["1", "2", "2"], "old": [False, False, True], "ill": ["flu", "flu", "gout"]})
    tables = tuple(tabulate(rows, ["ill"], where=where, name=where or "all").value for where in ("", "not old"))
    assert differencing(rows, tables, attribute="ill", person="id").value.named.of == 0
    assert differencing(rows, tables, attribute="ill").value.named.of == 1


def test_numbers_about_other_data_single_nobody_out():
    """A difference of one in somebody else's tables is not the only row of that group in mine."""
    rows = pa.table({"old": [False, False, True, True], "ill": ["flu", "gout", "gout", "flu"]})
    theirs = pa.table({"old": [False, True], "ill": ["flu", "gout"]})
    tables = tuple(tabulate(theirs, ["ill"], where=where, name=where or "all").value for where in ("", "not old"))
    assert differencing(rows, tables, attribute="ill").value.named.of == 0


def test_the_result_is_for_the_custodian_only(county):
    result = differencing(county.rows, county.exact, attribute="diagnosis", person="patient")
    assert isinstance(result, NotPrivate)
    assert str(result).startswith("NOT PRIVATE")
    assert isinstance(tabulate(county.rows, ["sex"]), NotPrivate)


def test_limits_of_a_chance_are_those_of_clopper_and_pearson():
    """10 of 100 at 95 %: 0.0490 to 0.1762, the textbook's figures."""
    low, high = Success(10, 100).interval()
    assert (round(low, 4), round(high, 4)) == (0.0490, 0.1762)
    assert Success(0, 10).interval()[0] == 0
    assert Success(10, 10).interval()[1] == 1
    with pytest.raises(ValueError, match="hits"):
        Success(3, 2)
