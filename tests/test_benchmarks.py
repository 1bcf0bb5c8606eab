"""The benchmark page quotes the results and nothing else."""

from __future__ import annotations

import pytest

from benchmarks.__main__ import TOPICS
from benchmarks.results import Results
from benchmarks.table import number
from benchmarks.timing import alternate, fastest
from benchmarks.write_docs import PAGE, page


def test_page_quotes_the_results():
    assert PAGE.read_text(encoding="utf-8") == page()


@pytest.mark.parametrize("topic", TOPICS)
def test_results_are_of_a_full_run_and_miss_no_peer(topic):
    results = Results.read(topic)
    assert not results.quick
    assert results.failures == {}
    assert results.rows


@pytest.mark.parametrize(
    ("value", "text"), [(0.0712, "0.0712"), (2.514, "2.51"), (10_400.3, "10,400"), (9.999, "10.0"), (0.0, "0.00")]
)
def test_numbers_have_three_digits(value, text):
    assert number(value) == text


def test_jobs_take_turns():
    order = []
    alternate({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, repetitions=3)
    assert order == ["a", "b"] * 3


def test_fastest_stops_when_the_time_is_up():
    assert fastest(lambda: None, repetitions=1000, seconds=0.0).repetitions == 1
