"""Attackers who guess an attribute: through a model that was trained on the table, or through a synthetic table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, final

import numpy as np

from discreet.attacks.attributes import Guesser
from discreet.attacks.encoding import ColumnEncoder, Columns, encoder, numbered
from discreet.attacks.shadows import Train

__all__ = ["through_model", "through_table"]


def through_model(train: Train, table: Columns, *, label: str, secret: str) -> Callable[[Columns], Guesser]:
    """Train a model of `label` on all other columns; the attacker knows the label and tries every secret. [FJR15]

    The guess is the secret whose confidence in the true label, weighed by how common that secret is, is highest. If
    label and secret are the same, the model is asked right away. Which values there are and how common a secret is are
    taken from `table`, and are the same with and without a row.
    """
    codes = encoder(table, [name for name in table if name != label])
    if label == secret:
        return lambda rows: _asking(_Model(train, codes, rows, label))
    values, first, counts = np.unique(table[secret].astype(str), return_index=True, return_counts=True)
    tried = table[secret][first]
    return lambda rows: _inverting(_Model(train, codes, rows, label), {secret: tried}, values, counts, label)


def through_table(synthesise: Callable[[Columns], Columns], *, secret: str) -> Callable[[Columns], Guesser]:
    """Make a synthetic table; the attacker looks for the rows that agree with a person in most columns.

    Numbers agree as far as they are near, in deviations of the synthetic column. Among equally near rows the commonest
    secret is guessed.
    """
    return lambda rows: _nearest(synthesise(rows), secret)


@final
class _Model:
    """A trained model that knows the names of its classes; a class that nobody had has none."""

    def __init__(self, train: Train, codes: ColumnEncoder, rows: Columns, label: str) -> None:
        self.classes, labels = numbered(rows[label])
        self._codes, self._predict = codes, train(codes(rows), labels)

    def __call__(self, asked: Columns) -> Any:
        return np.asarray(self._predict(self._codes(asked)), np.float64)


def _asking(model: _Model) -> Guesser:
    return lambda known: model.classes[int(np.argmax(model(_row(known, 1))[0]))]


def _inverting(model: _Model, tried: Columns, values: Any, counts: Any, label: str) -> Guesser:
    def guess(known: Mapping[str, Any]) -> Any:
        asked = {**_row({name: value for name, value in known.items() if name != label}, len(values)), **tried}
        sure = model(asked) @ (model.classes == str(known[label]))
        return values[int(np.argmax(sure * counts))]

    return guess


def _nearest(synthetic: Columns, secret: str) -> Guesser:
    names = [name for name in synthetic if name != secret]
    secrets = synthetic[secret].astype(str)

    def guess(known: Mapping[str, Any]) -> Any:
        if not len(secrets):
            return ""
        near = np.sum([_agreement(synthetic[name], known[name]) for name in names], axis=0)
        values, counts = np.unique(secrets[near >= near.max() - 1e-9], return_counts=True)
        return values[int(np.argmax(counts))]

    return guess


def _agreement(column: Any, value: Any) -> Any:
    if np.issubdtype(column.dtype, np.number):
        spread = float(np.nanstd(column)) or 1.0
        return np.nan_to_num(np.exp(-np.abs(column.astype(np.float64) - float(value)) / spread))
    return (column.astype(str) == str(value)).astype(np.float64)


def _row(known: Mapping[str, Any], times: int) -> Columns:
    return {name: np.array([value] * times) for name, value in known.items()}
