"""The whole page. It loads nothing and runs nothing; pictures are inside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.evaluation.page.attacks import attacks_part
from discreet.evaluation.page.closest import closest_part
from discreet.evaluation.page.likeness import columns_part, likeness_part, links_part
from discreet.evaluation.page.opening import opening, promise_part, verdicts_part
from discreet.evaluation.page.pictures import pictures_part
from discreet.evaluation.page.priced import priced_part
from discreet.evaluation.page.style import style
from discreet.evaluation.page.uses import models_part, questions_part
from discreet.release.report.marks import bullets, section, words
from discreet.release.report.style import policy_for

if TYPE_CHECKING:
    from discreet.evaluation.evaluation import Evaluation

__all__ = ["page"]

_PARTS = (
    verdicts_part,
    promise_part,
    attacks_part,
    closest_part,
    pictures_part,
    likeness_part,
    priced_part,
    columns_part,
    links_part,
    models_part,
    questions_part,
)


def page(evaluation: Evaluation) -> str:
    """Write the page."""
    main = "".join(part(evaluation) for part in _PARTS)
    return (
        f"{_head(evaluation)}<body>{opening(evaluation)}<main>{main}{_measured(evaluation)}</main>"
        "<footer><p>Made with Discreet. This page loads nothing and runs nothing; it works offline.</p></footer>"
        "</body></html>\n"
    )


def _head(evaluation: Evaluation) -> str:
    looks = style(evaluation.heading)
    policy = policy_for(looks).replace("default-src 'none';", "default-src 'none'; img-src data:;")
    title = evaluation.title if evaluation.standing != "custodian" else f"NOT PRIVATE: {evaluation.title}"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">'
        f"<title>{words(title)}</title><style>{looks}</style></head>"
    )


def _measured(evaluation: Evaluation) -> str:
    return section("measured", "How it was measured", [bullets(evaluation.notes)])
