"""The benchmark page quotes the results and nothing else."""

from __future__ import annotations

import re
import subprocess
import sys
import time

import pytest

from benchmarks.__main__ import TOPICS
from benchmarks.results import Results
from benchmarks.scoreboard import GROUPS, HEADLINES, Cell, Headline, limits_reached
from benchmarks.table import Table, number
from benchmarks.timing import alternate, cpu_seconds, fastest
from benchmarks.write_docs import PAGES, pages


def test_pages_quote_the_results():
    assert {path.name: path.read_text(encoding="utf-8") for path in PAGES.glob("*.md")} == pages()


def test_the_scoreboard_has_every_topic_once():
    assert sorted(topic for topics in GROUPS.values() for topic in topics) == sorted(TOPICS) == sorted(HEADLINES)
    text = (PAGES / "index.md").read_text(encoding="utf-8")
    assert [text.count(f"]({topic.replace('_', '-')}.md)") for topic in TOPICS] == [1] * len(TOPICS)


@pytest.mark.parametrize("topic", TOPICS)
def test_a_line_of_the_scoreboard_quotes_the_page_of_its_topic(topic):
    tables = TOPICS[topic].tables(Results.read(topic))
    page = (PAGES / f"{topic.replace('_', '-')}.md").read_text(encoding="utf-8")
    _, _, ours, best, _, limit, reached, _ = HEADLINES[topic].line(topic, tables)
    assert ours in page
    assert best == "–" or best.rpartition(": ")[2] in page
    if reached != "–":
        assert re.search(rf"{re.escape(limit)}(?: \([^)]*\))?: {reached}", page)


SMALL = (
    Table(
        "times",
        ("who", "s", "goals"),
        (("ours", "2", "≤ 3 s: yes, ≤ 1 s: NO"), ("a", "9 (8 to 10)", ""), ("b", "4", "")),
    ),
    Table("more", ("what", "goal"), (("x", "yes"), ("y", "NO")), ("all kept: yes",)),
)


def test_a_line_takes_the_best_peer_and_its_own_limit():
    peers = {name: Cell("s", {"who": name}) for name in ("a", "b")}
    line = Headline("T", "seconds", Cell("s", {"who": "ours"}), "≤ 1 s", peers).line("t_t", SMALL)
    assert line == ("[T](t-t.md)", "seconds", "2", "b: 4", "2.00×", "≤ 1 s", "NO", "3 of 5")
    more = Headline("T", "seconds", Cell("s", {"who": "ours"}), "≤ 3 s", peers, more_is_better=True).line("t", SMALL)
    assert more[3:7] == ("a: 9", "–", "≤ 3 s", "yes")


def test_a_line_that_quotes_nothing_is_refused():
    with pytest.raises(ValueError, match="unpack"):
        Headline("T", "seconds", Cell("s", {"who": "nobody"})).line("t", SMALL)
    with pytest.raises(ValueError, match="unpack"):
        Headline("T", "seconds", Cell("s", {"who": "ours"}), "≤ 9 s").line("t", SMALL)


def test_limits_are_counted_in_cells_and_remarks():
    assert limits_reached(SMALL) == (3, 5)


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


def test_the_work_of_a_worker_is_counted():
    script = "import sys, time\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\nsys.stdin.read()"
    before, own = cpu_seconds(), time.process_time()
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as worker:
        worker.stdout.readline()
        both, own = cpu_seconds() - before, time.process_time() - own
        worker.stdin.close()
    assert both - own >= 0.2  # The clock is read once more for the own time.
    assert cpu_seconds() - before >= both - 0.05  # It ended, and is told in whole hundredths.
