"""How like the real table it is: counts of one, two and three columns, every column, and what goes together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from discreet.evaluation.likeness import Associations, Overlay, Way, pairs_matrix
from discreet.evaluation.page.page_style import bars, listing, paragraph, section, words
from discreet.evaluation.promised_limits import columns_text, percent
from discreet.plots import heatmap, overlaid_bars, overlaid_steps, scale_for, strip

if TYPE_CHECKING:
    from discreet.evaluation.evaluation import Evaluation

__all__ = ["columns_part", "likeness_part", "links_part"]

_NUMBERS = {1: "one column", 2: "two columns", 3: "three columns"}
_WORST = 8  # Tables that are listed.
_MAPPED = 30  # Columns of a map; more would be too small to see.


def likeness_part(evaluation: Evaluation) -> str:
    """Write the section of distances."""
    fidelity = evaluation.likeness.fidelity
    if fidelity is None:
        return ""
    compared = evaluation.compared
    parts = [
        paragraph(
            f"Count the rows of every combination of values, in the synthetic table and in {compared}, and move rows "
            "until both agree: the share of rows that must move is the distance. 0 % is the same, 100 % nothing in "
            "common."
        ),
        *(part for way in fidelity.ways for part in _way(way, evaluation)),
    ]
    pairs = fidelity.way(2)
    if pairs is not None:
        parts.append(_pairs_map(evaluation, pairs))
    return section("likeness", f"How like {compared} it is", parts)


def _way(way: Way, evaluation: Evaluation) -> Iterator[str]:
    shown = {
        "the synthetic table": way.found.mean,
        "another sample of the same people": way.fresh,
        "columns drawn one by one": way.apart,
    }
    if way.columns == 1:
        del shown["columns drawn one by one"]
    scale = scale_for(100 * value for value in shown.values())
    rows = [
        (name, strip(scale, 100 * value, accent=name == "the synthetic table"), percent(value, 1))
        for name, value in shown.items()
    ]
    yield f"<h3>Counts of {_NUMBERS[way.columns]}</h3>"
    yield bars(f"Mean distance of {len(way.found.by_clique):,} tables of counts, in per cent", rows, scale)
    worst = sorted(way.found.by_clique.items(), key=lambda item: -item[1])[:_WORST]
    listed = [(words(columns_text([evaluation.columns[at] for at in one])), words(percent(v, 1))) for one, v in worst]
    more = f"; {way.left_out:,} more were left out" if way.left_out else ""
    yield (
        f"<details><summary>the worst of them{words(more)}</summary>"
        f"{listing(('table of counts', 'distance'), listed)}</details>"
    )


def _pairs_map(evaluation: Evaluation, pairs: Way) -> str:
    names = evaluation.columns[:_MAPPED]
    values = [list(row[: len(names)]) for row in pairs_matrix(len(evaluation.columns), pairs.found)[: len(names)]]
    most = max((value for row in values for value in row if value), default=1.0)
    told = f"Distances of all pairs of columns; the strongest colour is {percent(most, 1)}."
    drawn = heatmap(values, names, name="pairs-map", told=told, most=most)
    return (
        f'<div class="pictures maps"><figure>{drawn}<figcaption>Which two columns together are worst: {words(told)}'
        "</figcaption></figure></div>"
    )


def columns_part(evaluation: Evaluation) -> str:
    """Write the section of single columns."""
    overlays = evaluation.likeness.overlays
    if not overlays:
        return ""
    key = (
        '<p class="key-to note"><i><svg width="30" height="14" aria-hidden="true"><rect width="30" height="14" '
        f'fill="var(--quiet)" fill-opacity="0.38"/></svg>{words(evaluation.compared)}</i><i><svg width="30" '
        'height="14" aria-hidden="true"><rect width="30" y="4.5" height="5" fill="var(--accent)"/></svg>the synthetic '
        "table</i></p>"
    )
    each = "".join(_column(one) for one in overlays)
    return section("columns", "Column by column", [key, f'<div class="columns">{each}</div>'])


def _column(overlay: Overlay) -> str:
    head = f"<h3>{words(overlay.name)} <span>{words(percent(overlay.distance, 1))} apart</span></h3>"
    if overlay.lost > 0:
        told = f"{percent(overlay.lost, 1)} of rows have a value that the synthetic table does not: nobody declared it."
        head += paragraph(told, kind="note")
    return f"<article>{head}{_ordered(overlay) if overlay.ordered else _values(overlay)}</article>"


def _ordered(overlay: Overlay) -> str:
    labels = overlay.labels
    ends = [labels[0], labels[len(labels) // 2], labels[-1]] if len(labels) > 2 else list(labels)
    axis = "".join(f"<span>{words(label)}</span>" for label in ends)
    return f'{overlaid_steps(overlay.real, overlay.synthetic)}<div class="axis" aria-hidden="true">{axis}</div>'


def _values(overlay: Overlay) -> str:
    most = max(*overlay.real, *overlay.synthetic, 1e-9)
    rows = "".join(
        f'<tr><th class="key" scope="row">{words(label)}</th><td class="drawn">{overlaid_bars(true, made, most)}</td>'
        f'<td class="number">{words(percent(made))}</td></tr>'
        for label, true, made in zip(overlay.labels, overlay.real, overlay.synthetic, strict=True)
    )
    return f"<table><tbody>{rows}</tbody></table>"


def links_part(evaluation: Evaluation) -> str:
    """Write the section of what goes together."""
    links = evaluation.likeness.associations
    if links is None or len(evaluation.columns) < 2:
        return ""
    few = "" if len(evaluation.columns) <= _MAPPED else f" The first {_MAPPED} columns are shown."
    parts = [
        paragraph(
            "How strongly two columns go together, by Cramér's V: the stronger the colour, the more one tells. "
            f"On the third map blue links are stronger in the synthetic table, and orange ones weaker.{few}"
        ),
        f'<div class="pictures maps">{"".join(_maps(evaluation, links))}</div>',
        paragraph(f"The largest change of any link is {links.largest:.2f}.", kind="note"),
        *_correlated(evaluation),
    ]
    return section("links", "What goes together", parts)


def _correlated(evaluation: Evaluation) -> Iterator[str]:
    """List the correlations of numbers, those that changed most first."""
    numbers = evaluation.likeness.correlations
    if numbers is None or not (changes := numbers.changes):
        return
    listed = [
        (words(columns_text(list(pair))), words(f"{real:.2f}"), words(f"{made:.2f}"))
        for pair, real, made in changes[:_WORST]
    ]
    yield "<h3>Correlations of numbers</h3>"
    yield paragraph("Pearson's correlation of the values themselves, not of their bins; the largest changes first.")
    yield listing(("columns", evaluation.compared, "the synthetic table"), listed)


def _maps(evaluation: Evaluation, links: Associations) -> Iterator[str]:
    names = evaluation.columns[:_MAPPED]
    squares = {
        evaluation.compared: (links.real, 1.0, "real"),
        "the synthetic table": (links.synthetic, 1.0, "made"),
        "the difference": (links.difference, max(0.05, links.largest), "change"),
    }
    for title, (square, most, word) in squares.items():
        values = [list(row[: len(names)]) for row in square[: len(names)]]
        told = f"Links between columns of {title}."
        drawn = heatmap(values, names, name=f"links-{word}", told=told, most=most)
        yield f"<figure>{drawn}<figcaption>{words(title)}</figcaption></figure>"
