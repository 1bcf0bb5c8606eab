"""The cube: whatever is derived from exact tables is true, and is made of the published numbers it says."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import InvalidParameter
from discreet.lab.attacks.count_tables import (
    ALL,
    AxisLevel,
    CountNoise,
    CountTable,
    Cube,
    axes_of,
    condition_axis,
    fill,
    tabulate,
    value_axis,
)

ROW = st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"), st.sampled_from("pq"), st.integers(0, 3))
VALUES = {"one": ["a", "b"], "two": ["x", "y", "z"], "secret": ["p", "q"]}
SHAPES = [
    (("one", "two", "secret"), ""),
    (("one", "secret"), "n < 2"),
    (("two", "secret"), ""),
    (("coarse", "secret"), "n > 0"),
    (("one",), ""),
    ((), "n < 2"),
]
COARSE = AxisLevel(name="coarse", of="two", members={"xy": ["x", "y"], "z": ["z"]})


def counted(rows: list[tuple[str, str, str, int]], by: tuple[str, ...], where: str) -> CountTable:
    """Count as `tabulate` does, without an engine; small counts are hidden."""
    conditions = {"": lambda n: True, "n < 2": lambda n: n < 2, "n > 0": lambda n: n > 0}
    values = VALUES | {"coarse": ["xy", "z"]}
    counts = dict.fromkeys(product(*(values[column] for column in by)), 0)
    for one, two, secret, n in rows:
        own = {"one": one, "two": two, "coarse": "z" if two == "z" else "xy", "secret": secret}
        counts[tuple(own[column] for column in by)] += conditions[where](n)
    shown = {key: math.nan if 0 < count < 3 else count for key, count in counts.items()}
    return table(by, shown, where)


def truth(cube: Cube, place: int, rows: list[tuple[str, str, str, int]]) -> int:
    """Count the rows of a group by looking at each row, which the cube never does."""
    group = np.unravel_index(place, cube.shape)
    total = 0
    for one, two, secret, n in rows:
        own = {"one": one, "two": two, "secret": secret, "n < 2": n < 2, "n > 0": n > 0}
        total += all(
            int(node) in axis.above(axis.leaf(own[axis.name])) for axis, node in zip(cube.axes, group, strict=True)
        )
    return total


@settings(max_examples=25)
@given(rows=st.lists(ROW, min_size=1, max_size=40), shapes=st.lists(st.sampled_from(SHAPES), min_size=1, max_size=4))
def test_what_is_derived_is_true_for_all_tables(rows, shapes):
    tables = [counted(rows, by, where) for by, where in dict.fromkeys([*shapes, SHAPES[0]])]
    cube = fill(axes_of(tables, "secret", [COARSE]), tables)
    known = np.nonzero(~np.isnan(cube.counts))[0]
    for place in known:
        assert cube.counts[place] == truth(cube, int(place), rows)
        made = cube.made_of(int(place))
        assert sum(times * tables[table].counts[cell] for (table, cell), times in made.items()) == cube.counts[place]


def table(by: tuple[str, ...], counts: dict[tuple[str, ...], float], where: str = "") -> CountTable:
    return CountTable(name="t", by=by, keys=tuple(counts), counts=np.array(list(counts.values())), where=where)


def test_a_hidden_district_follows_from_its_region():
    districts = table(("two", "secret"), {("x", "p"): 7, ("y", "p"): math.nan, ("z", "p"): 9, **others("two")})
    regions = table(("coarse", "secret"), {("xy", "p"): 8, ("z", "p"): 9, ("xy", "q"): 20, ("z", "q"): 10})
    cube = fill(axes_of([districts, regions], "secret", [COARSE]), [districts, regions])
    (axis, secret) = cube.axes
    place = axis.leaf("y") * secret.size + secret.leaf("p")
    assert cube.counts[place] == 1
    assert set(cube.made_of(place).values()) == {1, -1}
    alone = fill(axes_of([districts], "secret", [COARSE]), [districts])
    assert math.isnan(alone.counts[place])


def others(name: str) -> dict[tuple[str, str], float]:
    return {(value, "q"): 10 for value in VALUES[name]}


def test_two_hidden_numbers_of_one_line_stay_hidden():
    hidden = table(("secret",), {("p",): math.nan, ("q",): math.nan})
    total = table((), {(): 3})
    assert np.isnan(fill(axes_of([hidden, total], "secret"), [hidden, total]).counts[1:]).all()


def test_the_less_noisy_of_two_numbers_is_taken():
    def noisy(deviation: float, count: float) -> CountTable:
        keys = (("p",), ("q",))
        return CountTable(
            name="t",
            by=("secret",),
            keys=keys,
            counts=np.array([count, 1]),
            noise=CountNoise.GAUSSIAN,
            deviation=deviation,
        )

    for tables in ([noisy(2, 5), noisy(3, 6)], [noisy(3, 6), noisy(2, 5)]):
        assert fill(axes_of(tables, "secret"), tables).counts[1] == 5


def test_axes_know_what_holds_a_value():
    axis = value_axis("two", ["x", "y", "z"], [COARSE])
    assert axis.above(axis.leaf("x")) == (ALL, axis.nodes["coarse", "xy"], axis.leaf("x"))
    assert axis.leaf("never") == -1
    assert condition_axis("n < 2").above(2) == (ALL, 2)


def test_a_table_without_the_attribute_and_odd_levels_are_refused():
    by_one = table(("one",), {("a",): 1, ("b",): 2})
    with pytest.raises(InvalidParameter, match="nothing to learn"):
        axes_of([by_one], "secret")
    with pytest.raises(InvalidParameter, match="leave the level out"):
        axes_of([by_one], "one", [COARSE])
    with pytest.raises(InvalidParameter, match="exactly one group"):
        value_axis("two", ["x", "y", "z"], [AxisLevel(name="half", of="two", members={"h": ["x"]})])
    with pytest.raises(InvalidParameter, match="two levels"):
        value_axis("two", ["x", "y", "z"], [COARSE, COARSE])
    both = table(("coarse", "two"), {("xy", "x"): 1})
    with pytest.raises(InvalidParameter, match="redundant"):
        axes_of([both, by_one], "two", [COARSE])


def test_a_table_says_each_group_once_and_its_noise_in_full():
    with pytest.raises(InvalidParameter, match="twice"):
        CountTable(name="t", by=("a",), keys=(("x",), ("x",)), counts=np.array([1, 2]))
    with pytest.raises(InvalidParameter, match="one count for each key"):
        CountTable(name="t", by=("a",), keys=(("x",),), counts=np.array([1, 2]))
    with pytest.raises(InvalidParameter, match="kind of noise"):
        CountTable(name="t", by=(), keys=((),), counts=np.array([1]), deviation=2)
    with pytest.raises(InvalidParameter, match="not negative"):
        CountTable(name="t", by=(), keys=((),), counts=np.array([1]), noise=CountNoise.LAPLACE, deviation=math.nan)


def test_too_many_groups_are_refused():
    many = [f"{i}" for i in range(400)]
    wide = [
        CountTable(name="t", by=(column, "secret"), keys=tuple((v, "p") for v in many), counts=np.ones(400))
        for column in ("a", "b", "c")
    ]
    with pytest.raises(InvalidParameter, match="are the most"):
        fill(axes_of(wide, "secret"), wide)


def test_counts_are_hidden_from_one_up_to_the_limit():
    rows = pa.table({"a": ["x", "x", "x", "y", "y", "z"], "n": [1, 1, 1, 1, 1, 2]})
    found = tabulate(rows, ["a"], where="n = 1", hide_below=3).value
    assert found.keys == (("x",), ("y",), ("z",))
    assert np.array_equal(found.counts, [3, math.nan, 0], equal_nan=True)
    assert tabulate(rows, []).value.counts == [6]
    assert tabulate(rows, ["a"], values={"a": ["z", "new"]}).value.keys == (("z",), ("new",))


def test_a_condition_that_is_no_condition_is_refused_without_its_values():
    rows = pa.table({"a": ["SECRET-123"]})
    with pytest.raises(InvalidParameter) as refusal:
        tabulate(rows, ["a"], where="CAST(a AS INTEGER) > 1")
    assert "SECRET-123" not in str(refusal.value)
    with pytest.raises(InvalidParameter, match="cannot be evaluated"):
        tabulate(rows, ["a"], where="nothing = 1")
