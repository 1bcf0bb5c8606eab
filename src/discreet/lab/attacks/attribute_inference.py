"""Attribute inference: what a model or a synthetic table tells about one person, beyond what it tells about all.

An attacker who knows some columns of a person guesses a secret one. To be right proves nothing: smokers are guessed to
cough, whoever they are. So the same attacker also guesses from a release that was made without that person's row, and
only the difference was learnt from the row.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np

from discreet import noise
from discreet.errors import InvalidParameter
from discreet.lab.attacks.lab_tables import ColumnEncoder, Columns, encoder, numbered, read_columns, taken
from discreet.lab.attacks.membership import (
    Membership,
    Train,
    membership,
    membership_by_scores,
    softmax_regression,
    softmax_regressions,
)
from discreet.lab.attacks.success_rates import Success
from discreet.pages.progress import working
from discreet.privacy import Event, Relation, best_tpr
from discreet.privacy.not_private import NotPrivate

if TYPE_CHECKING:
    import altair as alt

__all__ = [
    "Attributes",
    "Guesser",
    "attributes",
    "attributes_of_table",
    "membership_of_scores",
    "membership_of_table",
    "through_model",
    "through_table",
]

Guesser: TypeAlias = Callable[[Mapping[str, Any]], Any]  # of what is known about a person, the guess


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes:
    """How often a secret is guessed right from releases with the person's row, and from such without it."""

    secret: str
    right: Success  # with the person's row in the release
    without: Success  # the same attacker on a release made without it
    commonest: Success  # whoever names what is most common among the others
    gained: int  # people guessed right only with their row
    lost: int  # people guessed right only without it
    ceiling: float | None  # the share of right guesses that no attacker exceeds, by the proven guarantee

    @property
    def advantage(self) -> float:
        """By how much more often the guess is right with the row."""
        return (self.gained - self.lost) / self.right.of

    def advantage_limits(self, error: float = 0.05) -> tuple[float, float]:
        """Enclose the advantage: the chances of a gain and of a loss by [CP34], each with half of the error."""
        gain, loss = Success(self.gained, self.right.of), Success(self.lost, self.right.of)
        (gain_low, gain_high), (loss_low, loss_high) = gain.interval(error / 2), loss.interval(error / 2)
        return gain_low - loss_high, gain_high - loss_low

    @property
    def p_value(self) -> float:
        """The chance of so many gains among all changes, or more, if a row told nothing. The exact sign test."""
        from scipy.stats import binom

        return float(binom.sf(self.gained - 1, self.gained + self.lost, 0.5))

    def refutes(self, event: Event, *, error: float = 0.05) -> bool:
        """Whether more was guessed right than a release of this event allows, but for a chance of `error`."""
        return self.right.interval(error)[0] > _ceiling(event, self.without, error)

    def __str__(self) -> str:
        low, high = (100 * end for end in self.advantage_limits())
        told: list[tuple[str, object]] = [
            (f"{self.secret} guessed right", self.right),
            ("… without the person's row", self.without),
            ("… by what is most common", self.commonest),
            ("learnt from the row", f"{100 * self.advantage:.1f} % ({low:.1f} to {high:.1f} %)"),
        ]
        if self.ceiling is not None:
            told.append(("no attacker exceeds", f"{100 * self.ceiling:.0f} %"))
        width = max(len(label) for label, _ in told)
        lines = [f"{self.right.of:,} people attacked, each in a release with their row and in one without"]
        return "\n".join(lines + [f"  {label:<{width}}  {value}" for label, value in told])

    __repr__ = __str__

    def to_json(self) -> str:
        """Write everything as one JSON object."""
        shares = {name: getattr(self, name) for name in ("right", "without", "commonest")}
        document = {
            "secret": self.secret,
            **{name: [share.hits, share.of, *share.interval()] for name, share in shares.items()},
            "advantage": self.advantage,
            "advantage_limits": list(self.advantage_limits()),
            "p_value": self.p_value,
            "ceiling": self.ceiling,
        }
        return json.dumps(document, ensure_ascii=False)

    def plot(self, *, title: str | None = None) -> alt.LayerChart:
        """Draw how often each attacker is right, with limits at 95 %."""
        from discreet.plots import error_bars

        labels, shares = ("with the row", "without it", "most common"), (self.right, self.without, self.commonest)
        lows, highs = zip(*(share.interval() for share in shares), strict=True)
        across = f"{self.secret} guessed right (share)"
        return error_bars(labels, [share.share for share in shares], lows, highs, across=across, title=title)


@working("attacking", terminal=False)
def attributes(
    release: Callable[[Columns], Guesser],
    table: Columns,
    *,
    secret: str,
    people: int = 100,
    event: Event | None = None,
) -> NotPrivate[Attributes]:
    """Attribute inference: guess a secret of some people from releases of a table, with and without their row.

    `release(table)` makes the release, a model or a synthetic table, and returns the attacker who has seen it: a
    function from what is known about a person to a guess. `through_model` and `through_table` make one. It is called
    anew for every guess, so guesses are independent if the release is random. `event` is what it claims to spend on one
    person more or less: it gives the ceiling.

    Args:
        release: The function from a table to the attacker who has seen what was made of it.
        table: The private table, by columns, as `read_columns` returns it.
        secret: The column that is guessed.
        people: How many people, drawn at random, are attacked.
        event: What a release claims to spend; without it there is no ceiling.

    Returns:
        How many guesses were right, with and without the row of the person, marked as not private.

    Raises:
        InvalidParameter: If there is no such column, or columns differ in length.

    Examples:
        >>> import numpy as np
        >>> table = {"age": np.arange(40), "ill": np.array(["yes", "no"] * 20)}
        >>> copied = dp.attacks.through_table(dict, secret="ill")  # A "synthetic" table that is the table itself.
        >>> dp.attacks.attributes(copied, table, secret="ill", people=10).value.right.share
        1.0
    """
    count = _check(table, secret)
    if people < 1:
        raise InvalidParameter("`people`, the number of people to attack, must be at least 1")
    chosen = noise.permutation(count)[: min(people, count)]
    pairs = np.array([_both(release, table, secret, int(one)) for one in chosen], bool).reshape(-1, 3)
    right, without, common = (Success(int(column.sum()), len(pairs)) for column in pairs.T)
    found = Attributes(
        secret=secret,
        right=right,
        without=without,
        commonest=common,
        gained=int((pairs[:, 0] & ~pairs[:, 1]).sum()),
        lost=int((~pairs[:, 0] & pairs[:, 1]).sum()),
        ceiling=None if event is None else _ceiling(event, without, 0.05),
    )
    return NotPrivate(found)


def _both(release: Callable[[Columns], Guesser], table: Columns, secret: str, one: int) -> tuple[bool, bool, bool]:
    """Attack one person: with the row, without it, and by what is most common among the others."""
    others = taken(table, np.arange(len(table[secret])) != one)
    known = {name: column[one] for name, column in table.items() if name != secret}
    truth = table[secret][one]
    values, counts = np.unique(others[secret].astype(str), return_counts=True)
    common = values[np.argmax(counts)] == str(truth)
    return str(release(table)(known)) == str(truth), str(release(others)(known)) == str(truth), bool(common)


def _check(table: Columns, secret: str) -> int:
    lengths = {len(column) for column in table.values()}
    if secret not in table or len(table) < 2 or len(lengths) != 1:
        raise InvalidParameter("a table must map names to columns of equal length: the secret and at least one more")
    (count,) = lengths
    if count < 3:
        raise InvalidParameter("there must be at least three people")
    return count


def _ceiling(event: Event, without: Success, error: float) -> float:
    """To guess right is a test of "with the row": its rate of false alarms is that of guessing right without it.

    The trade-off curve is concave in that rate, so what holds for one person holds for the mean over people.
    """
    return best_tpr(event, Fraction(without.interval(error)[1]), relation=Relation.ADD_REMOVE)


# --- attribute_guessers ---
# Attackers who guess an attribute: through a model that was trained on the table, or through a synthetic table.


def through_model(train: Train, table: Columns, *, label: str, secret: str) -> Callable[[Columns], Guesser]:
    """Train a model of `label` on all other columns; the attacker knows the label and tries every secret. [FJR15]

    The guess is the secret whose confidence in the true label, weighed by how common that secret is, is highest. If
    label and secret are the same, the model is asked right away. Which values there are and how common a secret is are
    taken from `table`, and are the same with and without a row.

    Args:
        train: The function from rows and labels to a function from rows to the probabilities of all classes.
        table: The private table, by columns, as `read_columns` returns it.
        label: The column that the model tells.
        secret: The column that is guessed: the label, or one of the others.

    Returns:
        The function from a table to an attacker, for `attributes`.

    Examples:
        >>> import numpy as np
        >>> table = {"age": np.arange(40), "ill": np.array(["yes", "no"] * 20)}
        >>> def commonest(rows, labels):
        ...     shares = np.bincount(labels, minlength=2) / len(labels)
        ...     return lambda asked: np.tile(shares, (len(asked), 1))
        >>> release = dp.attacks.through_model(commonest, table, label="ill", secret="ill")
        >>> dp.attacks.attributes(release, table, secret="ill", people=10).value.right.of
        10
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

    Args:
        synthesise: The function from columns to the columns of a synthetic table.
        secret: The column that is guessed.

    Returns:
        The function from a table to an attacker, for `attributes`.

    Examples:
        >>> import numpy as np
        >>> table = {"age": np.arange(40), "ill": np.array(["yes", "no"] * 20)}
        >>> release = dp.attacks.through_table(dict, secret="ill")  # A "synthetic" table that is the table itself.
        >>> dp.attacks.attributes(release, table, secret="ill", people=10).value.right.share
        1.0
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


# --- table_models ---
# What a plain model of your own table would tell: the attacks on models, with a model that comes with the lab.


@working("attacking", terminal=False)
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

    Args:
        table: The private table: a file of this machine, a frame or an Arrow table.
        label: The column that models are trained to tell.
        columns: The columns that they are given.
        people: How many rows, drawn at random, take part.
        shadows: How many models the attacker trains.
        targets: How many models are attacked.
        train: The trainer.

    Returns:
        How many members each attacker finds, marked as not private.

    Raises:
        InvalidParameter: If there is no such column, or the label is among the columns.

    Examples:
        >>> from pathlib import Path
        >>> files = dp.data.copy("visits", Path())
        >>> found = dp.attacks.membership_of_table(
        ...     "visits.csv", label="satisfied", columns=["age", "clinic"], people=60, shadows=4, targets=1
        ... )
        >>> [attacker.name for attacker in found.value.attackers]
        ['loss', 'LiRA', 'RMIA']
    """
    _table_models_check(label, columns)
    read = read_columns(table, [*columns, label], people=people)
    rows, labels, trainer = encoder(read, columns)(read), numbered(read[label])[1], train or softmax_regressions
    return membership(trainer, rows, labels, shadows=shadows, targets=targets, many=train is None)


def membership_of_scores(table: Any, *, score: str, member: str) -> NotPrivate[Membership]:
    """Judge the scores of a table, of anybody's attack on anybody's model: a score and the truth for each person."""
    read = read_columns(table, [score, member])
    if not np.issubdtype(read[score].dtype, np.number) or not set(np.unique(read[member].astype(str))) <= _TRUTHS:
        raise InvalidParameter("scores must be numbers, and members marked by true and false, or 1 and 0")
    return membership_by_scores(read[score], [text in _YES for text in read[member].astype(str)])


@working("attacking", terminal=False)
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

    Args:
        table: The private table: a file of this machine, a frame or an Arrow table.
        secret: The column that is guessed.
        known: The columns that the attacker knows.
        rows: Of how many rows, drawn at random, the release is made.
        people: How many people are attacked.
        synthesise: Makes a synthetic table from columns, instead of a model.

    Returns:
        How many guesses were right, with and without the row of the person, marked as not private.

    Raises:
        InvalidParameter: If there is no such column, or the secret is among the known ones.

    Examples:
        >>> from pathlib import Path
        >>> files = dp.data.copy("visits", Path())
        >>> found = dp.attacks.attributes_of_table(
        ...     "visits.csv", secret="satisfied", known=["age", "clinic"], rows=50, people=5
        ... )
        >>> found.value.right.of
        5
    """
    _table_models_check(secret, known)
    read = read_columns(table, [*known, secret], people=rows)
    if synthesise is not None:
        return attributes(through_table(synthesise, secret=secret), read, secret=secret, people=people)
    asked = through_model(softmax_regression, read, label=secret, secret=secret)
    return attributes(asked, read, secret=secret, people=people)


_YES = {"True", "true", "1", "1.0"}
_TRUTHS = _YES | {"False", "false", "0", "0.0"}


def _table_models_check(label: str, columns: Sequence[str]) -> None:
    if not columns or label in columns:
        raise InvalidParameter("name the columns to predict from, without the label itself")
