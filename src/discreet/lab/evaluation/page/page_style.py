"""How the report looks: as a release does, with its standing on every screen and every sheet of paper."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from discreet.plots import Scale, ruler
from discreet.release.report.page_style import STYLE, paragraph, prose, section, words

__all__ = ["bars", "listing", "paragraph", "prose", "section", "style", "words"]

_MORE = """\
.mark{position:sticky;top:0;z-index:1;background:var(--warn);color:var(--paper);text-align:center;font-weight:600;
font-size:.92rem;padding:.35rem 1rem}
.mark.fine{background:var(--bar);color:#fff}
.verdicts{list-style:none;padding:0;margin:1rem 0}
.verdicts li{display:grid;grid-template-columns:4.2rem 1fr;gap:0 .9rem;align-items:start;margin:.75rem 0}
.badge{display:inline-block;text-align:center;border-radius:.4rem;font-weight:600;font-size:.88rem;padding:.1rem 0;
margin-top:.2rem;border:2px solid var(--bar);color:var(--link)}
.badge.look{border-color:var(--accent);color:var(--accent)}
.badge.bad{border-color:var(--warn);color:var(--warn)}
.badge.privacy.bad{background:var(--warn);color:var(--paper)}
.cards{grid-template-columns:repeat(auto-fit,minmax(15rem,1fr))}
.chart .key{width:33%}
.chart .drawn{width:50%}
.chart td.number{white-space:nowrap}
figure.wide{max-width:100%}
.pictures.maps{gap:1rem 1.4rem}
.pictures.maps figure{max-width:100%;flex:1 1 19rem}
.columns{columns:17rem;column-gap:1.8rem;margin:1rem 0}
.columns article{border-top:1px solid var(--grid);padding:.5rem 0 1.1rem;break-inside:avoid}
.columns h3{font-size:1rem;margin:0;display:flex;justify-content:space-between;gap:.8rem;font-family:inherit}
.columns h3 span{color:var(--quiet);font-weight:400;font-size:.88rem;white-space:nowrap}
.overlaid{display:block;width:100%;height:6rem;margin-top:.4rem}
.axis{display:flex;justify-content:space-between;font-size:.82rem;color:var(--quiet);border-top:1px solid var(--grid)}
.columns table{font-size:.88rem}
.columns .key{width:44%}
.columns td.drawn{width:38%}
.columns td,.columns th{padding-top:0;padding-bottom:0}
.sheet{image-rendering:pixelated;max-width:100%;height:auto;display:block;border-radius:.3rem}
.pitfall{background:var(--card);border-radius:.7rem;padding:.3rem 1.1rem .6rem;margin:1rem 0}
.pitfall h3{margin-top:.8rem}
table.plain{table-layout:auto}
table.plain td,table.plain th{padding:.22rem .6rem .22rem 0;border-bottom:1px solid var(--grid)}
table.plain td.number{white-space:nowrap}
table.plain thead th{overflow-wrap:normal}
.better{color:var(--accent);font-weight:600}
details{margin:.6rem 0}
summary{cursor:pointer;color:var(--link)}
@media(max-width:34rem){
.verdicts li{grid-template-columns:1fr;gap:.15rem}
.badge{justify-self:start;padding:.1rem .7rem}
.mark{font-size:.78rem;padding:.35rem .4rem}
table.plain{font-size:.88rem}
table.plain thead th{font-size:.78rem;padding-right:.3rem}
table.plain td.number{font-size:.86rem;padding-left:.2rem;padding-right:.3rem}
.questions td:nth-child(2),.questions th:nth-child(2){display:none}
}
@media print{
.mark{position:static}
details{display:none}
}
"""


def style(heading: str) -> str:
    """Return the whole style; the heading, one of our own texts, is printed at the top of every sheet."""
    return f'{STYLE}{_MORE}@page{{margin:20mm 15mm;@top-center{{content:"{heading}";font:600 9pt sans-serif}}}}\n'


# --- marks: Pieces of the page that several parts use. ---


def bars(caption: str, rows: Iterable[tuple[str, str, str]], scale: Scale) -> str:
    """Write a table of a name, a strip and a number each, with a ruler below."""
    body = "".join(
        f'<tr><th class="key" scope="row">{words(name)}</th><td class="drawn">{picture}</td>'
        f'<td class="number">{prose(told)}</td></tr>'
        for name, picture, told in rows
    )
    last = f'<tr class="ruler" aria-hidden="true"><td></td><td class="drawn">{ruler(scale)}</td><td></td></tr>'
    return f'<table class="chart"><caption><b>{words(caption)}</b></caption><tbody>{body}{last}</tbody></table>'


def listing(heads: Sequence[str], rows: Iterable[Sequence[str]], *, kind: str = "") -> str:
    """Write a plain table; all columns but the first are numbers. Cells are HTML already."""
    first, *rest = heads
    head = f"<th>{words(first)}</th>" + "".join(f'<th class="number">{words(one)}</th>' for one in rest)
    body = "".join(
        f'<tr><th scope="row">{row[0]}</th>' + "".join(f'<td class="number">{cell}</td>' for cell in row[1:]) + "</tr>"
        for row in rows
    )
    return f'<table class="{f"plain {kind}".strip()}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
