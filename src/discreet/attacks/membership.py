"""Membership inference: was this person in the data that a model was trained on?

Models are trained on random halves of your own rows by your own trainer, and three attackers guess who was in: by the
loss alone [YGFJ18], by shadow models (LiRA, offline) [CCNSTT22], and by a few reference models (RMIA) [ZLS24].
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, final

import numpy as np

from discreet.attacks.rates import RATES, Attacker, FoundRate, judge
from discreet.attacks.scoring import confidences, lira_scores, logit_scores, loss_scores, rmia_scores
from discreet.attacks.shadows import Game, Train, play
from discreet.errors import InvalidParameter
from discreet.privacy import Event, Relation, best_tpr
from discreet.privacy.notprivate import NotPrivate

if TYPE_CHECKING:
    import altair as alt

__all__ = ["Membership", "membership", "membership_by_scores"]

_DRAWN = tuple(10 ** (power / 8) for power in range(-32, 1))  # Rates of false alarms of a drawn ceiling.


@final
@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Membership:
    """How many people each attacker finds in the data of a model, at few false alarms.

    The limits take one guess as independent of another, which guesses about one model are not quite: ask for more
    targets if much depends on them.
    """

    people: int
    targets: int  # models that were attacked
    shadows: int  # models that the attackers trained
    attackers: tuple[Attacker, ...]
    event: Event | None  # what the training claims to spend on one person more or less

    def attacker(self, name: str) -> Attacker:
        """Return one of the attackers."""
        for one in self.attackers:
            if one.name == name:
                return one
        raise InvalidParameter(f"there is no such attacker; there are {', '.join(one.name for one in self.attackers)}")

    @property
    def best(self) -> Attacker:
        """The attacker who finds most people at the smallest rate of false alarms; by AUC if several do."""
        return max(self.attackers, key=lambda one: (one.found[0].members.share, one.auc))

    def refutes(self, *, error: float = 0.05) -> bool:
        """Whether an attacker found more than the claimed event allows; `error` is shared by all comparisons."""
        if self.event is None:
            return False
        tried = [found for one in self.attackers for found in one.found]
        return any(found.refutes(self.event, error=error / len(tried)) for found in tried)

    def __str__(self) -> str:
        models = "1 model" if self.targets == 1 else f"{self.targets} models"
        lines = [f"{models} attacked, {self.people:,} people each, {self.shadows} shadow models"]
        return "\n".join([*lines, *(line for one in self.attackers for line in _told(one))])

    def to_json(self) -> str:
        """Write everything but the curves as one JSON object."""
        document = {
            "people": self.people,
            "targets": self.targets,
            "shadows": self.shadows,
            "refutes": self.refutes(),
            "attackers": [_document(one) for one in self.attackers],
        }
        return json.dumps(document, ensure_ascii=False)

    def plot(self, *, title: str | None = None) -> alt.LayerChart:
        """Draw people found against false alarms, both logarithmic, with the line of one who guesses."""
        from discreet.plots import lines

        smallest = min(1 / found.alarms.of for one in self.attackers for found in one.found)
        curves = {one.name: _drawn(one, smallest) for one in self.attackers}
        rates = np.array([smallest, *(rate for rate in _DRAWN if rate > smallest)])
        curves["guessing"] = rates, rates
        if self.event is not None:
            curves["no attacker exceeds"] = rates, _ceilings(self.event, rates)
        titles = {"across": "false alarms (share of people not in the data)", "up": "people found (share)"}
        return lines(curves, **titles, log_x=True, log_y=True, title=title)


def membership(
    train: Train,
    rows: Any,
    labels: Any,
    *,
    shadows: int = 32,
    targets: int = 4,
    references: int = 2,
    population: float = 0.2,
    event: Event | None = None,
    rates: Sequence[float] = RATES,
    many: bool = False,
) -> NotPrivate[Membership]:
    """Train models on random halves of rows and guess who was in them.

    `train(rows, labels)` returns a function from rows to the probabilities of all classes, of any library. With `many`,
    `train(rows, labels, inside)` trains a model for each row of `inside` at once and returns the probabilities of all.
    `references` are the models without a person that RMIA uses, and `population` the share of people that no model
    sees, which it compares with. `event` is what the training claims to spend on one person more or less.
    """
    if not 1 <= references <= shadows // 2:
        raise InvalidParameter("references must be 1 up to half of the shadows: the others saw the person")
    game = play(train, rows, labels, targets=targets, shadows=shadows, population=population, many=many)
    truth = game.inside[:targets, ~game.population]
    scored = {"loss": _loss(game), "LiRA": _lira(game), "RMIA": _rmia(game, references)}
    attackers = [judge(scores, truth, name=name, rates=rates, event=event) for name, scores in scored.items()]
    people = int(np.count_nonzero(~game.population))
    found = Membership(people=people, targets=targets, shadows=shadows, attackers=tuple(attackers), event=event)
    return NotPrivate(found)


def membership_by_scores(
    scores: Any, inside: Any, *, event: Event | None = None, rates: Sequence[float] = RATES
) -> NotPrivate[Membership]:
    """Judge scores of anybody's attack on anybody's model: one for each person, high for those believed to be in."""
    attacker = judge(scores, inside, name="scores", rates=rates, event=event)
    people = attacker.found[0].members.of + attacker.found[0].alarms.of
    return NotPrivate(Membership(people=people, targets=1, shadows=0, attackers=(attacker,), event=event))


def _loss(game: Game) -> Any:
    return loss_scores(game.probabilities[: game.targets], game.labels)[:, ~game.population]


def _lira(game: Game) -> Any:
    logits = logit_scores(game.probabilities, game.labels)[:, ~game.population]
    shadows, within = logits[game.targets :], game.inside[game.targets :, ~game.population]
    return np.stack([lira_scores(target, shadows, within) for target in logits[: game.targets]])


def _rmia(game: Game, references: int) -> Any:
    """Take the first pairs of shadows: one of each pair did not see a person, and neither saw the population."""
    sure = confidences(game.probabilities, game.labels)
    chosen = slice(game.targets, game.targets + 2 * references)
    without = np.nanmean(np.where(game.inside[chosen], np.nan, sure[chosen]), axis=0)
    crowd = game.population
    return np.stack([rmia_scores(t[~crowd], without[~crowd], t[crowd], without[crowd]) for t in sure[: game.targets]])


def _told(attacker: Attacker) -> Iterator[str]:
    low, high = attacker.auc_limits
    yield f"  {attacker.name:<5} AUC {attacker.auc:.3f} ({low:.3f} to {high:.3f}; guessing: 0.5)"
    yield from (f"        {_sentence(found)}" for found in attacker.found)


def _sentence(found: FoundRate) -> str:
    low, high = found.members.interval()
    said = f"at {100 * found.rate:g} % false alarms: {100 * found.members.share:.1f} % of people found"
    said += f" ({100 * low:.1f} to {100 * high:.1f} %; guessing: {100 * found.rate:g} %"
    return said + (")" if found.ceiling is None else f"; no attacker exceeds {100 * found.ceiling:.1f} %)")


def _document(attacker: Attacker) -> dict[str, Any]:
    found = [
        {
            "rate": one.rate,
            "members": [one.members.hits, one.members.of],
            "members_limits": list(one.members.interval()),
            "alarms": [one.alarms.hits, one.alarms.of],
            "ceiling": one.ceiling,
        }
        for one in attacker.found
    ]
    limits = list(attacker.auc_limits)
    return {"name": attacker.name, "auc": attacker.auc, "auc_limits": limits, "found": found}


def _drawn(attacker: Attacker, smallest: float) -> tuple[Any, Any]:
    """Take a few hundred points of a curve, none below what a single person more or less can show."""
    seen = (attacker.alarms >= smallest * (1 - 1e-9)) & (attacker.hits > 0)
    alarms, hits = attacker.alarms[seen], attacker.hits[seen]
    places = np.unique(np.searchsorted(alarms, np.geomspace(smallest * (1 - 1e-9), 1, 300)).clip(0, len(alarms) - 1))
    return alarms[places], hits[places]


def _ceilings(event: Event, rates: Any) -> Any:
    return np.array([best_tpr(event, Fraction(float(rate)), relation=Relation.ADD_REMOVE) for rate in rates])
