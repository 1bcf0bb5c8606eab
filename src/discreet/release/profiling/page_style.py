"""How the page of a profile looks: light and dark, wide and narrow, on paper. Its colours are those of the report."""

from __future__ import annotations

from discreet.release.report.style import PALETTE

__all__ = ["STYLE"]

STYLE = (
    PALETTE
    + """\
:root{--open:#a9c9e2;--sheet:#fff}
@media(prefers-color-scheme:dark){:root{--open:#2f5d80;--sheet:#191d21}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0 auto;max-width:70rem;padding:2.2rem 1rem 3rem;background:var(--paper);color:var(--ink);
font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;overflow-wrap:anywhere}
h1,h2,h3{font-family:ui-serif,"Iowan Old Style",Georgia,"Times New Roman",serif;line-height:1.2;text-wrap:balance}
h1{font-size:2.1rem;margin:.2rem 0 .6rem}
h2{font-size:1.4rem;margin:2.4rem 0 .8rem}
h3{font-size:1.2rem;margin:0}
p{margin:.5rem 0;max-width:47rem}
a{color:var(--link)}
.kicker{margin:0;color:var(--accent);font-weight:600;font-size:.95rem}
.quiet{color:var(--quiet);font-size:.9rem}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(13rem,1fr));gap:.8rem;margin:1.4rem 0;padding:0;
list-style:none}
.cards li{background:var(--card);border-radius:.7rem;padding:.9rem 1rem}
.cards b{display:block;font:600 1.4rem/1.25 ui-serif,Georgia,serif}
.cards span{color:var(--quiet);font-size:.92rem}
.index{display:grid;grid-template-columns:repeat(auto-fill,minmax(9.6rem,1fr));gap:.6rem;padding:0;list-style:none}
.index a{display:block;height:100%;background:var(--sheet);border:1px solid var(--grid);border-radius:.5rem;
padding:.45rem .6rem;text-decoration:none;color:inherit}
.index a:hover,.index a:focus{border-color:var(--bar)}
.index b{display:block;font-size:.92rem;white-space:nowrap;overflow:hidden;text-overflow:ellipsis}
.index svg{display:block;width:100%;height:2.2rem;margin:.3rem 0 .2rem}
.index span{display:block;white-space:nowrap;overflow:hidden;text-overflow:ellipsis}
section{background:var(--sheet);border:1px solid var(--grid);border-radius:.7rem;padding:.9rem 1.1rem;margin:.9rem 0}
section header{display:flex;flex-wrap:wrap;align-items:baseline;gap:.2rem .8rem;justify-content:space-between}
.histogram svg{display:block;width:100%;height:9rem;margin-top:.6rem}
.axis{display:flex;justify-content:space-between;gap:.5rem;font-size:.85rem;color:var(--quiet);
font-variant-numeric:tabular-nums;border-top:1px solid var(--grid);padding-top:.2rem}
.bar{fill:var(--bar)}
.open{fill:var(--open)}
.whisker{stroke:var(--accent);stroke-width:1.6;vector-effect:non-scaling-stroke}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-size:.92rem;font-variant-numeric:tabular-nums;margin:.6rem 0 0}
th,td{text-align:right;padding:.16rem .7rem .16rem 0;border-bottom:1px solid var(--grid);vertical-align:baseline;
overflow-wrap:normal}
th:first-child,td:first-child{text-align:left;overflow-wrap:anywhere}
th{font-weight:400;color:var(--quiet)}
.values{width:100%}
.values td:first-child{width:30%}
.values svg{display:block;width:100%;height:.9rem}
.values td.drawn{width:52%;padding-top:.35rem}
.values td:last-child{white-space:nowrap;padding-right:0}
.reason{background:var(--card);border-radius:.5rem;padding:.45rem .8rem;font-size:.93rem}
details{margin-top:.6rem;font-size:.92rem}
summary{cursor:pointer;color:var(--link)}
footer{margin-top:2.5rem}
@media(max-width:34rem){
body{padding:1.4rem .7rem 2.5rem}
h1{font-size:1.7rem}
section{padding:.75rem}
.index{grid-template-columns:repeat(2,1fr)}
.values td:first-child{width:38%}
.values td.drawn{width:26%}
.histogram svg{height:7rem}
th,td{padding-right:.45rem;font-size:.86rem}
}
@media print{
:root{--paper:#fff;--card:#fff;--sheet:#fff;--ink:#000;--quiet:#444;--grid:#ccc;--link:#000}
section{break-inside:avoid}
details{display:none}
}
"""
)
