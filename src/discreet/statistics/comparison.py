"""Which mechanism will be more accurate? Predicted from public facts, before any data are read."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, final

import numpy as np

from discreet import plots
from discreet.adaptive.no_answer import NoAnswer
from discreet.errors import InvalidParameter
from discreet.exact import Number, exact, positive, positive_integer, probability
from discreet.privacy.relation import Relation, read_relation
from discreet.schema.columns import Bounds
from discreet.statistics.budget_and_payment import grid_from
from discreet.statistics.chooser_inputs import ChooserInputs, Predicted
from discreet.statistics.expected import Expected, Floats
from discreet.statistics.method_choice import Method, applicable, best, mean_methods, rank_methods
from discreet.statistics.mode_choice import ModeOutlook, best_mode, mode_facts, mode_methods
from discreet.statistics.regressions import AUTO_METHOD, METHODS, regression

if TYPE_CHECKING:
    import altair as alt

__all__ = [
    "Comparison",
    "FitComparison",
    "ModeComparison",
    "aligned",
    "compare",
    "compare_fits",
    "error_table",
    "footnote",
    "share",
]

_DRAWN = tuple(map(Fraction, ("1/4", "1/2", "1", "2", "4")))  # Times epsilon.


@final
@dataclass(frozen=True, slots=True, repr=False)
class Comparison:
    """What each mechanism is predicted to be worth. It is made of public facts and may be shown to anyone.

    Args:
        statistic: What is to be released, such as "median".
        facts: The public facts that the predictions follow from.
        methods: The mechanisms that were compared, with their predicted errors.

    Examples:
        >>> comparison = dp.compare(
        ...     "median", bounds=(0, 120), epsilon=1, public_rows=1000, relation=dp.Relation.REPLACE_ONE
        ... )
        >>> comparison.best in comparison.predictions
        True
    """

    statistic: str
    facts: ChooserInputs
    methods: tuple[Method, ...]

    @property
    def best(self) -> str:
        """The name of the method that `method="auto"` takes."""
        return best(self.methods, self.facts).name

    @property
    def predictions(self) -> dict[str, Predicted]:
        """The predicted errors by method, in units of the data."""
        return {method.name: method.predict(self.facts) for method in applicable(self.methods, self.facts)}

    @property
    def refusals(self) -> dict[str, str]:
        """The methods that cannot be used, and why."""
        asked = {method.name: method.refusal(self.facts) for method in self.methods}
        return {name: why for name, why in asked.items() if why is not None}

    def plot(self, *, title: str | None = None) -> alt.LayerChart:
        """Draw the usual error of each method against epsilon."""
        spent = [self.facts.epsilon * times for times in _DRAWN]
        curves: dict[str, tuple[list[float], list[float]]] = {}
        for method in applicable(self.methods, self.facts):
            errors = [method.predict(replace(self.facts, epsilon=epsilon)).typical for epsilon in spent]
            finest = float(self.facts.grid.step) / 2  # On a logarithmic axis there is no 0.
            curves[method.name] = [float(epsilon) for epsilon in spent], [max(error, finest) for error in errors]
        shown = title or f"{self.statistic}: predicted error if the data are {self.facts.law}"
        return plots.accuracy(curves, unit="units of the data", confidence="50 %", title=shown)

    def __str__(self) -> str:
        facts = self.facts
        header = f"{self.statistic} of {facts.rows} rows, {_spent(facts)}, expected {facts.law}"
        lines = [header, *error_table(self.predictions, self.best)]
        lines += [f"  {name} cannot be used: {why}" for name, why in self.refusals.items()]
        return "\n".join([*lines, footnote])

    __repr__ = __str__


@final
@dataclass(frozen=True, slots=True, repr=False)
class ModeComparison:
    """How often each mechanism is predicted to miss the most frequent value.

    Args:
        outlooks: How often each method is predicted to miss, by name.
        best: The method that `method="auto"` takes.

    Examples:
        >>> modes = dp.compare(
        ...     "mode", epsilon=1, public_rows=1000, relation=dp.Relation.REPLACE_ONE, candidates=["a", "b"],
        ...     expected=[0.7, 0.3],
        ... )
        >>> modes.best
        'permute-and-flip'
    """

    outlooks: Mapping[str, ModeOutlook]
    best: str

    def __str__(self) -> str:
        rows = [("method", "another value", "no answer")]
        for name, found in self.outlooks.items():
            mark = " *" if name == self.best else ""
            rows.append((name + mark, share(found.wrong), share(found.declines)))
        return "\n".join([*aligned(rows), footnote])

    __repr__ = __str__


def compare(
    statistic: str,
    *,
    relation: Relation | str,
    epsilon: Number,
    delta: Number | None = None,
    public_rows: int,
    bounds: Bounds | None = None,
    step: Number | None = None,
    q: Number | None = None,
    candidates: Iterable[Hashable] | None = None,
    x_bounds: Sequence[Bounds] | None = None,
    y_bounds: Bounds | None = None,
    expected: Any = None,
) -> Comparison | ModeComparison | FitComparison:
    """Predict the error of each mechanism for "median", "quantile", "mean", "mode" or "regression", from public facts.

    `public_rows` is the number of rows, or a public guess of it; `expected` what they may look like, such as
    `Expected.lognormal(30_000, 2)`; without it, values spread evenly between the bounds. For the mode, `expected` are
    the shares of the most frequent values; for a regression, a public or simulated table (X, y) on which each method is
    tried. Nothing is read and nothing is charged.

        print(dp.compare("median", bounds=(0, 10**6), epsilon=1, public_rows=10_000, relation=dp.Relation.REPLACE_ONE,
                         expected=dp.Expected.lognormal(30_000, 2)))

    Args:
        statistic: "median", "quantile", "mean", "mode" or "regression".
        relation: The neighbouring relation.
        epsilon: What a release would spend.
        delta: The delta that goes with it; some methods need one.
        public_rows: The number of rows, or a public guess of it.
        bounds: The lower and the upper bound of the values, for a median, quantile or mean.
        step: The grid that values are rounded to.
        q: The share below the quantile.
        candidates: The public values to choose from, for a mode.
        x_bounds: The bounds of each feature, for a regression.
        y_bounds: The bounds of the response, for a regression.
        expected: What the data may look like, see above.

    Returns:
        The predicted errors; it prints as a table.

    Raises:
        InvalidParameter: If the statistic is not known, or a fact that it needs is missing.

    Examples:
        >>> comparison = dp.compare(
        ...     "median", bounds=(0, 10**6), epsilon=1, public_rows=10_000, relation=dp.Relation.REPLACE_ONE,
        ...     expected=dp.Expected.lognormal(30_000, 2),
        ... )
        >>> sorted(comparison.predictions)[:2]
        ['candidates', 'exponential']
    """
    relation = read_relation(relation)
    if statistic == "mode":
        known = mode_facts(candidates, relation, epsilon, delta, public_rows, expected)
        return ModeComparison(
            {method.name: method.predict(known) for method in applicable(mode_methods(), known)}, best_mode(known).name
        )
    if statistic == "regression":
        return compare_fits(
            expected,
            public_rows=public_rows,
            relation=relation,
            epsilon=epsilon,
            delta=delta,
            x_bounds=x_bounds,
            y_bounds=y_bounds,
        )
    if expected is not None and not isinstance(expected, Expected):
        raise InvalidParameter("expected must be an Expected, such as Expected.normal(mean, sd)")
    grid = grid_from(bounds, step=step, missing=None)
    facts = ChooserInputs(
        grid=grid,
        relation=relation,
        epsilon=positive(epsilon, name="epsilon"),
        delta=None if delta is None else exact(delta, name="delta"),
        size=public_rows if relation is Relation.REPLACE_ONE else None,
        expected_size=public_rows,
        expected=expected or Expected.uniform(grid.low, grid.high),
    )
    return Comparison(statistic, facts, _methods(statistic, q))


def _methods(statistic: str, q: Number | None) -> tuple[Method, ...]:
    if statistic == "quantile" and q is not None:
        return rank_methods(probability(q, name="q"))
    if statistic == "median" and q is None:
        return rank_methods(Fraction(1, 2))
    if statistic == "mean" and q is None:
        return mean_methods()
    raise InvalidParameter('statistic must be "median", "mean", "mode", "regression", or "quantile" with q=…')


def _spent(facts: ChooserInputs) -> str:
    delta = "" if facts.delta is None else f", δ = {float(facts.delta):g}"
    return f"{facts.relation.value}, ε = {float(facts.epsilon):g}{delta}"


# --- comparing_fits ---
# Which regression will be more accurate? Each is tried on a public or simulated table of the size of the data.


_TRIES = 15


@final
@dataclass(frozen=True, slots=True, repr=False)
class FitComparison:
    """How far predictions of each private fit were from those of least squares, root mean square, on public rows.

    Args:
        predictions: The predicted error of each method.
        best: The method that `method="auto"` takes.

    Examples:
        >>> dp.statistics.FitComparison(predictions={}).best
        'refined'
    """

    predictions: dict[str, Predicted]
    best: str = AUTO_METHOD

    def __str__(self) -> str:
        return "\n".join([*error_table(self.predictions, self.best), footnote])

    __repr__ = __str__


def compare_fits(
    expected: Any,
    *,
    public_rows: int,
    relation: Relation | str,
    epsilon: Number,
    delta: Number | None,
    x_bounds: Sequence[Bounds] | None,
    y_bounds: Bounds | None,
) -> FitComparison:
    """Try each method a few times on public rows, repeated until there are `public_rows` of them."""
    relation = read_relation(relation)
    X, y = _table(expected, positive_integer(public_rows, name="public_rows"))
    exact = _line(X) @ np.linalg.lstsq(_line(X), y, rcond=None)[0]

    def tried(method: Any) -> Predicted:
        errors, declined = [], 0
        for _ in range(_TRIES):
            fit = regression(
                X,
                y,
                relation=relation,
                x_bounds=x_bounds,
                y_bounds=y_bounds,
                epsilon=epsilon,
                delta=delta,
                method=method,
            ).value
            if isinstance(fit, NoAnswer):
                declined += 1
            else:
                predicted = _line(X) @ np.array([float(part) for part in fit])
                errors.append(float(np.sqrt(np.mean((predicted - exact) ** 2))))
        found = np.quantile(errors, [0.5, 0.95]) if errors else (np.inf, np.inf)
        return Predicted(typical=float(found[0]), wide=float(found[1]), declines=declined / _TRIES)

    return FitComparison({method: tried(method) for method in METHODS})


def _table(expected: Any, size: int) -> tuple[Floats, Floats]:
    try:
        X, y = (np.asarray(part, dtype=np.float64) for part in expected)
    except (TypeError, ValueError):
        X, y = np.empty((0, 0)), np.empty(0)
    if X.ndim != 2 or y.shape != (len(X),) or not X.size or not (np.isfinite(X).all() and np.isfinite(y).all()):
        raise InvalidParameter(
            "for a regression, expected must be a public or simulated table of finite numbers: (features, responses)"
        )
    rows = np.arange(size) % len(X)
    return X[rows], y[rows]


def _line(X: Floats) -> Floats:
    return np.column_stack([np.ones(len(X)), X])


# --- outlook_tables: Text tables of predictions. ---


footnote = '* what method="auto" takes. Predicted from public facts; no data were read.'


def error_table(predictions: Mapping[str, Predicted], best: str) -> list[str]:
    """List the predicted errors, one method a line, with a mark on the best."""
    rows = [("method", "usual error", "95 %", "no answer")]
    for name, found in predictions.items():
        mark = " *" if name == best else ""
        rows.append((name + mark, f"{found.typical:.3g}", f"{found.wide:.3g}", share(found.declines)))
    return aligned(rows)


def share(chance: float) -> str:
    return f"{100 * chance:.3g} %"


def aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Write rows below each other, the first column to the left, all others to the right."""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return ["  ".join(["", row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows]
