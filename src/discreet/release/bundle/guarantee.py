"""The guarantee: first in words that everybody understands, then in formulas."""

from __future__ import annotations

from collections.abc import Iterator

from discreet.release.bundle.claims import StatedGuarantee, percent_up
from discreet.release.bundle.naming import DUMMY
from discreet.release.bundle.prose import code, line, paragraphs, table_of
from discreet.release.bundle.telling import (
    bounded_words,
    confidence_words,
    factor_words,
    guess_words,
    invariant_words,
    lifetime_words,
    series_words,
    unprotected,
    who_words,
)
from discreet.release.published import Published

__all__ = ["alone_text", "guarantee_page"]

_READ = (
    ("the definition of ε, and noise that has it", "Dwork, McSherry, Nissim, Smith 2006", "DMNS06"),
    ("the definition of (ε, δ)", "Dwork, Kenthapadi, McSherry, Mironov, Naor 2006", "DKMMN06"),
    ("the exact privacy of Gaussian noise", "Balle, Wang 2018", "BW18"),
    ("what an attacker can and cannot test", "Wasserman, Zhou 2010; Kairouz, Oh, Viswanath 2015", "WZ10, KOV15"),
    ("budgets that hold while questions depend on answers", "Rogers, Roth, Ullman, Vadhan 2016", "RRUV16"),
)


def guarantee_page(published: Published, claim: StatedGuarantee) -> str:
    """Write the guarantee of a release."""
    return paragraphs([*_plain(published, claim), *_formal(published, claim)])


def _plain(published: Published, claim: StatedGuarantee) -> Iterator[str]:
    yield f"# What is guaranteed: {line(published.plan.title)}"
    if published.ledger is None:
        yield (
            f"**{DUMMY}. These tables are made of invented rows: they tell nothing about anybody. This page says what "
            "a real release of this plan would guarantee.**"
        )
    yield "## Who is protected"
    yield line(who_words(claim))
    yield "## What anybody can learn about one of them, at most"
    yield line(guess_words(claim))
    yield line(factor_words(claim))
    yield line(bounded_words(published))
    yield "## What is not protected"
    yield "\n".join(f"- {line(each)}" for each in unprotected(published, claim))
    yield from _invariants(published)
    yield from _series(published)
    yield "## Over the lifetime of the data"
    yield line(lifetime_words(claim))


def _series(published: Published) -> Iterator[str]:
    if published.running:
        yield "## Totals so far"
        yield "\n".join(f"- {line(series_words(running))}" for running in published.running)
        yield (
            "The numbers above count these series in, as far as they protect the same unit. What one release spends "
            "without them is in `manifest.json`."
        )


def _invariants(published: Published) -> Iterator[str]:
    if published.plan.invariants:
        yield "These numbers are exact. They were typed into the plan and never read from the data:"
        yield "\n".join(f"- {line(invariant_words(each))}" for each in published.plan.invariants)


def _formal(published: Published, claim: StatedGuarantee) -> Iterator[str]:
    unit = "one row" if claim.is_row else f"all rows that share one value of `{claim.unit}`, in all private tables"
    yield "## The same in formulas"
    seen = ["the fields of the plan that were read from the data when it was drafted"] if claim.from_data else []
    excepted = [*map(code, claim.apart), *seen]
    but = f", but for {' and '.join(excepted)}" if excepted else ""
    yield (
        f"M is everything in this bundle that was computed from the data{but}. Data sets D and D′ are neighbours "
        f"({published.relation.value}) if one is the other with one unit more: {unit}. For all neighbours and all "
        "sets S of outcomes,"
    )
    yield f"    P[M(D) ∈ S] ≤ e^ε · P[M(D′) ∈ S] + δ      with ε = {claim.epsilon_text} and δ = {claim.delta_text}."
    if claim.apart:
        yield (
            f"For {' and '.join(map(code, claim.apart))} the same holds with the ε and δ of its own that are told "
            f"above, for neighbours that differ by the rows of one `{claim.unit}` on one day."
        )
    yield (
        "Tidy values, charts and this text are computed from M alone and change nothing. For every test that tells D "
        "from D′, false positives a and false negatives b keep 1 − δ ≤ b + e^ε · a, and a + b ≥ 1 − δ(0); so a guess "
        f"at even odds is right with probability at most (1 + δ(0)) / 2 = {percent_up(claim.guess)}."
    )
    yield f"Noise: {'; '.join(claim.mechanisms)}."
    yield "By table, each alone at the same δ; what they spend together is worked out as a whole:"
    yield table_of(
        ("table", "ε alone", "what was said when it was priced"),
        [(code(name), alone_text(level), line(cost)) for name, level, cost in _costs(published, claim)],
    )
    yield (
        f"Intervals hold with {confidence_words(published)} confidence, one cell at a time. `manifest.json` has the "
        "event of the release, exactly, under `guarantee.event`."
    )
    yield "Where it is proven: " + "; ".join(f"{what}: {who} [{key}]" for what, who, key in _READ) + "."


def _costs(published: Published, claim: StatedGuarantee) -> Iterator[tuple[str, float, str]]:
    said = [table.raw.cost for table in published.tables] + [each.table.cost for each in published.running]
    for (name, level), cost in zip(claim.alone, said, strict=True):
        yield name, level, cost


def alone_text(level: float) -> str:
    """Write what one table spends alone."""
    return f"{level:.4g}" if level < float("inf") else "none alone"
