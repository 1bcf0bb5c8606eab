"""The budget is split where it helps most: no other division has a smaller worst relative error."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_texts import GOOD, written

from discreet.errors import InvalidParameter
from discreet.formatting import significant_up
from discreet.release import price, read_release_plan
from discreet.release.pricing.budget_split import SplitPart, amounts, weights
from discreet.release.pricing.priced_release import PricedRelease, advice

HEAD = GOOD.partition("[[levels]]")[0]
EXPECTED = {"sex": 5000, "district": 800, "urgent": 90}
PURE = ("epsilon = 1\ndelta = 1e-7", "epsilon = 1")
SOME = st.lists(st.fractions(Fraction(1, 1000), 1000), min_size=2, max_size=6)


def table(key: str, wish: str = "") -> str:
    return (
        f'[[publish]]\nname = "by_{key}"\nsql = "SELECT {key}, COUNT(*) AS n FROM stays GROUP BY {key}"\n'
        f'expected = {{ "*" = {EXPECTED[key]} }}\n{wish}\n'
    )


def priced(folder, wishes=("", "", ""), *changes) -> PricedRelease:
    content = HEAD + "".join(table(key, wish) for key, wish in zip(EXPECTED, wishes, strict=True))
    for old, new in changes:
        assert old in content
        content = content.replace(old, new, 1)
    return price(read_release_plan(written(folder, content)))


def even(change=()):
    return [*([change] if change else []), ("[schedule]", 'split = "even"\n[schedule]')]


@given(SOME, st.data())
@settings(max_examples=40)
def test_no_other_division_with_the_floor_has_a_smaller_worst_error_for_all_constants(constants, data):
    """With rho: table i errs by √(constant / amount); the order is that of constant / amount in both currencies."""
    size = len(constants)
    drawn = data.draw(st.lists(st.fractions(0, 1), min_size=size, max_size=size).filter(any))
    other = [(1 + part * size / sum(drawn)) / (2 * size) for part in drawn]
    ours = weights(constants)
    worst = max(k / part for k, part in zip(constants, ours, strict=True))
    assert sum(ours) == sum(other) == 1
    assert min(ours) >= Fraction(1, 2 * size)
    assert worst <= max(k / part for k, part in zip(constants, other, strict=True))


@given(st.lists(st.fractions(Fraction(1, 10**9), 10**9), min_size=1, max_size=40))
@settings(max_examples=40)
def test_no_table_falls_below_half_of_an_even_part_however_greedy_another_is(constants):
    ours = weights(constants)
    assert sum(ours) == 1
    assert min(ours) >= Fraction(1, 2 * len(constants))
    above = {k / part for k, part in zip(constants, ours, strict=True) if part > Fraction(1, 2 * len(constants))}
    assert len(above) <= 1, "all tables above the floor err alike"


@pytest.mark.parametrize("allowance", ["epsilon = 0.03\ndelta = 1e-7", "epsilon = 0.01"], ids=["gaussian", "laplace"])
def test_the_split_agrees_with_brute_force_over_all_shares(allowance, tmp_path):
    """Of all divisions into sixths none is better, but for ± being whole numbers, here of some hundreds."""
    change = (PURE[0], allowance)
    ours = priced(tmp_path, ("", "", ""), change)
    assert min(error for table in ours.tables for error in table.errors.values()) > 200
    sixths = [(a, b, 6 - a - b) for a, b in product(range(1, 5), repeat=2) if a + b < 6]
    others = [priced(tmp_path, [f'share = "{part}/6"' for part in parts], change).worst for parts in sixths]
    assert len(others) == 10
    assert ours.worst <= min(others) * Fraction(201, 200)
    assert ours.worst < Fraction(8, 10) * max(others)


@pytest.mark.parametrize("change", [(), PURE], ids=["gaussian", "laplace"])
def test_the_split_beats_an_even_one(change, tmp_path):
    ours = priced(tmp_path, ("", "", ""), *([change] if change else [])).worst
    evenly = priced(tmp_path, ("", "", ""), *even(change)).worst
    assert ours < Fraction(8, 10) * evenly


def test_tables_above_the_floor_err_alike_relative_to_what_is_expected(tmp_path):
    found = priced(tmp_path, ("", "", ""), ('"*" = 5000', '"*" = 120'), ('"*" = 800', '"*" = 100'))
    errors = [table.relative_errors["n"] for table in found.tables]
    assert max(errors) < Fraction(112, 100) * min(errors)  # ± are whole numbers: 9 and 10 of 90 differ by 11 %.


GREEDY = """
[[publish]]
name = "all"
sql = "SELECT COUNT(*) AS n FROM stays"
expected = { "*" = 64103 }
[[publish]]
name = "few"
sql = "SELECT urgent, SUM(cost) AS cost FROM stays GROUP BY urgent"
expected = { cost = 2000 }
"""


@pytest.mark.parametrize("change", [(), PURE], ids=["gaussian", "laplace"])
def test_a_greedy_table_does_not_ruin_the_others(change, tmp_path):
    """A sum that errs by many times what is expected would take everything: the total keeps half of an even part."""
    content = HEAD + "".join(map(table, EXPECTED)) + GREEDY
    content = content.replace(*change) if change else content
    ours = price(read_release_plan(written(tmp_path, content)))
    even_split = content.replace("[schedule]", 'split = "even"\n[schedule]', 1)
    evenly = price(read_release_plan(written(tmp_path, even_split)))
    most = Fraction(3, 2) if not change else Fraction(21, 10)  # √2 and 2, and a whole number more or less.
    for one, other in zip(ours.tables, evenly.tables, strict=True):
        for column, error in one.errors.items():
            assert error <= most * other.errors[column] + 1, (one.name, column)
    assert ours.tables[-1].amount > 2 * evenly.tables[-1].amount, "whoever needs it most still gets most"
    assert sum(one.amount for one in ours.tables) == ours.total <= ours.tables[-1].amount * 2
    part = significant_up(100 * ours.tables[-1].amount / ours.total, 2)
    first, alternatives, *_ = advice(ours)
    assert first.startswith(f"few takes {part} % of the price, for cost, and would take more")
    assert 'split = "even"' in alternatives
    assert "each of 5 tables then takes 20 %" in alternatives
    even_cost, our_cost = evenly.tables[-1].errors["cost"], ours.tables[-1].errors["cost"]
    told = float(alternatives.partition("cost errs ")[2].split()[0])  # Rounded up, to two digits.
    assert float(even_cost / our_cost) <= told <= 1.06 * float(even_cost / our_cost)
    assert not any(" of the price" in line for line in advice(evenly))


def test_a_table_that_asks_for_most_of_the_price_itself_is_named_first(tmp_path):
    found = priced(tmp_path, ("share = 0.8", "", ""))
    assert next(advice(found)).startswith(f"{found.tables[0].name} takes 80 % of the price, as it says itself")


@pytest.mark.parametrize("epsilon", [1, 8, 60])
def test_laplace_noise_has_at_most_twice_the_scale_of_an_even_split_at_any_price(epsilon, tmp_path):
    """Its scale is one over the amount. Its deviation is not: it falls faster where the scale is near one."""
    content = (HEAD + "".join(map(table, EXPECTED)) + GREEDY).replace(PURE[0], f"epsilon = {epsilon}")
    ours = price(read_release_plan(written(tmp_path, content)))
    evenly = price(read_release_plan(written(tmp_path, content.replace("[schedule]", 'split = "even"\n[schedule]', 1))))
    digits = 1 + Fraction(1, 10**5)  # Amounts are rounded down to six digits.
    for one, other in zip(ours.tables, evenly.tables, strict=True):
        assert 2 * one.amount * digits >= other.amount, one.name


def test_an_even_split_gives_every_table_the_same(tmp_path):
    assert len({table.amount for table in priced(tmp_path, ("", "", ""), *even()).tables}) == 1


def test_wishes_are_granted_before_the_rest_is_split(tmp_path):
    found = priced(tmp_path, ("share = 0.25", "error = 60", ""))
    sex, district, urgent = found.tables
    assert abs(sex.amount / found.total - Fraction(1, 4)) < Fraction(1, 10**5)
    assert district.errors["n"] == 60
    assert urgent.amount + sex.amount + district.amount == found.total
    assert 0.999 < found.epsilon <= 1


def test_a_table_with_an_epsilon_of_its_own_is_counted_by_the_tight_accountant(tmp_path):
    found = priced(tmp_path, ("epsilon = 0.2", "", ""))
    assert found.tables[0].priced.spend.epsilon == Fraction(1, 5)
    assert 0.999 < found.epsilon <= 1
    alone = priced(tmp_path, ("epsilon = 0.2", "", ""), ("epsilon = 1\n", "epsilon = 0.8\n"))
    assert found.total > alone.total  # Plain addition would leave epsilon = 0.8 for the others.


def test_a_table_that_cannot_be_weighed_is_told_what_to_paste(tmp_path):
    median = ("SELECT sex, COUNT(*) AS n FROM stays GROUP BY sex", "SELECT MEDIAN(cost) AS n FROM stays")
    with pytest.raises(InvalidParameter, match=r"such as share = 0\.05, or a price, such as rho = 0\.01"):
        priced(tmp_path, ("", "", ""), median, ('expected = { "*" = 5000 }\n', ""))
    for pasted in ("share = 0.05", "rho = 0.001"):
        assert priced(tmp_path, (pasted, "", ""), median, ('expected = { "*" = 5000 }\n', "")).tables


def test_quantiles_have_their_part_and_the_whole_still_fits(tmp_path):
    median = ("SELECT sex, COUNT(*) AS n FROM stays GROUP BY sex", "SELECT MEDIAN(cost) AS n FROM stays")
    found = priced(tmp_path, ("share = 0.2", "", ""), median, ('expected = { "*" = 5000 }\n', ""))
    assert found.tables[0].errors == {}
    assert 0.99 < found.epsilon <= 1


@given(
    st.lists(
        st.tuples(st.fractions(0, 1), st.fractions(0, Fraction(1, 10)), st.fractions(0, 5)), min_size=1, max_size=6
    ),
    st.fractions(Fraction(1, 100), 10),
)
@settings(max_examples=40)
def test_amounts_never_exceed_the_total_for_all_parts(parts, total):
    made = [SplitPart(fixed=fixed, share=share, weight=weight) for fixed, share, weight in parts]
    found = amounts(made, total)
    if found is None:
        needed = sum(part.fixed for part in made) + total * sum(part.share for part in made)
        assert needed >= total
    else:
        assert sum(found) <= total
        assert all(amount >= part.fixed for amount, part in zip(found, made, strict=True))
