"""An evaluation as one JSON object: every figure of the page, under names that do not change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from discreet.evaluation.closeness import Closeness, ClosestDistances
from discreet.evaluation.downstream import Downstream
from discreet.evaluation.fidelity import Way
from discreet.evaluation.guessing import SecretGuesses
from discreet.evaluation.membership import MembershipSearch
from discreet.evaluation.priced import NoisyComparison, NoisyWay
from discreet.evaluation.promised import guess_of
from discreet.evaluation.workload import Workload

if TYPE_CHECKING:
    from discreet.attacks import Attacker, Success
    from discreet.evaluation.evaluation import Attacked, Evaluation, Likeness
from discreet.synth.promise import Promise

__all__ = ["document"]


def document(evaluation: Evaluation) -> dict[str, Any]:
    """Write everything but the pictures."""
    attacked, priced = evaluation.attacked, evaluation.priced
    return {
        "title": evaluation.title,
        "standing": evaluation.standing,
        "heading": evaluation.heading,
        "verdicts": [{"kind": one.kind, "about": one.about, "text": one.text} for one in evaluation.verdicts],
        "columns": list(evaluation.columns),
        "rows": evaluation.rows,
        "promise": None if evaluation.promise is None else _promise(evaluation.promise),
        "likeness": _likeness(evaluation.likeness, evaluation.columns),
        "attacks": None if attacked is None else _attacked(attacked, evaluation.error),
        "charged": None if priced is None else _priced(priced, evaluation.columns),
        "notes": list(evaluation.notes),
    }


def _promise(promise: Promise) -> dict[str, Any]:
    return {
        "epsilon": promise.epsilon,
        "delta": float(promise.delta),
        "relation": promise.relation.name,
        "unit": promise.unit,
        "best_guess": guess_of(promise),
    }


def _likeness(likeness: Likeness, columns: Sequence[str]) -> dict[str, Any]:
    fidelity, links = likeness.fidelity, likeness.associations
    down, asked, numbers = likeness.downstream, likeness.workload, likeness.correlations
    return {
        "marginals": [] if fidelity is None else [_way(way, columns) for way in fidelity.ways],
        "links": None
        if links is None
        else {"real": links.real, "synthetic": links.synthetic, "largest_change": links.largest},
        "correlations": None
        if numbers is None
        else {"columns": numbers.names, "real": numbers.real, "synthetic": numbers.synthetic},
        "columns": [
            {
                "name": one.name,
                "distance": one.distance,
                "undeclared": one.lost,
                "cells": one.labels,
                "real": one.real,
                "synthetic": one.synthetic,
            }
            for one in likeness.overlays
        ],
        "models": None if down is None else _downstream(down),
        "questions": None if asked is None else _workload(asked),
    }


def _way(way: Way, columns: Sequence[str]) -> dict[str, Any]:
    return {
        "columns": way.columns,
        "mean": way.found.mean,
        "worst": {"columns": [columns[at] for at in way.found.worst[0]], "distance": way.found.worst[1]},
        "fresh_sample": way.fresh,
        "columns_apart": way.apart,
        "kept": way.kept,
        "compared": len(way.found.by_clique),
        "left_out": way.left_out,
    }


def _downstream(down: Downstream) -> dict[str, Any]:
    return {
        "label": down.label,
        "measure": "R2" if down.number else "accuracy",
        "models": [{"name": one.name, "synthetic": one.synthetic, "real": one.real} for one in down.models],
        "naive": down.naive,
        "tested": down.tested,
        "test_rows_were_synthesised": down.seen,
    }


def _workload(asked: Workload) -> list[dict[str, Any]]:
    return [
        {
            "columns": list(one.columns),
            "cells": one.cells,
            "synthetic": one.synthetic,
            "direct_alone": one.alone,
            "direct_all": one.shared,
        }
        for one in asked.asked
    ]


def _attacked(attacked: Attacked, error: float) -> dict[str, Any]:
    return {
        "error": error,
        "closest": None if attacked.closeness is None else _closeness(attacked.closeness, error),
        "membership": [_search(one, error) for one in attacked.searches],
        "attributes": [_guessed(one, error) for one in attacked.guessed],
    }


def _closeness(near: Closeness, error: float) -> dict[str, Any]:
    return {
        "copied": near.copied(error),
        "members": _spread(near.members),
        "others": None if near.others is None else _spread(near.others),
        "real": _spread(near.real),
    }


def _spread(spread: ClosestDistances) -> dict[str, Any]:
    return {"equal": _success(spread.equal), "quantiles": list(spread.quantiles)}


def _search(search: MembershipSearch, error: float) -> dict[str, Any]:
    return {
        "refitted": search.refitted,
        "tables": search.tables,
        "refutes": search.refutes(error),
        "finds": search.finds(error),
        "epsilon_shown": search.level,
        "attackers": [_attacker(search, one) for one in search.attackers],
    }


def _attacker(search: MembershipSearch, attacker: Attacker) -> dict[str, Any]:
    found = [
        {
            "rate": one.rate,
            "members": _success(one.members),
            "alarms": _success(one.alarms),
            "ceiling": search.ceiling(one),
        }
        for one in attacker.found
    ]
    return {"name": attacker.name, "auc": attacker.auc, "found": found}


def _guessed(guessed: SecretGuesses, error: float) -> dict[str, Any]:
    return {
        "secret": guessed.secret,
        "refitted": guessed.refitted,
        "inside": _success(guessed.inside),
        "outside": _success(guessed.outside),
        "commonest": _success(guessed.commonest),
        "ceiling": guessed.ceiling(),
        "refutes": guessed.refutes(error),
        "gains": guessed.gains(error),
    }


def _success(success: Success) -> dict[str, Any]:
    low, high = success.interval()
    return {"hits": success.hits, "of": success.of, "low": low, "high": high}


def _priced(priced: NoisyComparison, columns: Sequence[str]) -> dict[str, Any]:
    return {
        "spent": _promise(priced.spent),
        "marginals": [_noisy(way, columns) for way in priced.ways],
    }


def _noisy(way: NoisyWay, columns: Sequence[str]) -> dict[str, Any]:
    tables = [{"columns": [columns[at] for at in one], "distance": value} for one, value in way.by_clique.items()]
    return {
        "columns": way.columns,
        "mean": way.mean,
        "mean_plus_minus": way.mean_error,
        "plus_minus": way.error,
        "tables": tables,
    }
