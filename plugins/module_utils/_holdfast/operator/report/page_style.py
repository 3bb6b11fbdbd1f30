# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status page's colours for light and dark, and its style sheet.

Only states are coloured, and each shows its word too.  Text has a contrast of at least 4.5 to 1 on
each ground, a bar of 3 to 1 (WCAG 2.2, 1.4.3 and 1.4.11).
"""

from __future__ import annotations

COLOURS = {
    "ground": ("#f5f6f8", "#121518"),
    "surface": ("#ffffff", "#1b1f24"),
    "sunken": ("#eceff2", "#262c33"),
    "line": ("#d5dae0", "#343b44"),
    "text": ("#1b2026", "#e5e8eb"),
    "muted": ("#57606b", "#a3acb6"),
    "good": ("#176637", "#84d3a0"),
    "good-ground": ("#e4f3e9", "#17301f"),
    "warn": ("#794c00", "#eec26c"),
    "warn-ground": ("#fcf0d6", "#362b13"),
    "bad": ("#a11f1c", "#ffa199"),
    "bad-ground": ("#fce7e5", "#411d1b"),
    "quiet": ("#57606b", "#a3acb6"),
    "quiet-ground": ("#eceff2", "#262c33"),
    "detect": ("#5b7083", "#8fa3b5"),
    "fence": ("#b4560b", "#e8924a"),
    "start": ("#2f7d4f", "#5fbf86"),
}
"""Each colour on a light and on a dark screen."""

_RULES = """
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; scroll-padding-top: 72px; }
body { margin: 0; background: var(--ground); color: var(--text); line-height: 1.5;
  font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans",
  sans-serif; font-size: 15px; overflow-wrap: anywhere; }
header, main, footer { max-width: 1120px; margin: 0 auto; padding: 0 24px; }
header { padding-top: 28px; }
main { padding-bottom: 8px; }
footer { padding-top: 28px; padding-bottom: 40px; color: var(--muted); font-size: 13px; }
h1, h2, h3, p, ul, dl, dd, figure { margin: 0; padding: 0; }
h1 { font-size: 24px; line-height: 1.25; font-weight: 650; }
h2 { font-size: 16px; font-weight: 650; margin: 36px 0 12px; }
h3 { font-size: 15px; font-weight: 650; }
ul { list-style: none; }
time, dd, td, .number { font-variant-numeric: tabular-nums; }
.muted { color: var(--muted); }

.verdict { display: flex; flex-wrap: wrap; gap: 8px 14px; align-items: center; }
.facts { display: flex; flex-wrap: wrap; gap: 0 20px; margin-top: 8px; color: var(--muted);
  font-size: 14px; }
.note { margin-top: 10px; color: var(--muted); font-size: 14px; }
.problems, .warnings, .under-way { margin-top: 16px; padding: 12px 16px;
  border-left: 4px solid var(--bad);
  border-radius: 4px; background: var(--bad-ground); }
.warnings, .under-way { border-left-color: var(--warn); background: var(--warn-ground); }
.problems li + li, .warnings li + li, .under-way li + li { margin-top: 6px; }

.state { display: inline-block; padding: 0 8px; border-radius: 4px; font-size: 13px;
  line-height: 20px; font-weight: 600; white-space: nowrap; }
.state.large { font-size: 15px; line-height: 28px; padding: 0 12px; }
.good { color: var(--good); background: var(--good-ground); }
.warn { color: var(--warn); background: var(--warn-ground); }
.bad { color: var(--bad); background: var(--bad-ground); }
.quiet { color: var(--quiet); background: var(--quiet-ground); }

#kept { display: contents; }
.stale { margin: 0; padding: 12px 24px; background: var(--bad-ground); color: var(--text);
  border-bottom: 3px solid var(--bad); position: sticky; top: 0; }
.stale strong { color: var(--bad); }
.stale[hidden] { display: none; }
.keeping { display: flex; align-items: center; gap: 12px;
  padding: 8px max(24px, calc(50% - 536px)); color: var(--muted); font-size: 13px; }
.keeping[hidden] { display: none; }
.keeping.held { position: sticky; top: 0; z-index: 1; background: var(--warn-ground);
  color: var(--text); border-bottom: 3px solid var(--warn); }
button { font: inherit; font-weight: 600; color: var(--text); background: var(--surface);
  border: 1px solid var(--muted); border-radius: 4px; padding: 2px 12px; min-height: 28px;
  flex: none; white-space: nowrap; cursor: pointer; }
button[aria-pressed="true"] { color: var(--surface); background: var(--text); }
.spoken { position: absolute; width: 1px; height: 1px; overflow: hidden;
  clip-path: inset(50%); white-space: nowrap; }
a { color: inherit; }
a:focus-visible, summary:focus-visible, button:focus-visible { outline: 2px solid currentColor;
  outline-offset: 2px; }

.map { display: grid; gap: 8px;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 148px), 1fr)); }
.tile { position: relative; background: var(--surface); border: 1px solid var(--line);
  border-left: 4px solid var(--good); border-radius: 6px; padding: 8px 10px; min-width: 0; }
.tile.is-warn { border-left-color: var(--warn); }
.tile.is-bad { border-left-color: var(--bad); background: var(--bad-ground); }
.tile.aside { border-left-color: var(--line); border-style: dashed; background: transparent; }
.tile a { display: flex; flex-wrap: wrap; align-items: center; gap: 2px 6px;
  text-decoration: none; }
.tile a:hover .where { text-decoration: underline; }
.tile .state { font-size: 12px; line-height: 18px; padding: 0 6px; }
.tile .where { font-weight: 650; }
.badge { border: 1px solid var(--muted); color: var(--text); border-radius: 4px;
  font-size: 11px; line-height: 16px; padding: 0 4px; }
.marks { display: flex; flex-wrap: wrap; gap: 3px; margin-top: 8px; min-height: 14px; }
.mark { display: inline-block; width: 14px; height: 14px; border-radius: 3px; font-size: 12px;
  font-weight: 700; line-height: 13px; text-align: center; border: 1px solid currentColor; }
.mark.good { background: var(--good); }
.more { font-size: 12px; line-height: 14px; }
.legend { display: flex; flex-wrap: wrap; gap: 2px 16px; align-items: center; margin-top: 10px;
  color: var(--muted); font-size: 13px; }
.legend .mark { vertical-align: -2px; }
.legend .key { display: inline-block; width: 14px; height: 10px; border-radius: 2px; }
.overview { padding: 16px; margin-bottom: 14px; }

svg { display: block; width: 100%; overflow: visible; }
svg text { font-size: 13px; fill: var(--text); font-variant-numeric: tabular-nums; }
svg .axis { fill: var(--muted); font-size: 12px; }
.track { fill: var(--sunken); }
.detect { fill: var(--detect); background: var(--detect); }
.fence { fill: var(--fence); background: var(--fence); }
.start { fill: var(--start); background: var(--start); }

.scores { margin-bottom: 12px; }
section > h3 { margin: 20px 0 10px; }
.bar { display: block; height: 10px; margin: 6px 0 4px; border-radius: 2px; overflow: hidden;
  background: var(--sunken); forced-color-adjust: none; print-color-adjust: exact;
  -webkit-print-color-adjust: exact; }
.bar span { display: block; height: 100%; }
.bar .now { background: var(--detect); }
.bar .then { background: var(--start); }

.nodes { display: grid; gap: 14px;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 264px), 1fr)); }
.card { background: var(--surface); border: 1px solid var(--line); border-radius: 8px;
  padding: 14px 16px; }
.card.is-warn { border-top: 3px solid var(--warn); padding-top: 12px; }
.card.is-bad { border-top: 3px solid var(--bad); padding-top: 12px; }
.card.aside { background: transparent; border-style: dashed; }
.card .name { display: flex; justify-content: space-between; align-items: baseline; gap: 10px; }
.card .why { margin-top: 8px; font-size: 14px; }
.card .runs { margin-top: 10px; border-top: 1px solid var(--line); }
.card .runs li { display: flex; justify-content: space-between; align-items: baseline; gap: 10px;
  padding-top: 8px; }
.card .none { margin-top: 10px; padding-top: 8px; border-top: 1px solid var(--line);
  color: var(--muted); font-size: 14px; }
.card dl { display: flex; flex-wrap: wrap; gap: 0 14px; margin-top: 4px; color: var(--muted);
  font-size: 13px; }
.card dl div { display: flex; gap: 5px; }
.card dt { flex: none; }

.sheet { background: var(--surface); border: 1px solid var(--line); border-radius: 8px;
  overflow: hidden; }
table { width: 100%; border-collapse: collapse; text-align: left; }
caption, .failover thead { position: absolute; width: 1px; height: 1px; overflow: hidden;
  clip-path: inset(50%); }
th, td { padding: 8px 16px; vertical-align: top; font-size: 14px; }
thead th { font-size: 13px; font-weight: 600; color: var(--muted); white-space: nowrap;
  border-bottom: 1px solid var(--line); }
tbody th { font-weight: 600; }
tbody tr + tr > * { border-top: 1px solid var(--line); }
td.tight { white-space: nowrap; }
.wide tbody th { min-width: 8em; }
.wide td { min-width: 5em; }
.wide tbody th time, .wide tbody th .muted { font-weight: 400; white-space: nowrap; }
.wide td .under { display: block; margin-top: 2px; font-size: 13px; color: var(--muted); }

.failover { margin-bottom: 14px; padding: 16px; }
.failover > .muted { font-size: 14px; }
.failover .both { display: grid; gap: 12px 32px; margin-top: 12px;
  grid-template-columns: minmax(0, 2fr) minmax(0, 3fr); }
.failover th, .failover td { padding: 0 0 8px 12px; }
.failover th:first-child { padding-left: 0; width: 76px; white-space: nowrap;
  font-weight: 400; text-align: right; font-variant-numeric: tabular-nums; }
.failover tbody tr + tr > * { border-top: 0; }
details > summary { cursor: pointer; padding: 8px 0; }

@media (max-width: 760px) {
  header, main, footer, .keeping { padding-left: 16px; padding-right: 16px; }
  #keeping-told { min-height: 3em; align-content: center; }
  .failover .both { grid-template-columns: minmax(0, 1fr); }
  .wide thead { position: absolute; width: 1px; height: 1px; overflow: hidden;
    clip-path: inset(50%); }
  .wide, .wide tbody, .wide tr { display: block; }
  .wide tr { padding: 10px 16px; }
  .wide tbody tr + tr { border-top: 1px solid var(--line); }
  .wide tbody tr + tr > * { border-top: 0; }
  .wide tbody th, .wide td { display: block; padding: 1px 0; white-space: normal; }
  .wide td { display: grid; grid-template-columns: 88px minmax(0, 1fr); gap: 8px; }
  .wide td::before { content: attr(data-label); color: var(--muted); font-size: 13px; }
  .wide td.blank { display: none; }
}
@media print { .card, .sheet { break-inside: avoid; } }
"""


def style_sheet() -> str:
    """Return the page's whole style sheet."""
    light, dark = _variables(0), _variables(1)
    return (
        f":root {{ color-scheme: light dark; {light} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"
        f"{_RULES.strip()}\n"
    )


def _variables(scheme: int) -> str:
    return " ".join(f"--{name}: {values[scheme]};" for name, values in COLOURS.items())
