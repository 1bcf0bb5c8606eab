"""Published tables are read back as they are, with the noise that they declare."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from discreet.errors import InvalidParameter
from discreet.lab.attacks import published_counts
from discreet.lab.attacks.count_tables import CountNoise

TABLE = pa.table({"sex": ["f", "m"], "n": [7, None], "n_noise_sd": [2.5, 3.0]})


def test_a_table_of_a_bundle_brings_its_noise():
    read = published_counts(TABLE, by=["sex"], count="n", where="old", name="t")
    assert (read.keys, read.where, read.name) == ((("f",), ("m",)), "old", "t")
    assert (read.noise, read.deviation) == (CountNoise.GAUSSIAN, 3.0)
    assert np.array_equal(read.counts, [7, math.nan], equal_nan=True)


def test_a_table_without_a_deviation_is_exact():
    read = published_counts(TABLE.drop_columns(["n_noise_sd"]), by=["sex"], count="n")
    assert (read.noise, read.deviation) == (CountNoise.NONE, 0.0)


def test_a_total_has_no_keys(tmp_path):
    path = tmp_path / "total.csv"
    path.write_text("n,n_noise_sd\n12,1.5\n")
    read = published_counts(path, by=[], count="n", noise=CountNoise.LAPLACE)
    assert (read.keys, list(read.counts), read.noise) == (((),), [12.0], CountNoise.LAPLACE)


def test_a_column_that_is_not_there_is_refused():
    with pytest.raises(InvalidParameter, match="there is no column 'm'"):
        published_counts(TABLE, by=["sex"], count="m")
