"""Metrics in the format of Prometheus, for whoever holds the data. They are not private, and say so.

They are counted when they are asked for, from the state and the ledgers, about the data sets that the caller sees.
There is no process, duration or queue metric for anybody else: such numbers follow the rows.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from discreet.server.accounts import Caller
from discreet.server.app import Server

__all__ = ["METRICS_MEDIA", "metrics_text"]

METRICS_MEDIA = "text/plain; version=0.0.4; charset=utf-8"
_MARK = "NOT PRIVATE, for the custodian only: "


def metrics_text(server: Server, caller: Caller) -> bytes:
    """Return the metrics that a caller may see."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Counted(server, caller))
    return generate_latest(registry)


class _Counted:
    """What is counted when it is asked for."""

    def __init__(self, server: Server, caller: Caller) -> None:
        self._server = server
        self._seen = {one.name: one for one in server.shelf if caller.sees(one.name)}

    def collect(self) -> Iterator[Metric]:
        """Count."""
        yield _gauge("discreet_ready", "1 if state and ledgers can be reached.", float(self._server.readiness.ready()))
        yield _gauge("discreet_uptime_seconds", "Seconds since this process began to serve.", self._uptime())
        yield self._responses()
        yield from self._by_dataset()
        yield self._decisions()

    def _uptime(self) -> float:
        return time.monotonic() - self._server.started

    def _responses(self) -> Metric:
        made = CounterMetricFamily(
            "discreet_http_responses", _MARK + "Answers over HTTP, by status.", labels=["status"]
        )
        for status, count in sorted(self._server.responses.items()):
            made.add_metric([str(status)], float(count))
        return made

    def _by_dataset(self) -> Iterator[Metric]:
        jobs = GaugeMetricFamily("discreet_releases", _MARK + "Releases by state.", labels=["dataset", "state"])
        for row in self._server.state.rows(
            "SELECT dataset, state, COUNT(*) AS n FROM jobs GROUP BY 1, 2 ORDER BY 1, 2"
        ):
            if row["dataset"] in self._seen:
                jobs.add_metric([row["dataset"], row["state"]], float(row["n"]))
        yield jobs
        spent = GaugeMetricFamily("discreet_budget_spent_ratio", _MARK + "Spent of the budget.", labels=["dataset"])
        after = GaugeMetricFamily("discreet_answer_after_seconds", _MARK + "Declared time.", labels=["dataset"])
        for name, served in self._seen.items():
            spent.add_metric([name], _spent(served))
            after.add_metric([name], served.answer_after)
        yield from (spent, after)

    def _decisions(self) -> Metric:
        labels = ["dataset", "what", "outcome"]
        made = CounterMetricFamily("discreet_decisions", _MARK + "Decisions in the log.", labels=labels)
        query = "SELECT dataset, what, outcome, COUNT(*) AS n FROM decisions GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
        for row in self._server.state.rows(query):
            if row["dataset"] in self._seen:
                made.add_metric([row["dataset"], row["what"], row["outcome"]], float(row["n"]))
        return made


def _gauge(name: str, words: str, value: float) -> Metric:
    made = GaugeMetricFamily(name, _MARK + words)
    made.add_metric([], value)
    return made


def _spent(served: Any) -> float:
    try:
        return float(served.session.spent.share)
    except Exception:  # noqa: BLE001 - a ledger that cannot be read has no number; readiness says so
        return float("nan")
