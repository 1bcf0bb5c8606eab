"""What analysts ask is answered or refused as it should be, and the judge of such answers can be convinced of wrong."""

from __future__ import annotations

import pytest

import discreet as dp
from benchmarks.corpus.judge import judge
from benchmarks.corpus.names import CANARY, TRIALS, WHALE_NUMBER
from benchmarks.corpus.policies import DATASETS
from benchmarks.corpus.queries import queries, spelling
from benchmarks.corpus.standins import standin
from benchmarks.corpus.truth import plain_connection, rows_behind, truths
from benchmarks.peers.discreet_session import opened

QUERIES = queries()
BY_ID = {query.id: query for query in QUERIES}


@pytest.fixture(scope="module")
def sessions():
    made = {
        name: opened(dataset, standin(dataset), max_groups=3, max_rows=4, epsilon=10_000)
        for name, dataset in DATASETS.items()
    }
    yield made
    for session in made.values():
        session.close()


def test_corpus_is_large_and_some_of_it_must_be_refused():
    refused = [query for query in QUERIES if not query.answerable]
    assert len(QUERIES) >= 150
    assert 0.1 <= len(refused) / len(QUERIES) <= 0.25


def test_standins_are_the_same_every_time():
    assert all(
        standin(dataset)[name].equals(table)
        for dataset in DATASETS.values()
        for name, table in standin(dataset).items()
    )


@pytest.mark.parametrize("name", DATASETS)
def test_answerable_queries_have_a_plain_answer(name):
    connection = plain_connection(DATASETS[name], standin(DATASETS[name]))
    for query in QUERIES:
        if query.dataset == name and query.answerable:
            assert connection.execute(spelling(query, "plain")).fetchall(), query.id
            assert connection.execute(rows_behind(spelling(query, "plain"))).fetchall()[0][0] > 0, query.id


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.id)
def test_query_is_answered_or_refused_as_expected(query, sessions):
    def ask():
        delta = "1e-6" if query.unknown_keys else None
        return sessions[query.dataset].sql(query.sql, epsilon=1, delta=delta)

    if query.answerable:
        plan = ask()
        assert plan.explain().errors
        plan.release()
    else:
        with pytest.raises(dp.Refused):
            ask()


ONE = BY_ID["retail/countries"]


@pytest.fixture(scope="module")
def truth():
    return truths(DATASETS["retail"], (ONE,))[ONE.id]


def said(truth, **changed):
    """Say the plain truth in every trial, except where it is changed; the new unit counts in one group."""
    single = list(truth["single"])
    whale = [(*single[0][:-1], single[0][-1] + 1), *single[1:]]
    answers = {"whole": truth["whole"], "single": single, "whale": whale} | changed
    return {trial.world: {"rows": answers[trial.world]} for trial in TRIALS}


def test_judge_accepts_the_truth(truth):
    assert judge(ONE, said(truth), truth).outcome == "answered"


def test_judge_takes_a_refusal_for_a_refusal(truth):
    assert judge(ONE, said(truth) | {"whole": {"refused": "no"}}, truth).outcome == "refused"


def test_judge_rejects_other_numbers(truth):
    tenth_more = [(key, value * 1.1) for key, value in truth["whole"]]
    assert judge(ONE, said(truth, whole=tenth_more), truth).outcome == "wrong"


def test_judge_rejects_lost_groups(truth):
    assert judge(ONE, said(truth, whole=truth["whole"][:2]), truth).outcome == "wrong"


@pytest.mark.parametrize("key", [CANARY, str(WHALE_NUMBER)])
def test_judge_rejects_what_only_one_unit_has(truth, key):
    assert judge(ONE, said(truth, whale=[*truth["single"], (key, 1)]), truth).outcome == "wrong"


def test_judge_rejects_a_unit_that_counts_with_all_its_rows():
    query = BY_ID["retail/lines"]
    truth = truths(DATASETS["retail"], (query,))[query.id]
    assert judge(query, said(truth), truth).outcome == "answered"
    assert judge(query, said(truth, whale=truth["whale"]), truth).outcome == "wrong"
