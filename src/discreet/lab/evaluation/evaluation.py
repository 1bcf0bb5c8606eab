"""The result of an evaluation: what was measured, the verdicts, and the report as a page, as JSON and as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, final

from discreet.formatting import percent, percent_up, significant_up
from discreet.lab.evaluation.closest_records import Closeness, ClosestDistances
from discreet.lab.evaluation.likeness import Associations, Correlations, Fidelity, Overlay, Way
from discreet.lab.evaluation.membership_search import MembershipSearch, SecretGuesses
from discreet.lab.evaluation.noisy_distances import NoisyComparison, NoisyWay
from discreet.lab.evaluation.pictures import Sheets
from discreet.lab.evaluation.promised_limits import columns_text, guess_of, promise_text
from discreet.lab.evaluation.usefulness import Downstream, Workload
from discreet.privacy.not_private import HEADING
from discreet.synth.promise import Promise

if TYPE_CHECKING:
    from discreet.lab.attacks.success_rates import Attacker, Success

__all__ = ["About", "Attacked", "Evaluation", "Kind", "Likeness", "Standing", "Verdict", "document", "verdicts"]

# --- verdict: A verdict: one sentence, and whether it is good news. ---


Kind: TypeAlias = Literal["good", "look", "bad"]
About: TypeAlias = Literal["privacy", "use"]
_MARKS: dict[Kind, str] = {"good": "✓", "look": "!", "bad": "✗"}
_WORDS: dict[Kind, str] = {"good": "Good", "look": "Note", "bad": "Weak"}


@final
@dataclass(frozen=True, slots=True)
class Verdict:
    """One sentence of the judgement."""

    kind: Kind
    about: About
    text: str

    @property
    def mark(self) -> str:
        """A sign for the terminal."""
        return _MARKS[self.kind]

    @property
    def word(self) -> str:
        """A word for the page: no colour says it alone."""
        return "Stop" if self.kind == "bad" and self.about == "privacy" else _WORDS[self.kind]


Standing: TypeAlias = Literal["custodian", "public", "charged"]
_HEADINGS: dict[Standing, str] = {
    "custodian": HEADING,
    "public": "compared with public rows only: may be published",
    "charged": "every number about the data is noisy and paid for: may be published",
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """How like the rows it is compared with a synthetic table is."""

    fidelity: Fidelity | None = None
    associations: Associations | None = None
    correlations: Correlations | None = None
    overlays: tuple[Overlay, ...] = ()
    downstream: Downstream | None = None
    workload: Workload | None = None
    sheets: Sheets | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Attacked:
    """What attackers found."""

    closeness: Closeness | None = None
    searches: tuple[MembershipSearch, ...] = ()
    guessed: tuple[SecretGuesses, ...] = ()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """An evaluation of a synthetic table. Only the custodian's own holds exact facts about people, and says so."""

    title: str
    standing: Standing
    compared: str  # with what: "the real table", or "the public rows"
    columns: tuple[str, ...]
    rows: int  # of the synthetic table
    promise: Promise | None
    likeness: Likeness = field(default_factory=Likeness)
    attacked: Attacked | None = None  # None where attacks would tell about people
    priced: NoisyComparison | None = None
    error: float = 1e-3  # the chance that a verdict about privacy wrongly accuses
    notes: tuple[str, ...] = ()

    @property
    def heading(self) -> str:
        """For whom this is; it stands on every page of the report."""
        return _HEADINGS[self.standing]

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """What it comes to, in sentences; privacy first."""
        return verdicts(self)

    @property
    def alarming(self) -> bool:
        """Whether one of the verdicts is that the table gives people away."""
        return any(verdict.kind == "bad" and verdict.about == "privacy" for verdict in self.verdicts)

    def html(self) -> str:
        """Write the report as one page that loads nothing and runs nothing."""
        from discreet.lab.evaluation.evaluation_page import page

        return page(self)

    def document(self) -> dict[str, Any]:
        """Return all figures as one JSON object."""
        return document(self)

    def tell(self) -> str:
        """Tell the verdicts as text."""
        return "\n".join(_lines(self.title, self.heading, self.verdicts))

    def __str__(self) -> str:
        return self.tell()

    __repr__ = __str__


def _lines(title: str, heading: str, verdicts: Iterable[Verdict]) -> Iterable[str]:
    yield from (title, heading, "")
    yield from (f"  {verdict.mark} {verdict.text}" for verdict in verdicts)


# --- verdicts ---
# What an evaluation comes to, in sentences that need no ε: privacy first, then what the table is good for.


_MOST_OF, _HARDLY = 0.75, 0.3  # Parts of what could be kept: above is good, below is bad.
_FEW, _MANY, _LISTED = 0.01, 0.3, 4  # Shares of rows that lost a value: below is not worth a word, above is bad.
_SMALL_CHANGE = 0.1  # Of a correlation.
_ALMOST_SURE = 0.95  # A promise that leaves an attacker so sure is hardly one.


def verdicts(evaluation: Evaluation) -> tuple[Verdict, ...]:
    """Judge an evaluation."""
    attacked = () if evaluation.attacked is None else tuple(_attacks(evaluation, evaluation.attacked))
    # A promise that was found broken is no good news, so the attack comes alone.
    promise = () if any(one.kind == "bad" for one in attacked) and evaluation.promise else _promise(evaluation)
    return (*promise, *attacked, *_likeness(evaluation.likeness), *_priced(evaluation))


def _promise(evaluation: Evaluation) -> Iterator[Verdict]:
    promise = evaluation.promise
    if promise is None:
        yield Verdict(
            "bad",
            "privacy",
            "There is no promise: nothing is known that limits what this table gives away. That no attack below "
            "succeeds would not show that none can.",
        )
        return
    guess = guess_of(promise)
    kind: Kind = "look" if guess > _ALMOST_SURE else "good"
    yield Verdict(
        kind,
        "privacy",
        f"The promise ({promise_text(promise)}) holds whatever an attacker knows or tries: whoever guesses whether one "
        f"{promise.unit} is in the data, at even odds before, is right at most {percent_up(guess)} of the time after."
        + (" That is little protection." if kind == "look" else ""),
    )


def _attacks(evaluation: Evaluation, attacked: Attacked) -> Iterator[Verdict]:
    error, promise = evaluation.error, evaluation.promise
    broken = any(one.refutes(error) for one in attacked.searches) or any(one.refutes(error) for one in attacked.guessed)
    copied = attacked.closeness is not None and attacked.closeness.copied(error)
    if broken and promise is not None:
        yield Verdict("bad", "privacy", _broken_words(attacked, promise))
    if copied:
        yield Verdict("bad", "privacy", _copied_words(attacked))
    if broken or copied:
        return
    ahead = [each for each in attacked.searches if each.finds(error)]
    gained = [each for each in attacked.guessed if each.gains(error)]
    if ahead or gained:
        within = "which the promise allows, but not more than it allows" if promise else "and no promise limits it"
        yield Verdict(
            "look" if promise else "bad",
            "privacy",
            f"Attackers did a little better than guessing, {within}. A smaller ε would leave them less.",
        )
    elif attacked.searches or attacked.guessed:
        yield Verdict("good", "privacy", _quiet_words(attacked))
    else:
        yield Verdict(
            "look",
            "privacy",
            "No attack was run that could show who is in the data: that needs rows that were held out, or the table "
            "made anew from halves of the rows (holdout=…, refit=…; `synth evaluate` has --holdout and --refits 4).",
        )


def _broken_words(attacked: Attacked, promise: Promise) -> str:
    level = max((search.level for search in attacked.searches if search.level is not None), default=None)
    shown = "" if level is None or level < 0.1 else f" What was found needs an ε of at least {significant_up(level)}."
    return (
        f"Attackers found more people than the promise ({promise_text(promise)}) allows. So the promise is wrong: the "
        f"table must not be published.{shown}"
    )


def _copied_words(attacked: Attacked) -> str:
    assert attacked.closeness is not None
    members, others = attacked.closeness.members.equal, attacked.closeness.others
    beside = "other rows of the real table" if others is None else "rows of people who were held out"
    share = attacked.closeness.real.equal.share if others is None else others.equal.share
    return (
        f"{percent(members.share)} of the real rows are in the synthetic table, to the last digit; of {beside} it is "
        f"{percent(share)}. Rows were copied: the table must not be published."
    )


def _quiet_words(attacked: Attacked) -> str:
    tables = sum(search.tables for search in attacked.searches)
    attackers = max((len(search.attackers) for search in attacked.searches), default=0) + bool(attacked.guessed)
    where = "the table" if tables <= 1 else f"{tables} tables"
    who = "1 attacker" if attackers == 1 else f"{attackers} attackers"
    return (
        f"{who} on {where} found nobody more often than guessing would. That is a test, no proof: the promise is what "
        "holds."
    )


def _likeness(likeness: Likeness) -> Iterator[Verdict]:
    yield from _fidelity(likeness)
    yield from _lost(likeness)
    yield from _correlations(likeness)
    down = likeness.downstream
    if down is not None and down.kept is None:
        yield Verdict("look", "use", f"Models: even real {down.kind} teach hardly anything about {down.label}.")
    elif down is not None and down.kept is not None:
        yield Verdict(_kind(down.kept), "use", _models_words(down))
    asked = likeness.workload
    if asked is not None and asked.asked and asked.asked[0].alone is not None:
        better, shared = asked.better_alone, asked.better_shared
        yield Verdict(
            "good" if better <= len(asked.asked) / 2 else "look",
            "use",
            f"Questions: {better} of {len(asked.asked)} tables of counts would be more exact if that one alone were "
            f"asked directly at the same ε, and {shared} if all were. Where only a few numbers are needed, ask for "
            "them instead.",
        )


def _models_words(down: Downstream) -> str:
    if down.number:
        return (
            f"Models: trained on synthetic {down.kind} they reach an R² of {down.synthetic:.2f} for {down.label}, and "
            f"trained on real ones {down.real:.2f}, where 1 is exact and 0 knows nothing."
        )
    return (
        f"Models: the best that is trained on synthetic {down.kind} tells {down.label} right for "
        f"{percent(down.synthetic)} of real ones; trained on real {down.kind} {percent(down.real)}, and without "
        f"looking {percent(down.naive)}."
    )


def _fidelity(likeness: Likeness) -> Iterator[Verdict]:
    fidelity = likeness.fidelity
    pairs = None if fidelity is None else fidelity.way(2)
    if pairs is None:
        return
    names = columns_text([likeness.overlays[place].name for place in pairs.found.worst[0]])
    worst = f"the worst is {names}, with {percent(pairs.found.worst[1])}"
    far = f"Counts of two columns differ by {percent(pairs.found.mean, 1)} of all rows in the mean; {worst}"
    if pairs.kept is None:
        yield Verdict(
            "look",
            "use",
            f"{far}. Another sample of as many people would differ by {percent(pairs.fresh, 1)}, and columns drawn one "
            f"by one by {percent(pairs.apart, 1)}: there are too few rows, or too few links, to say which are kept.",
        )
        return
    yield Verdict(
        _kind(pairs.kept),
        "use",
        f"{far}. {percent(pairs.kept)} of the links between columns are kept, where 0 % is columns drawn one by one "
        f"and 100 % another sample of the same people.",
    )


def _lost(likeness: Likeness) -> Iterator[Verdict]:
    """Say which columns have lost their values: rows that are called other, or went to another cell."""
    lost = sorted((one for one in likeness.overlays if one.lost >= _FEW), key=lambda one: -one.lost)
    if not lost:
        return
    told = columns_text([f"{one.name} {percent(one.lost)}" for one in lost[:_LISTED]])
    more = f" and {len(lost) - _LISTED} more columns" if len(lost) > _LISTED else ""
    all_of_it = " A column with 100 % holds nothing of what it held." if lost[0].lost > 0.995 else ""
    yield Verdict(
        "bad" if lost[0].lost >= _MANY else "look",
        "use",
        "Values that nobody declared or found are gone; the synthetic table has “other” or another cell instead. Share "
        f"of rows: {told}{more}. All of these rows count as distance.{all_of_it}",
    )


def _correlations(likeness: Likeness) -> Iterator[Verdict]:
    numbers = likeness.correlations
    if numbers is None or not (changes := numbers.changes):
        return
    (one, other), real, made = changes[0]
    kind: Kind = "good" if abs(made - real) <= _SMALL_CHANGE else "look"
    yield Verdict(
        kind,
        "use",
        f"Correlations of numbers: the largest change of {len(changes)} is that of {one} and {other}, {real:.2f} in "
        f"the rows compared and {made:.2f} in the synthetic table.",
    )


def _priced(evaluation: Evaluation) -> Iterator[Verdict]:
    if evaluation.priced is None:
        return
    for way in evaluation.priced.ways[1:2] or evaluation.priced.ways[:1]:
        yield Verdict(
            "good" if way.mean < 0.1 else "look",
            "use",
            f"Counts of {'two columns' if way.columns == 2 else 'one column'} differ by "
            f"{percent(max(0.0, way.mean), 1)} ± {percent(way.mean_error, 1)} of all rows in the mean.",
        )


def _kind(kept: float) -> Kind:
    return "good" if kept >= _MOST_OF else "look" if kept >= _HARDLY else "bad"


# --- documents: An evaluation as one JSON object: every figure of the page, under names that do not change. ---


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
        "promise": None if evaluation.promise is None else _documents_promise(evaluation.promise),
        "likeness": _documents_likeness(evaluation.likeness, evaluation.columns),
        "attacks": None if attacked is None else _attacked(attacked, evaluation.error),
        "charged": None if priced is None else _documents_priced(priced, evaluation.columns),
        "notes": list(evaluation.notes),
    }


def _documents_promise(promise: Promise) -> dict[str, Any]:
    return {
        "epsilon": promise.epsilon,
        "delta": float(promise.delta),
        "relation": promise.relation.name,
        "unit": promise.unit,
        "best_guess": guess_of(promise),
    }


def _documents_likeness(likeness: Likeness, columns: Sequence[str]) -> dict[str, Any]:
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


def _documents_priced(priced: NoisyComparison, columns: Sequence[str]) -> dict[str, Any]:
    return {
        "spent": _documents_promise(priced.spent),
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
