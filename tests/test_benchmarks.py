"""The benchmark page quotes the results and nothing else."""

from __future__ import annotations

import re
import subprocess
import sys
import time

import pytest

from benchmarks import bench_engines
from benchmarks.__main__ import TOPICS
from benchmarks.bench_engines import ON_SPARK
from benchmarks.engine_names import COUNTED, DISTINCT, SUMMED
from benchmarks.results import Results
from benchmarks.scoreboard import GROUPS, HEADLINES, Cell, Headline, limits_reached
from benchmarks.synth_duels import difference, duel_goal, duel_table, has_met
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


def _on_spark(job, wall, beside=ON_SPARK, rows=10**7, **more):
    return {"job": job, "wall": wall, "cpu": wall, "beside": beside, "rows": rows, "spark": "4.3.0"} | more


def test_a_peer_that_was_stopped_is_told_as_a_bound_and_judged_only_if_that_suffices():
    ours = [_on_spark(COUNTED, 10.0), _on_spark(DISTINCT, 4.0)]
    for limit, verdict in ((99.0, "not measured"), (100.0, "yes")):
        stopped = _on_spark(COUNTED, limit, "tmlt.analytics", stopped=True)
        results = Results("engines", False, "", {}, {}, [*ours, stopped])
        first, _, peer = bench_engines.tables(results)[0].rows
        assert first[-1] == f"≤ 3× {DISTINCT}: yes, ≥ 10× Tumult Analytics: {verdict}"
        assert peer[4] == f"> {number(limit)}"
        assert peer[7] == f"> {number(limit / 10)}×"


def test_a_cluster_is_estimated_from_the_largest_size_that_was_measured():
    told = {"shuffled": 2 * 10**9, "parts": 10, "reported": 10**7, "task": 0.5}
    rows = [_on_spark(SUMMED, 99.0), _on_spark(SUMMED, 160.0, rows=10**8)]
    constants = [{"job": "constants", "beside": ON_SPARK, "rows": size} | told for size in (10**7, 10**8)]
    results = Results("engines", False, "", {}, {}, [*rows, *constants])
    work, shuffle, _, reports = bench_engines.tables(results)[2].rows
    assert work[1:] == ("1,600 ns a row", "44.4 core hours", "117 s in 3 waves of tasks")
    assert shuffle[1:] == ("20.0 bytes a row", "2.00 TB", "20.0 GB, 16.0 s of network")
    assert reports[1:3] == ("1.00 MB a part", "4.10 GB, 3.81× of Spark's usual limit")


def test_the_cost_is_judged_linear_only_if_it_is():
    for wall, verdict in ((129.0, "yes"), (131.0, "NO")):
        rows = [_on_spark(SUMMED, 10.0), _on_spark(SUMMED, wall, rows=10**8)]
        growth = bench_engines.tables(Results("engines", False, "", {}, {}, rows))[1]
        assert f"as at 10,000,000: {verdict}." in growth.remarks[0]


def test_means_of_runs_are_told_apart_only_where_their_interval_says_so():
    """Of AIM beside AIM: too few runs say nothing, equal ones are alike, and a peer that is surely better is named."""
    low, high = difference([0.3, 0.31, 0.29], [0.2, 0.21, 0.19])
    assert 0 < low < 0.1 < high
    rows = [
        {"subject": subject, "dataset": "iris", "method": "aim", "epsilon": "1", "tvd2": error, "tvd3": 0.5}
        for subject, errors in (("discreet", (0.3, 0.31, 0.29)), ("opendp-mbi", (0.2, 0.21, 0.19)))
        for error in errors
    ]
    shown = Results("synth_tables", False, "", {}, {}, rows)
    assert has_met(shown)
    assert duel_goal(shown).reached is False
    assert "worse / alike" in duel_table(shown).text()
