"""How the page looks: on a phone, on a desk, in the dark and on paper."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from html import escape

__all__ = ["PALETTE", "POLICY", "STYLE", "bullets", "code", "paragraph", "policy_for", "prose", "section", "words"]

PALETTE = """\
:root{color-scheme:light dark;--paper:#fdfcf9;--card:#f4f1ea;--ink:#1d2125;--quiet:#5a636c;--grid:#dedad0;--bar:#2b7bba;
--accent:#b4470f;--link:#1b5e93;--warn:#8a1c1c}
@media(prefers-color-scheme:dark){:root{--paper:#15181b;--card:#1f2429;--ink:#e9e6e0;--quiet:#a7afb7;--grid:#363d44;
--bar:#4c9bd6;--accent:#ff9b57;--link:#86c2f0;--warn:#ff9d9d}}
"""

STYLE = (
    PALETTE
    + """\
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--paper);color:var(--ink);font:17px/1.6 system-ui,-apple-system,"Segoe UI",Roboto,
"Helvetica Neue",Arial,sans-serif;overflow-wrap:anywhere}
main,header,footer{max-width:47rem;margin:0 auto;padding:0 1rem}
header{padding-top:3rem}
h1,h2,h3{font-family:ui-serif,"Iowan Old Style",Georgia,"Times New Roman",serif;line-height:1.2;text-wrap:balance}
h1{font-size:2.3rem;margin:.2rem 0 .6rem}
h2{font-size:1.55rem;margin:3.2rem 0 .6rem;padding-top:1.2rem;border-top:1px solid var(--grid)}
h3{font-size:1.2rem;margin:2.2rem 0 .3rem}
h4{font-size:1rem;margin:1.4rem 0 .3rem}
p,ul,dl{margin:.6rem 0}
a{color:var(--link)}
code{font:0.88em ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
pre{background:var(--card);border-radius:.5rem;padding:.8rem 1rem;white-space:pre-wrap;overflow-wrap:anywhere}
.kicker{margin:0;color:var(--accent);font-weight:600;font-size:.95rem}
.by,.note,figcaption,caption{color:var(--quiet);font-size:.92rem}
.dummy{border:2px solid var(--warn);color:var(--warn);border-radius:.5rem;padding:.7rem 1rem;font-weight:600}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(13rem,1fr));gap:.8rem;margin:1.6rem 0}
.card{background:var(--card);border-radius:.7rem;padding:.9rem 1rem}
.card b{display:block;font:600 1.5rem/1.25 ui-serif,Georgia,serif;margin:.1rem 0 .2rem}
.card span{color:var(--quiet);font-size:.92rem}
nav ul{columns:2 15rem;padding-left:1.1rem}
table{width:100%;border-collapse:collapse;margin:.4rem 0 .2rem;table-layout:fixed}
caption{text-align:left;padding-bottom:.3rem}
caption b{color:var(--ink);font-weight:600}
th,td{text-align:left;vertical-align:middle;padding:.12rem .6rem .12rem 0;font-weight:400}
thead th{color:var(--quiet);font-size:.88rem;border-bottom:1px solid var(--grid)}
tbody th.group{font-weight:600;padding-top:.6rem}
td.number,th.number{text-align:right;padding-right:0;padding-left:.5rem}
td.number{font-variant-numeric:tabular-nums;font-size:.95rem}
.key{width:24%}
.drawn{width:34%}
.tidy{width:15%}
.wide .key{width:38%}
.wide .drawn{width:42%}
td svg{display:block}
.pictures{display:flex;flex-wrap:wrap;gap:1rem 3rem;align-items:flex-start;margin:1rem 0}
figure{margin:0;max-width:20rem}
figcaption{margin-top:.5rem}
.picture{max-width:100%;height:auto;display:block}
.key-to i{font-style:normal;display:inline-block;margin-right:1rem}
.key-to svg{vertical-align:-.25em;margin-right:.35em}
footer{color:var(--quiet);font-size:.9rem;padding:2.5rem 1rem 3rem}
@media(max-width:34rem){
body{font-size:16px}
header{padding-top:1.8rem}
h1{font-size:1.8rem}
table.chart,table.chart tbody,table.chart caption{display:block}
table.chart thead{display:none}
table.chart tr{display:grid;grid-template-columns:1fr auto;align-items:baseline;margin:.35rem 0}
table.chart th.group{grid-column:1/-1}
table.chart td.drawn{grid-column:1/-1;grid-row:2;width:auto;padding:0}
table.chart th.key{width:auto;padding-right:.5rem}
table.chart td.tidy{grid-column:1/-1;grid-row:3;width:auto;padding:0;color:var(--quiet);font-size:.9rem}
table.chart td.tidy::before{content:"tidy: "}
table.chart tr.ruler{margin:0}
table.chart tr.ruler td.drawn{grid-row:1}
}
@media print{
:root{--paper:#fff;--card:#fff;--ink:#000;--quiet:#444;--grid:#ccc;--bar:#5b8fb9;--accent:#b4470f;--link:#000}
body{font-size:10.5pt}
header{padding-top:0}
h2,h3,h4{break-after:avoid}
tr,figure,.card{break-inside:avoid}
.card{border:1px solid #ccc}
nav{display:none}
}
"""
)


def policy_for(style: str) -> str:
    """Return the policy of a page: nothing is loaded, nothing runs, and the only style is this one."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


POLICY = policy_for(STYLE)


# --- marks: HTML in which no title, key or note can become anything but text. ---


def words(text: object) -> str:
    """Write a text; letters that steer a screen are shown as such."""
    return escape("".join(letter if letter.isprintable() else "�" for letter in str(text)), quote=True)


def prose(text: str) -> str:
    """Write a sentence; no line ends within a formula or before a per cent sign."""
    return words(text).replace(" = ", "&nbsp;=&nbsp;").replace(" %", "&nbsp;%")


def paragraph(text: str, *, kind: str = "") -> str:
    """Write a paragraph of plain text."""
    return f"<p{_kind(kind)}>{prose(text)}</p>"


def code(text: str) -> str:
    """Write a name or a command."""
    return f"<code>{words(text)}</code>"


def bullets(texts: Iterable[str]) -> str:
    """Write a list of plain texts."""
    return f"<ul>{''.join(f'<li>{prose(text)}</li>' for text in texts)}</ul>"


def section(name: str, title: str, parts: Iterable[str]) -> str:
    """Write a section with a heading that can be linked to."""
    return f'<section id="{name}"><h2>{words(title)}</h2>{"".join(parts)}</section>'


def _kind(kind: str) -> str:
    return f' class="{kind}"' if kind else ""
