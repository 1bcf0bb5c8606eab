"""What the table is good for: models that are trained on it, and questions that it answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.evaluation.page.marks import bars, listing, paragraph, section, words
from discreet.evaluation.words import columns_text, number, percent
from discreet.evaluation.workload import WorkloadTable
from discreet.plots import Scale, scale_for, strip

if TYPE_CHECKING:
    from discreet.evaluation.evaluation import Evaluation

__all__ = ["models_part", "questions_part"]


def models_part(evaluation: Evaluation) -> str:
    """Write the section of models."""
    down = evaluation.likeness.downstream
    if down is None:
        return ""
    scale = scale_for([one for each in down.models for one in (each.real, each.synthetic)]) if down.number else None
    scale = Scale(0.0, 100.0) if scale is None else scale
    times = 1.0 if down.number else 100.0
    rows = []
    for one in down.models:
        for kind, value in (("synthetic", one.synthetic), ("real", one.real)):
            told = f"{value:.2f}" if down.number else percent(value)
            drawn = strip(scale, times * value, accent=kind == "synthetic")
            rows.append((f"{one.name}, on {kind} {down.kind}", drawn, told))
    if not down.number:
        rows.append(("naming the commonest", strip(scale, 100 * down.naive), percent(down.naive)))
    measure = "R², where 1 is exact" if down.number else "right answers, in per cent"
    seen = (
        f" No {down.kind} were held out, so those of the test were among those that were synthesised: the figures may "
        "be a little too good."
        if down.seen
        else ""
    )
    parts = [
        paragraph(
            f"Models learn to tell {down.label} from everything else, once from synthetic {down.kind} and once from "
            f"real ones, and are tested on the same {down.tested:,} real {down.kind}.{seen}"
        ),
        bars(f"{down.label}: {measure}", rows, scale),
    ]
    return section("models", "Models trained on it", parts)


def questions_part(evaluation: Evaluation) -> str:
    """Write the section of questions."""
    asked = evaluation.likeness.workload
    if asked is None or not asked.asked:
        return ""
    promised = asked.asked[0].alone is not None
    told = (
        "Each row is a table of counts. “Synthetic” is the error within which 95 of 100 of its cells are, if they are "
        f"read off the synthetic table and scaled to the {asked.rows:,} rows of {evaluation.compared}."
    )
    if promised:
        told += (
            " “Asked directly” is the ± of a private answer to this one question that spends the same ε, and “all "
            "asked directly” if all these questions share it. Where a direct answer is more exact it is set in bold: "
            "then that question is better asked."
        )
    heads = ("table of counts", "cells", "synthetic", *(("asked directly", "all asked directly") if promised else ()))
    parts = [paragraph(told), listing(heads, [_row(one) for one in asked.asked], kind="questions")]
    return section("questions", "Questions, asked both ways", parts)


def _row(asked: WorkloadTable) -> tuple[str, ...]:
    first = (words(columns_text(asked.columns)), words(f"{asked.cells:,}"), words(f"± {number(asked.synthetic)}"))
    if asked.alone is None or asked.shared is None:
        return first
    return (*first, _direct(asked.alone, asked.better_alone), _direct(asked.shared, asked.better_shared))


def _direct(error: float, better: bool) -> str:
    told = words(f"± {number(error)}")
    return f'<b class="better">{told}</b>' if better else told
