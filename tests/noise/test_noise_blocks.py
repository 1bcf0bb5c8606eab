"""One record must not be felt in the blocks of others, nor stop them, nor set a block free."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from discreet.adaptive import BlockMode, SubsampleAndAggregate
from discreet.adaptive.block_runner import _ENVIRONMENT, BlockLimits, Program, probe
from discreet.adaptive.block_sandbox import unpacked
from discreet.adaptive.subsample_aggregate import read_records, rows_of
from discreet.errors import Refused
from discreet.privacy.relation import Relation


def width(rows: Any) -> Any:
    """Tell how wide the texts of other blocks are, if that can be felt here."""
    return getattr(rows, "itemsize", 0)


@pytest.mark.parametrize("kind", ["U", "S"])
def test_one_long_text_changes_the_answer_of_one_block_only(kind: str) -> None:
    mode = BlockMode(blocks=50, domain=None, epsilon=Fraction(1), delta=Fraction(1, 1000))
    mechanism = SubsampleAndAggregate(function=width, aggregator=mode, relation=Relation.REPLACE_ONE, trusted=True)
    answers = [
        mechanism.true_answers(np.array(texts, dtype=kind)).value for texts in (["a"] * 100, ["a"] * 99 + ["long"])
    ]
    common = {max(set(found), key=found.count) for found in answers}
    assert len(common) == 1
    assert all(found.count(next(iter(common))) >= 49 for found in answers)


@pytest.mark.parametrize("kind", ["U", "S", [("name", "U9"), ("age", "i4")]])
def test_texts_of_an_array_are_sent_without_the_width_of_the_longest(kind: Any) -> None:
    rows = rows_of(read_records(np.zeros(3, dtype=kind)), [0])
    assert isinstance(unpacked(rows.packed, array=rows.array), list)


@pytest.mark.parametrize("record", [Fraction(10**5000, 3), [Fraction(1, 10**5000)], {"a": (Fraction(10**5000, 7),)}])
def test_a_ratio_of_too_many_digits_stops_nobody(record: Any) -> None:
    rows = rows_of(read_records([record, 5]), [1, 0])
    assert unpacked(rows.packed, array=rows.array)[0] == 5


THREADED = """
import os, threading, time
from discreet.adaptive import block_sandbox
from discreet.adaptive.block_runner import kernel_filter

if {threads}:
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
block_sandbox._lock({{"cpu_seconds": 5.0, "memory": 1 << 34, "filter": kernel_filter()}})
os._exit(0)
"""


@pytest.mark.parametrize(("threads", "code"), [(False, 0), (True, 70)])
def test_a_process_with_a_thread_that_no_filter_holds_is_not_taken_for_locked(threads: bool, code: int) -> None:
    command = [sys.executable, "-c", THREADED.format(threads=threads)]
    done = subprocess.run(command, env=_ENVIRONMENT, check=False, timeout=60)
    assert done.returncode == code


@pytest.mark.long
@pytest.mark.parametrize(("library", "runs"), [("pandas", True), ("polars", False)])
def test_a_library_runs_in_a_block_if_it_starts_no_threads(library: str, runs: bool) -> None:
    import_module(library)
    limits = BlockLimits(memory=1 << 34, cpu_seconds=Fraction(5), wall_seconds=Fraction(30), padded=False)
    program = Program(name="answer", source=f"import {library}\n\ndef answer(rows):\n    return {library}.__name__\n")
    if runs:
        probe(program, limits)
    else:
        with pytest.raises(Refused, match="threads"):
            probe(program, limits)
