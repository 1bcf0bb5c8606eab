"""How the page of a profile looks: light and dark, wide and narrow, on paper."""

from __future__ import annotations

__all__ = ["STYLE"]

STYLE = """
:root { color-scheme: light dark; --paper: #fcfcfa; --card: #ffffff; --ink: #1c2126; --soft: #5a6570; --line: #dde2e6;
  --bar: #2f6f9f; --open: #9dbdd3; --whisker: #1c2126; --note: #fff6df; --link: #1d5f8f; }
@media (prefers-color-scheme: dark) { :root { --paper: #14181c; --card: #1b2126; --ink: #e8ecef; --soft: #a3aeb8;
  --line: #333c44; --bar: #6aaeda; --open: #3d617b; --whisker: #f2f5f7; --note: #2c2817; --link: #8cc4ec; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 68rem; padding: 1.2rem 1rem 4rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0.4rem 0; } h2 { font-size: 1.15rem; margin: 0; }
h3 { font-size: 1rem; margin: 2rem 0 0.5rem; } p { margin: 0.5rem 0; max-width: 46rem; } a { color: var(--link); }
.soft { color: var(--soft); } .small { font-size: 0.86rem; }
.facts { display: flex; flex-wrap: wrap; gap: 0.7rem; margin: 1rem 0; padding: 0; list-style: none; }
.facts li { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 0.5rem 0.9rem; }
.facts b { display: block; font-size: 1.15rem; font-variant-numeric: tabular-nums; }
.index { display: grid; grid-template-columns: repeat(auto-fill, minmax(9.6rem, 1fr)); gap: 0.6rem; padding: 0;
  list-style: none; }
.index a { display: block; background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  padding: 0.45rem 0.6rem; text-decoration: none; color: inherit; height: 100%; }
.index a:hover, .index a:focus { border-color: var(--bar); }
.index b { display: block; font-size: 0.9rem; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
.index svg { display: block; width: 100%; height: 2.2rem; margin: 0.3rem 0 0.2rem; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 0.9rem 1rem; margin: 0.9rem 0; }
section header { display: flex; flex-wrap: wrap; align-items: baseline; gap: 0.2rem 0.8rem;
  justify-content: space-between; }
.histogram svg { display: block; width: 100%; height: 9rem; margin-top: 0.6rem; }
.axis { display: flex; justify-content: space-between; gap: 0.5rem; font-size: 0.8rem; color: var(--soft);
  font-variant-numeric: tabular-nums; border-top: 1px solid var(--line); padding-top: 0.2rem; }
.bar { fill: var(--bar); } .open { fill: var(--open); }
.whisker { stroke: var(--whisker); stroke-width: 1.2; vector-effect: non-scaling-stroke; opacity: 0.75; }
.track { fill: var(--line); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.88rem; font-variant-numeric: tabular-nums; margin: 0.6rem 0 0; }
th, td { text-align: right; overflow-wrap: normal;
  padding: 0.18rem 0.7rem 0.18rem 0; border-bottom: 1px solid var(--line);
  vertical-align: baseline; }
th:first-child, td:first-child { text-align: left; } th { font-weight: 600; color: var(--soft); }
.values { width: 100%; } .values td:first-child { width: 34%; }
.values svg { display: block; width: 100%; height: 0.9rem; }
.values td.drawn { width: 40%; padding-top: 0.35rem; } .values td:last-child { white-space: nowrap; }
.reason { background: var(--note); border-radius: 6px; padding: 0.4rem 0.7rem; font-size: 0.9rem; }
details { margin-top: 0.6rem; font-size: 0.9rem; } summary { cursor: pointer; color: var(--link); }
.top { font-size: 0.8rem; }
@media (max-width: 34rem) { body { padding: 0.8rem 0.7rem 3rem; } h1 { font-size: 1.4rem; } section { padding: 0.7rem; }
  .index { grid-template-columns: repeat(2, 1fr); } .values td:first-child { width: 38%; }
  .values td.drawn { width: 26%; }
  .histogram svg { height: 7rem; } th, td { padding-right: 0.45rem; } }
@media print { section { break-inside: avoid; } details { display: none; } }
"""
