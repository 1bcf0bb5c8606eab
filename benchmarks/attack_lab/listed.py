"""All attacks, in the order of the lab: what success is, and which two kinds of releases are compared."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from benchmarks.attack_lab import on_answers, on_models, on_rows
from benchmarks.attack_lab.contests import Contest

__all__ = ["CONTESTS", "ERROR", "LEVELS"]

LEVELS: Final = (Fraction(1, 10), Fraction(1), Fraction(10))
ERROR: Final = 1e-5  # That a ceiling is denied wrongly, for each comparison.

CONTESTS: Final = (
    Contest(
        name="uniqueness",
        right="raw: alone with ZIP, birth date, sex; ours: cells of one person in which somebody is seen",
        without_is="raw: alone with ZIP and sex; ours: empty cells in which somebody is seen",
        raw="rows without names",
        ours="no rows, but counts by ZIP, birth year and sex, Laplace",
        attack=on_rows.uniqueness,
    ),
    Contest(
        name="linkage",
        right="visits that fit one name",
        without_is="fits with a stranger's values",
        raw="rows without names",
        ours="no rows are released, so there is nothing to join; what tables tell: see below",
        attack=on_rows.linkage,
        private=False,
    ),
    Contest(
        name="scoreboard",
        right="raw: named rightly by 8 entries, ± 14 days; ours: said to be counted, and is",
        without_is="the same, but is not there",
        raw="diaries without names",
        ours="counts of items, 20 a person at most, Laplace",
        attack=on_rows.scoreboard,
    ),
    Contest(
        name="differencing",
        right="diagnosis of people alone in a difference",
        without_is="same tables, made without the row",
        raw="exact tables, counts below 5 hidden",
        ours="the same tables, Gaussian; the attacker is told who is alone",
        attack=on_rows.differencing,
    ),
    Contest(
        name="reconstruction, marginals",
        right="rows rebuilt in every column",
        without_is="same tables, made without the row",
        raw="exact tables of up to 3 columns",
        ours="the same tables, Gaussian",
        attack=on_rows.marginals,
    ),
    Contest(
        name="reconstruction, subsets",
        right="secret bits, everybody a fair coin",
        without_is="a coin",
        raw="every count with noise that costs ε = 1 by itself",
        ours="the same counts, Gaussian, ε for all together",
        attack=on_answers.reconstruction,
    ),
    Contest(
        name="averaging",
        right="whether one person is counted",
        without_is="a coin",
        raw="fresh noise of ε = 1 for each of 100 answers",
        ours="a session, asked twice: it gives its stored answer again",
        attack=on_answers.averaging,
    ),
    Contest(
        name="tracing",
        right="members found, 5 % of strangers accused",
        without_is="the same people, if a stranger is counted instead",
        raw="exact counts",
        ours="the same counts, Gaussian",
        attack=on_answers.tracing,
    ),
    Contest(
        name="sticky noise, clones",
        right="secret of a person, a fair coin",
        without_is="a coin",
        raw="a model of noise that sticks to the question",
        ours="counts with the noise of a session; ε for the 20 questions of an attack",
        attack=on_answers.exploiting("noise of clones"),
    ),
    Contest(
        name="sticky noise, asking directly",
        right="secret of a person, a fair coin",
        without_is="a coin",
        raw="the same model, which refuses: a coin is tossed",
        ours="the same counts; all of ε for one question",
        attack=on_answers.exploiting("asking directly"),
    ),
    Contest(
        name="floating point",
        right="outputs whose last digits tell the input",
        without_is="such outputs of the other input",
        raw="textbook Laplace noise on doubles, ε = 1",
        ours="discrete Laplace on a public grid",
        attack=on_answers.floating_point,
    ),
    Contest(
        name="membership",
        right="members found by LiRA, 5 % false alarms",
        without_is="people who were not in",
        raw="logistic regression until it fits",
        ours="one clipped gradient step, Gaussian (the library has no trainer of its own yet)",
        attack=on_models.membership,
    ),
    Contest(
        name="attributes",
        right="illness, through a synthetic table",
        without_is="a table made without the row",
        raw="a copy of the table",
        ours="a table of noisy counts, Laplace",
        attack=on_models.attributes,
    ),
)
