"""Sentences that the guarantee, the report and the registry share: one wording of each promise."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from fractions import Fraction

from discreet.formatting import enumerated, percent_up, plain, with_article
from discreet.query.plan.kept_share import kept_share
from discreet.query.policy import Chain, Unit, counted_rows
from discreet.release.bundle.claims import StatedGuarantee
from discreet.release.plan import Invariant, SeenFact
from discreet.release.published import Published, PublishedTable, RunningRelease
from discreet.release.signatures import ALGORITHM

__all__ = [
    "DRAWN",
    "apart_words",
    "bounded_words",
    "code",
    "confidence_words",
    "counted_words",
    "exact_words",
    "factor_words",
    "guess_words",
    "interval_words",
    "invariant_words",
    "kept_words",
    "lifetime_words",
    "line",
    "nested_words",
    "pair_words",
    "paragraphs",
    "period_words",
    "seen_apart",
    "seen_words",
    "series_unit",
    "series_words",
    "signer_words",
    "table_of",
    "unbiased_words",
    "unprotected",
    "who_words",
]


def period_words(published: Published) -> str:
    """Say which stretch of time a release is about."""
    period = published.period
    if period.first is None or period.end is None:
        return "published once"
    return f"{period.label} ({period.first.isoformat()} to {(period.end - timedelta(days=1)).isoformat()})"


def who_words(claim: StatedGuarantee) -> str:
    """Say who is protected."""
    if claim.is_row:
        return (
            "Each row of the private tables is protected by itself. A person with several rows is protected less: once "
            f"for each of them.{_known_words(claim)}"
        )
    within = "" if claim.window is None else f" of that {claim.window}"
    return (
        f"Every {claim.noun} is protected: everybody who shares {claim.shared}, with all their rows{within} in all "
        f"private tables together.{_known_words(claim) or ' Whether their data were used at all is protected too.'}"
        f"{nested_words(claim)}"
    )


def nested_words(claim: StatedGuarantee) -> str:
    """Say what is promised to each unit within the first; nothing where nothing is."""
    inner = claim.within
    if inner is None:
        return ""
    return (
        f" Within it, every {inner.noun} has a promise of its own: all rows that share {inner.shared}, with "
        f"ε = {inner.epsilon_text} and δ = {inner.delta_text}. Whoever guesses at even odds "
        f"whether one {inner.noun} is in the data is right in at most {percent_up(inner.guess)} of cases. All that is "
        f"published stays, for one {inner.noun}, within {inner.budget.describe()}; an answer that does not fit both "
        f"budgets is refused. Every other number here is about one {claim.noun}."
    )


def _known_words(claim: StatedGuarantee) -> str:
    """Say what replace-one leaves open; nothing under add-remove."""
    if not claim.is_exchanged:
        return ""
    rows = "it says" if claim.is_row else "these rows say, or that there are none"
    return (
        f" What is protected is what {rows}: neighbours exchange them for any others (replace-one). That somebody took "
        f"part is not; that there are {claim.known}, is public."
    )


def apart_words(claim: StatedGuarantee) -> str:
    """Say what the promise to a unit does not cover: series of single days, and what was read for the plan, if any."""
    return f"{_series_apart(claim)}{seen_apart(claim.from_data, claim.noun)}"


def seen_apart(facts: Sequence[SeenFact], noun: str) -> str:
    """Say that no number covers what was read from the data for the plan; nothing where nothing was."""
    if not facts:
        return ""
    return (
        " This does not cover what was read from the data, without noise, when the plan was drafted "
        f"({', '.join(fact.field for fact in facts)}): one {noun} can be visible in it."
    )


def _series_apart(claim: StatedGuarantee) -> str:
    if not claim.apart:
        return ""
    return (
        f" This does not cover {' and '.join(claim.apart)}: there each day of one {claim.noun} is protected by "
        "itself, from an account of its own, and what it tells about somebody comes on top."
    )


def guess_words(claim: StatedGuarantee) -> str:
    """Say what the best attacker can gain."""
    return (
        f"Think of somebody who knows everything about everybody else, has any computer, and wants to find out "
        f"{claim.secret}. Before reading these tables, a coin toss is right half of the "
        f"time. After reading all of them, the best guess is right in at most {percent_up(claim.guess)} of cases."
        f"{apart_words(claim)}"
    )


def pair_words(claim: StatedGuarantee) -> str:
    """Say why `discreet explain-epsilon` tells more for the same ε and δ; nothing where it does not."""
    pair = claim.pair_guess
    if percent_up(pair) == percent_up(claim.guess):
        return ""
    at = f", δ = {claim.delta_text}" if claim.delta else ""
    return (
        f"Of the pair ε = {claim.epsilon_text}{at} alone, whatever the noise, which is what discreet explain-epsilon "
        f"explains, only {percent_up(pair)} follows. The smaller bound above is for the noise that was really added, "
        "of which more is known than one ε; discreet explain-epsilon --bundle tells it too."
    )


def factor_words(claim: StatedGuarantee) -> str:
    """Say the same as betting odds, or as chances where δ is above zero."""
    if claim.delta == 0:
        return (
            f"As a bet: whatever odds somebody gave before reading, the tables can move them by a factor of at most "
            f"{claim.factor_text}, up or down (ε = {claim.epsilon_text})."
        )
    otherwise = "had that {} said anything else" if claim.is_exchanged else "without that {}"
    return (
        f"Whatever somebody hopes to find in these tables, the chance to find it is at most {claim.factor_text} times "
        f"what it would be {otherwise.format(claim.noun)}, plus {_chance(claim.delta)} (ε = {claim.epsilon_text}, δ = "
        f"{claim.delta_text})."
    )


def _left(claim: StatedGuarantee) -> str:
    """Say what is left, as the rule of the ledger counts it, rounded down."""
    left = claim.left
    return "" if left is None else f" After this one, {math.floor(1000 * left.share) / 10:g} % of it were left."


def _chance(delta: Fraction) -> str:
    """Write a small probability as people say it, rounded up."""
    return f"a chance of 1 in {math.floor(1 / delta):,}"


def bounded_words(published: Published) -> str:
    """Say how much of a unit is counted."""
    unit, chain = published.plan.policy.counted, published.plan.policy.chain
    if unit.is_row:
        return "This holds whatever else is known or published later, and for everything computed from these tables."
    told = (
        "how many these are was measured and is told with the tables"
        if any(table.plan.kept_of for table in published.tables)
        else "how many these are is not told"
    )
    windows = "" if unit.window is None else f"The promise is for one {unit.window}: {unit.several_windows}. "
    return (
        f"{windows}To keep this promise, contributions are bounded: {_limits_words(published)}"
        f"{_of_outer(chain)}. So the tables are "
        f"about the counted rows: their totals leave the others out, and {told}."
        f"{_apart(published)} The promise holds whatever else is known or published later, and for everything "
        "computed from these tables."
    )


def _limits_words(published: Published) -> str:
    """Say the limits of tables by themselves, and those of every family."""
    unit, families = published.plan.policy.counted, _families(published)
    told = []
    if any(table.plan.limits.family is None for table in published.tables):
        groups = "one group" if unit.max_groups == 1 else f"{unit.max_groups} groups"
        rows = "one row" if unit.max_rows_per_group == 1 else f"{unit.max_rows_per_group} rows"
        own = " by itself" if families else ""
        told.append(f"one {unit.noun} is counted in at most {groups} of a table{own}, with at most {rows} in each")
    for name, most in families.items():
        rows = "one row" if most == 1 else f"{most} rows"
        told.append(
            f"one {unit.noun} is counted with at most {rows}, the same ones, in all tables of {name!r}, so that their "
            "exact totals agree"
        )
    return f"{'; '.join(told)}, chosen at random if there are more"


def _families(published: Published) -> dict[str, int]:
    """Return how many rows of a unit each family counts."""
    unit, limits = published.plan.policy.unit, [table.plan.limits for table in published.tables]
    return {one.family.name: one.rows_in_family(unit) or 1 for one in limits if one.family is not None}


def _apart(published: Published) -> str:
    """Say that totals can differ, where tables choose their rows by themselves."""
    named = [table.plan.limits.family.name for table in published.tables if table.plan.limits.family is not None]
    alone = {
        tuple(one.name for one in table.raw.columns if not one.measured)
        for table in published.tables
        if table.plan.limits.family is None
    }
    if len(alone) + len(set(named)) <= 1:
        return ""
    several = "Tables that are not of one family" if named else "Tables with other groups"
    return (
        f" {several} can leave out other rows: totals of the same thing then differ from table to table by more than "
        "the noise."
    )


def _of_outer(chain: Chain | None) -> str:
    if chain is None:
        return ""
    return f", and one {chain.outer.noun} with at most {chain.max_inner} of them, chosen by secret tags"


def counted_words(published: Published) -> str:
    """Say of which rows counts and sums are right on average: where a limit cuts rows off, they are too small."""
    unit = published.plan.policy.unit
    if unit.is_row:
        return "for all rows, after values were clamped to their bounds"
    return (
        f"for the rows that are counted, after values were clamped to their bounds (rows of {with_article(unit.noun)} "
        "beyond its limits are not: totals leave them out)"
    )


def kept_words(published: Published, table: PublishedTable) -> tuple[str, ...]:
    """Say how much of a table's rows limits leave out, where that was measured, from released values alone."""
    own, family = table.plan.name, table.plan.family
    same = {own, *(one.plan.name for one in published.tables if family is not None and one.plan.family == family)}
    found = next((one for one in published.tables if one.plan.kept_of in same), None)
    if found is None:
        return ()
    return tuple(kept_share(found.raw, found.deviations, published.plan.policy.unit).sentences())


DRAWN = "what the counted rows were drawn from, if they were drawn independently of each other"


def exact_words(published: Published, named: Callable[[str], str] = str) -> str:
    """Say what a confidence interval holds: where a limit can cut, nothing is said about all rows."""
    unit = published.plan.policy.unit
    exact = "the exact value" if unit.is_row else f"the exact value of {counted_rows(unit)}"
    drawn = [named(table.plan.name) for table in published.tables if table.plan.population]
    if not drawn:
        return exact
    return f"{exact} (of means and quantiles in {enumerated(drawn)}: that of {DRAWN})"


def interval_words(published: Published) -> str:
    """Say what a confidence interval is, and how sure."""
    return f"confidence interval: holds {exact_words(published)} {confidence_words(published)} of the time"


def unbiased_words(unit: Unit) -> str:
    """Say of which rows raw counts and sums are right on average; where a limit can cut, nothing is unbiased."""
    if unit.is_row:
        return "counts and sums are unbiased for values within their bounds"
    return (
        "counts and sums are right on average for the counted rows and values within their bounds, and too small for "
        "all rows where a limit cuts"
    )


def unprotected(published: Published, claim: StatedGuarantee) -> Iterator[str]:
    """List what the promise does not cover."""
    yield (
        "Facts about people in general. If the tables show that an illness is common in a district, everybody who "
        "lives there is thought of differently, whether they are in the data or not."
    )
    if claim.from_data:
        yield (
            "What was read from the data when the plan was drafted, exactly and at no price: "
            f"{'; '.join(map(seen_words, claim.from_data))}. One {claim.noun} can be visible in each of these: with "
            f"somebody more or less in the data they may be others, and no ε limits what they tell."
        )
        yield "What is public anyway: names of tables and columns, the rest of this plan, and the price."
    else:
        yield "What is public anyway: names of tables and columns, the listed groups, bounds, this plan, and the price."
    if claim.is_exchanged:
        yield f"Who took part, and how many: there are {claim.known}. Noise hides what they said."
    unit = published.plan.policy.unit
    nouns = f" {unit.nouns}" if unit.is_row or (unit.name is not None and unit.window is None) else ""
    yield f"Several{nouns} at once: the promise weakens with every {claim.noun} taken together."
    yield "The data where they are kept, and other publications made from them without this budget."
    if published.plan.invariants:
        yield "The numbers that the plan calls invariant: they are exact."
    if any(running.person_day for running in published.plan.running):
        yield (
            f"In {' and '.join(claim.apart)}, one {claim.noun} over several days, and together with the other tables: "
            "there each day is protected by itself."
        )


def seen_words(fact: SeenFact) -> str:
    """Name a field of the plan that was read from the data, and what it says."""
    return f"{fact.field} = {fact.value}"


def confidence_words(published: Published) -> str:
    """Write how sure intervals are."""
    return f"{plain(published.tables[0].raw.confidence * 100)} %"


def invariant_words(invariant: Invariant) -> str:
    """Name an exact number and why it is one."""
    where = ", ".join(f"{name} = {value}" for name, value in invariant.where.items())
    row = f" where {where}" if where else ""
    return f"{invariant.column} of {invariant.table}{row} = {plain(invariant.value)} ({invariant.reason})"


def series_unit(published: Published, running: RunningRelease) -> str:
    """Name whom a series protects."""
    unit = published.plan.policy.unit
    return f"{unit.noun} and day" if running.plan.person_day else unit.noun


def series_words(published: Published, running: RunningRelease) -> str:
    """Say what a series is, whom it protects and what all its days cost."""
    plan, unit = running.plan, series_unit(published, running)
    counted = (
        f"each {unit} is protected by itself; somebody who is there on several days is protected less"
        if plan.person_day
        else f"one {unit} is counted on at most {plan.max_days} of its days"
    )
    return (
        f"Total of {plan.source} so far, for {plan.days:,} days from {plan.first}; {counted}. Paid for once, for all "
        f"days: {running.table.cost}."
    )


def signer_words(published: Published) -> str:
    """Say who signed a bundle, and that a fingerprint is worth as much as the place where it was found."""
    if published.signer is None:
        return (
            "This bundle is not signed: that its files agree with each other does not show who wrote them. Only the "
            "holder of the ledger can."
        )
    return (
        f"This bundle is signed with the {ALGORITHM} key whose fingerprint is {published.signer.fingerprint}. Compare "
        "it with the one that the publisher makes known elsewhere: whoever forges a bundle can write any fingerprint "
        "into it."
    )


def lifetime_words(claim: StatedGuarantee) -> str:
    """Say what all releases together may spend."""
    if claim.lifetime_guess is None:
        return (
            "This data set has no lifetime budget: what is promised holds for what is charged within one window of "
            f"time, and windows add up: {claim.windows}."
        )
    held = "" if claim.times is None else f" Untouched, it would hold {claim.times:,} releases like this one."
    return (
        "Everything that is published from this data set under this promise, by anybody, stays within one budget. It "
        f"was {claim.budget.describe()} when this was published; the publisher can raise it, and each raise is "
        f"recorded with who and why. A ledger refuses what does not fit.{held}{_left(claim)} When all of it is spent, "
        f"the best guess is right in at most {percent_up(claim.lifetime_guess)} of cases{_whatever_noise(claim)}."
        f"{apart_words(claim)}"
    )


def _whatever_noise(claim: StatedGuarantee) -> str:
    """Say why the bound of a whole budget is of another kind than that of a release, where it is, and compare alike."""
    if claim.budget.kind == "concentrated" or percent_up(claim.pair_guess) == percent_up(claim.guess):
        return ""
    return (
        ", by its ε and δ alone, since nobody knows yet which noise will spend it; by ε and δ alone what is in this "
        f"bundle allows {percent_up(claim.pair_guess)}"
    )


# --- prose: Markdown, in which no title, key or note can become anything but text. ---


_MARKS = re.compile(r"([\\`*_{}\[\]<>#|~])")


def line(text: str) -> str:
    """Write a text on one line, with every mark of Markdown and of HTML escaped."""
    return _MARKS.sub(r"\\\1", " ".join("".join(c if c.isprintable() else " " for c in text).split()))


def paragraphs(parts: Iterable[str]) -> str:
    """Join paragraphs; the text ends with a newline."""
    return "\n\n".join(part for part in parts if part) + "\n"


def code(text: str) -> str:
    """Write a name in the type of code; one with odd letters as plain text."""
    return f"`{text}`" if re.fullmatch(r"[\w ./:=+-]+", text) else line(text)


def table_of(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table; its cells are Markdown already."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
