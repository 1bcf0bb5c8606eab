"""The head of the page: what this is, for whom, and the three things to know."""

from __future__ import annotations

from datetime import UTC

from discreet.release.bundle.claims import StatedGuarantee, percent_up
from discreet.release.bundle.naming import DUMMY
from discreet.release.bundle.telling import counted_words, noun, period_words, who_words
from discreet.release.published import Published
from discreet.release.report.marks import paragraph, prose, section, words

__all__ = ["about_part", "head_part"]


def head_part(published: Published, claim: StatedGuarantee) -> str:
    """Write the head."""
    plan, mark = published.plan, published.ledger
    by = [plan.publisher, period_words(published)]
    if mark is not None:
        moment = mark.time if mark.time.tzinfo is None else mark.time.astimezone(UTC)
        by.append(f"released {moment.date().isoformat()}")
    dummy = f"{DUMMY}: made of invented rows to show the shape of a release. No number on this page is about anybody."
    parts = [
        '<p class="kicker">Statistics with a privacy guarantee</p>',
        f"<h1>{words(plan.title)}</h1>",
        f'<p class="by">{words(" · ".join(part for part in by if part))}</p>',
        f'<p class="dummy" role="note">{words(dummy)}</p>' if mark is None else "",
        f'<div class="cards">{"".join(_cards(claim))}</div>',
    ]
    return f"<header>{''.join(parts)}</header>"


def _cards(claim: StatedGuarantee) -> list[str]:
    protected = "Each row" if claim.is_row else f"Every {claim.unit}"
    budget = claim.budget.describe() if claim.lifetime_guess is None else f"ε = {claim.epsilon_text}"
    whole = "" if claim.lifetime_guess is None else f"of a lifetime budget of {claim.budget.describe()}"
    return [
        _card("Protected", protected, f"with all rows in all tables{_but(claim)}" if not claim.is_row else "by itself"),
        _card(
            "A guess is right",
            f"at most {percent_up(claim.guess)}",
            f"whether one {noun(claim)} is in the data{_but(claim)}; a coin: 50 %",
        ),
        _card("Spent", budget, f"δ = {claim.delta_text}; {whole}" if claim.delta else whole),
    ]


def _but(claim: StatedGuarantee) -> str:
    excepted = [*claim.apart, *(["what was read from the data for the plan"] if claim.from_data else [])]
    return f", but for {' and '.join(excepted)}" if excepted else ""


def _card(name: str, value: str, more: str) -> str:
    return f'<div class="card"><span>{words(name)}</span><b>{prose(value)}</b><span>{prose(more)}</span></div>'


def about_part(published: Published, claim: StatedGuarantee) -> str:
    """Write what this is and how to read it."""
    tidied = published.plan.output.tidy and any(table.tidy is not None for table in published.tables)
    parts = [
        paragraph(
            "These tables were computed from private data. Random noise was added to every number before it left. So "
            "there is a proven limit to what anybody can find out about one person from them, whatever else they know. "
            "What the tables say about groups stays useful: a number comes with how far off it may be, or the "
            "dictionary says why not."
        ),
        paragraph(
            "The plan itself holds facts that were read from the data without noise. That limit does not cover them; "
            "they are listed under Limits and notes."
        )
        if claim.from_data
        else "",
        paragraph(who_words(claim)),
        paragraph(
            f"The released (raw) values are what the noise left: counts and sums are right on average "
            f"{counted_words(published)}, and can be negative or fractional. Compute with these."
            + (
                " Tidy values are made from them to be whole, not negative, and to add up. Print these; their small "
                "errors no longer cancel out."
                if tidied
                else ""
            )
        ),
    ]
    return section("about", "What this is", parts)
