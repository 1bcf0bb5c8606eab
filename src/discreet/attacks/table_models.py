"""What a plain model of your own table would tell: the attacks on models, with a model that comes with the lab."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from discreet.attacks.attribute_guessers import through_model, through_table
from discreet.attacks.attributes import Attributes, attributes
from discreet.attacks.encoding import Columns, encoder, numbered, read_columns
from discreet.attacks.membership import Membership, membership, membership_by_scores
from discreet.attacks.shadows import Train
from discreet.attacks.softmax import softmax_regression, softmax_regressions
from discreet.errors import InvalidParameter
from discreet.privacy.notprivate import NotPrivate

__all__ = ["attributes_of_table", "membership_of_scores", "membership_of_table"]


def membership_of_table(
    table: Any,
    *,
    label: str,
    columns: Sequence[str],
    people: int = 1000,
    shadows: int = 32,
    targets: int = 4,
    train: Train | None = None,
) -> NotPrivate[Membership]:
    """Train models of `label` on some people and columns, and guess who was in their data.

    `train(rows, labels)` is the trainer, as in `membership`; without one it is a plain logistic regression.
    """
    _check(label, columns)
    read = read_columns(table, [*columns, label], people=people)
    rows, labels, trainer = encoder(read, columns)(read), numbered(read[label])[1], train or softmax_regressions
    return membership(trainer, rows, labels, shadows=shadows, targets=targets, many=train is None)


def membership_of_scores(table: Any, *, score: str, member: str) -> NotPrivate[Membership]:
    """Judge the scores of a table, of anybody's attack on anybody's model: a score and the truth for each person."""
    read = read_columns(table, [score, member])
    if not np.issubdtype(read[score].dtype, np.number) or not set(np.unique(read[member].astype(str))) <= _TRUTHS:
        raise InvalidParameter("scores must be numbers, and members marked by true and false, or 1 and 0")
    return membership_by_scores(read[score], [text in _YES for text in read[member].astype(str)])


def attributes_of_table(
    table: Any,
    *,
    secret: str,
    known: Sequence[str],
    rows: int = 300,
    people: int = 50,
    synthesise: Callable[[Columns], Columns] | None = None,
) -> NotPrivate[Attributes]:
    """Guess a secret of people of some rows: from a model that was trained with their row, and from one without.

    The model is a plain logistic regression of the secret on what is known. With `synthesise`, a function from columns
    to columns, the guesses come from the nearest rows of a synthetic table instead.
    """
    _check(secret, known)
    read = read_columns(table, [*known, secret], people=rows)
    if synthesise is not None:
        return attributes(through_table(synthesise, secret=secret), read, secret=secret, people=people)
    asked = through_model(softmax_regression, read, label=secret, secret=secret)
    return attributes(asked, read, secret=secret, people=people)


_YES = {"True", "true", "1", "1.0"}
_TRUTHS = _YES | {"False", "false", "0", "0.0"}


def _check(label: str, columns: Sequence[str]) -> None:
    if not columns or label in columns:
        raise InvalidParameter("say from which columns, and leave out the one that is to be told")
