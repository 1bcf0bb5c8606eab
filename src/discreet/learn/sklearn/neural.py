"""A classifier and a regressor around any module of PyTorch, trained by DP-SGD."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from torch import Tensor, nn
from torch.nn import functional

from discreet.adaptive.bounded_memberships import unit_rows
from discreet.errors import InvalidParameter, Refused
from discreet.exact import Number, positive, positive_integer
from discreet.learn.sklearn.base import PrivacySpent, PrivatePredictor, TrainingTable
from discreet.learn.sklearn.bounds import Pair, read_pair
from discreet.learn.sklearn.pipeline_guard import refuse_plain_steps, refuse_unpaid_looks
from discreet.learn.torch.private_training import make_private
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.parameters import read_flag
from discreet.privacy.payer import Payer, guarded
from discreet.privacy.relation import Relation
from discreet.robust.regression_design import HALF, centred

__all__ = ["DPClassifier", "DPRegressor"]

Floats: TypeAlias = NDArray[np.float64]

_HIDDEN = 32  # Of the module that is made where none is given.


class _Network(PrivatePredictor):
    """What both share: public facts, a run that is paid for while its tables are empty, and weights that come out."""

    module: Any
    optimizer: Any
    learning_rate: Number
    epochs: Number
    batch_size: int | None
    clip: Any
    verbose: bool

    def _train(
        self, table: TrainingTable, outputs: int, target: Tensor, loss: Any, fill: Any, unit: Any, max_rows: int | None
    ) -> None:
        """Pay, then fill the tables and train. Until the run is paid for there are zeros in them."""
        whom = unit_rows(unit, max_rows, Relation.ADD_REMOVE)
        module = self._module(self.n_features_in_, outputs)
        rows = torch.zeros((len(target), self.n_features_in_))
        shown = read_flag(self.verbose, name="verbose")
        if self.session is None:
            refuse_plain_steps()
        else:
            refuse_unpaid_looks()
        run = make_private(
            module,
            self._optimizer(module),
            (rows, target),
            loss=loss,
            epsilon=self._epsilon(),
            delta=self._delta(self.public_rows),
            public_rows=self._size() if whom is None else None,
            public_units=None if whom is None else self._size(),
            unit="row" if whom is None else unit,
            max_rows=None if whom is None else whom.max_rows,
            batch_size=self._batch(),
            epochs=self.epochs,
            clip=self.clip,
            session=self.session,
            name=self._purpose(),
        )
        with run as private, guarded(self.session):
            plan = private.plan
            rows.copy_(torch.from_numpy(table.steps() / HALF))
            fill(target)
            private.fit(progress=shown)
        self.frame_, self.plan_, self.module_ = table.frame, plan, module.eval()
        spent = PrivacySpent(event=plan.event, relation=Relation.ADD_REMOVE, delta=plan.delta)
        if whom is not None:
            spent = replace(spent, unit=getattr(getattr(self.session, "unit", None), "noun", whom.noun))
        self.privacy_spent_ = spent

    def _facts(self, X: Any, y: Any, *, y_numeric: bool) -> TrainingTable:
        if self._relation() is not Relation.ADD_REMOVE:
            raise Refused(
                "training is private for adding or removing a row, not for replacing one",
                reason="every step trains on a secret sample, whose bound is proven for that relation",
                way_out='say relation="add-remove"',
            )
        _ = self._size(), self._batch(), positive(self.learning_rate, name="learning_rate")
        return self._table(X, y, y_numeric=y_numeric)

    def _size(self) -> int:
        if self.public_rows is None:
            raise Refused(
                "this needs public_rows=…, about how many rows there are, as everybody may know",
                reason="how often a row is drawn, and what that costs, must not follow from the data",
                way_out="say a round number that is known anyway, or that a session has counted privately",
            )
        return positive_integer(self.public_rows, name="public_rows")

    def _batch(self) -> int:
        if self.batch_size is not None:
            return positive_integer(self.batch_size, name="batch_size")
        return max(1, min(1024, self._size() // 16))

    def _module(self, inputs: int, outputs: int) -> nn.Module:
        given = self.module
        made: nn.Module
        if given is None:
            made = nn.Sequential(nn.Linear(inputs, _HIDDEN), nn.Tanh(), nn.Linear(_HIDDEN, outputs))
        elif isinstance(given, nn.Module):
            made = copy.deepcopy(given)
        elif callable(given):
            made = copy.deepcopy(given(inputs, outputs))  # Else fits whose modules share a part would train it on.
        else:
            raise InvalidParameter("module must be a torch module, or a function (inputs, outputs) that makes one")
        _check_shape(made, inputs, outputs)
        return made.train()

    def _optimizer(self, module: nn.Module) -> torch.optim.Optimizer:
        weights = [weight for weight in module.parameters() if weight.requires_grad]
        if self.optimizer is not None:
            if not callable(self.optimizer):
                raise InvalidParameter(
                    "optimizer must be a function of the parameters that makes an optimiser of torch"
                )
            found: torch.optim.Optimizer = self.optimizer(weights)
            return found
        return torch.optim.Adam(weights, lr=float(positive(self.learning_rate, name="learning_rate")))

    def _told(self, X: Any) -> Tensor:
        """Run the module on rows that are to be predicted."""
        rows = torch.from_numpy(self._seen(X).astype(np.float32))
        with torch.no_grad():
            found: Tensor = self.module_(rows)
        return found


class DPClassifier(_Network, ClassifierMixin, BaseEstimator):
    """Train a module as a classifier: its outputs are logits, one a class.

    Rows are clamped to `bounds` and moved to [-1, 1] before the module sees them. `module` is a torch module, or a
    function (inputs, outputs) that makes one; a copy of it is trained. A small one is made if there is none.

    Guarantee   (epsilon, delta) for adding or removing a row, or a unit with all its rows where `fit` is handed ids of
                units (user-level DP-SGD); the whole training is charged before a row is read.
    Theorem     See `make_private`. [ACGMMTZ16]
    Utility     grows with rows more than with epochs; a batch of a sixteenth of the rows is a good start.

    Args:
        module: A torch module that returns logits, or a function (inputs, outputs) that makes one.
        epsilon: What a fit spends.
        delta: The delta that goes with epsilon.
        public_rows: About how many rows there are, a public number; of units, where they are protected.
        bounds: Public pairs or `dp.between(…)` of the columns, in order or by name; a step before may declare them.
        classes: The public classes.
        epochs: How often each row takes part, on average.
        batch_size: The expected number of rows of a step; a sixteenth of all if not said.
        clip: The largest l2 norm of one row's gradient.
        learning_rate: The learning rate.
        optimizer: A function from parameters to a torch optimiser; Adam if not said.
        verbose: Whether to show how far the training is.
        relation: The neighbouring relation, as `Relation` or as "add-remove" or "replace-one".
        session: Who pays, a `Ledger` or a `Session`; it is charged before the rows are read. Nobody if not said.

    Examples:
        >>> import numpy as np
        >>> X = np.linspace(-1, 1, 400)[:, None]
        >>> model = dp.learn.sklearn.DPClassifier(
        ...     epsilon=8, delta=1e-5, public_rows=400, bounds=[(-1, 1)], classes=[0, 1], epochs=1
        ... )
        >>> model.fit(X, (X[:, 0] > 0).astype(int)).predict(X).shape
        (400,)
    """

    _stored_as: ClassVar[str] = "DPClassifier"

    def __init__(
        self,
        module: Any = None,
        *,
        epsilon: Number,
        delta: Number | None = None,
        public_rows: int | None = None,
        bounds: Any = None,
        classes: Any = None,
        epochs: Number = 20,
        batch_size: int | None = None,
        clip: Any = 1,
        learning_rate: Number = 0.01,
        optimizer: Any = None,
        verbose: bool = False,
        relation: str | Relation = "add-remove",
        session: Payer | None = None,
    ) -> None:
        self.module = module
        self.epsilon = epsilon
        self.delta = delta
        self.public_rows = public_rows
        self.bounds = bounds
        self.classes = classes
        self.epochs = epochs
        self.batch_size = batch_size
        self.clip = clip
        self.learning_rate = learning_rate
        self.optimizer = optimizer
        self.verbose = verbose
        self.relation = relation
        self.session = session

    def fit(self, X: Any, y: Any, *, unit: Any = None, max_rows: int | None = None) -> Self:
        """Train the module; every row takes part in each step by a secret coin, or every unit, with `max_rows` rows."""
        table = self._facts(X, y, y_numeric=False)
        classes = table.classes(self.classes, has_session=self.session is not None)
        if len(classes) < 2:
            raise InvalidParameter("a classifier needs at least two classes; there is one class, or none, here")

        def fill(target: Tensor) -> None:
            target.copy_(torch.from_numpy(table.codes(classes)))

        self._train(
            table, len(classes), torch.zeros(len(table), dtype=torch.int64), _cross_entropy, fill, unit, max_rows
        )
        self.classes_ = classes
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return the chance of each class."""
        chances: Floats = functional.softmax(self._told(X).double(), dim=1).numpy()
        return chances

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the likeliest class."""
        told = self._told(X)
        found: NDArray[Any] = self.classes_[told.argmax(dim=1).numpy()]
        return found


class DPRegressor(_Network, RegressorMixin, BaseEstimator):
    """Train a module as a regressor: its one output is the target, moved to [-1, 1].

    Rows are clamped to `bounds` and the target to `target_bounds`; predictions stay within these. `module` is as for
    `DPClassifier`.

    Guarantee   (epsilon, delta) for adding or removing a row, or a unit with all its rows where `fit` is handed ids of
                units (user-level DP-SGD); the whole training is charged before a row is read.
    Theorem     See `make_private`. [ACGMMTZ16]
    Utility     grows with rows more than with epochs; a batch of a sixteenth of the rows is a good start.

    Args:
        module: A torch module with one output, or a function (inputs, outputs) that makes one.
        epsilon: What a fit spends.
        delta: The delta that goes with epsilon.
        public_rows: About how many rows there are, a public number; of units, where they are protected.
        bounds: Public pairs or `dp.between(…)` of the columns, in order or by name; a step before may declare them.
        target_bounds: The public bounds of the target.
        epochs: How often each row takes part, on average.
        batch_size: The expected number of rows of a step; a sixteenth of all if not said.
        clip: The largest l2 norm of one row's gradient.
        learning_rate: The learning rate.
        optimizer: A function from parameters to a torch optimiser; Adam if not said.
        verbose: Whether to show how far the training is.
        relation: The neighbouring relation, as `Relation` or as "add-remove" or "replace-one".
        session: Who pays, a `Ledger` or a `Session`; it is charged before the rows are read. Nobody if not said.

    Examples:
        >>> import numpy as np
        >>> X = np.linspace(-1, 1, 400)[:, None]
        >>> model = dp.learn.sklearn.DPRegressor(
        ...     epsilon=8, delta=1e-5, public_rows=400, bounds=[(-1, 1)], target_bounds=(-1, 1), epochs=1
        ... )
        >>> model.fit(X, X[:, 0]).predict(X).shape
        (400,)
    """

    _stored_as: ClassVar[str] = "DPRegressor"

    def __init__(
        self,
        module: Any = None,
        *,
        epsilon: Number,
        delta: Number | None = None,
        public_rows: int | None = None,
        bounds: Any = None,
        target_bounds: Any = None,
        epochs: Number = 20,
        batch_size: int | None = None,
        clip: Any = 1,
        learning_rate: Number = 0.01,
        optimizer: Any = None,
        verbose: bool = False,
        relation: str | Relation = "add-remove",
        session: Payer | None = None,
    ) -> None:
        self.module = module
        self.epsilon = epsilon
        self.delta = delta
        self.public_rows = public_rows
        self.bounds = bounds
        self.target_bounds = target_bounds
        self.epochs = epochs
        self.batch_size = batch_size
        self.clip = clip
        self.learning_rate = learning_rate
        self.optimizer = optimizer
        self.verbose = verbose
        self.relation = relation
        self.session = session

    def fit(self, X: Any, y: Any, *, unit: Any = None, max_rows: int | None = None) -> Self:
        """Train the module; every row takes part in each step by a secret coin, or every unit, with `max_rows` rows."""
        low, high = self._within()
        grid = Grid.between(low, high)
        table = self._facts(X, y, y_numeric=True)

        def fill(target: Tensor) -> None:
            target.copy_(torch.from_numpy(centred(grid, table.target()) / HALF))

        self._train(table, 1, torch.zeros(len(table)), _squared_error, fill, unit, max_rows)
        self.target_range_ = (float(low), float(high))
        return self

    def _within(self) -> Pair:
        if self.target_bounds is None:
            raise Refused(
                "this needs target_bounds=(low, high)",
                reason="the target is clamped to bounds that must not be read from the data",
                way_out="declare what is publicly known of the target, or ask a session for private_bounds",
            )
        return read_pair(self.target_bounds, "target_bounds")

    def predict(self, X: Any) -> Floats:
        """Predict within the bounds of the target."""
        told = self._told(X)[:, 0].double().clamp(-1, 1).numpy()
        low, high = self.target_range_
        found: Floats = (low + high) / 2 + (high - low) / 2 * told
        return found


def _cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """Return one loss a row; a row of no class teaches nothing."""
    return functional.cross_entropy(logits, target, reduction="none", ignore_index=-1)


def _squared_error(told: Tensor, target: Tensor) -> Tensor:
    return (told[:, 0] - target) ** 2


def _check_shape(module: nn.Module, inputs: int, outputs: int) -> None:
    """Refuse a module that does not take the rows or tell what is asked, before anything is spent."""
    with torch.no_grad():
        try:
            told = module(torch.zeros(2, inputs))
        except (RuntimeError, TypeError) as mistake:
            raise InvalidParameter(f"the module does not take rows of {inputs} numbers: {mistake}") from None
    if tuple(told.shape) != (2, outputs):
        raise InvalidParameter(
            f"the module must return {outputs} numbers a row, not a shape of {tuple(told.shape)[1:]}"
        )
