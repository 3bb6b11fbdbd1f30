# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a status page has besides when somebody keeps it up to date, as ``holdfast watch`` does.

A script loads it again and again, so that it can be left open; the page's policy allows this
one by its hash, and nothing else.  Who reads it is not thrown back to its top: it can be
paused, and is not loaded again while a part of it is opened, text is selected, or the
keyboard is somewhere in it (WCAG 2.2, 2.2.2; failure F41).  Where no script may run the
browser loads it again by itself, less often, and cannot be stopped.

A page that nobody writes any more would go on showing that all is well: so it says how old it
is, and that what it shows may be no longer so once it was not written for a while.
"""

from __future__ import annotations

import base64
import hashlib

from .html import Html, escaped

LATE = 5.0
"""A page is too old after three times its refresh and so many seconds more."""

LEAST = 1.0
"""A page is not loaded again more often than after so many seconds."""

WITHOUT_SCRIPT = 10
LEAST_WITHOUT_SCRIPT = 60.0
"""Without a script it is loaded after so many times its refresh, and not before these seconds."""

_SCRIPT = """
(function () {
  "use strict";
  var data = document.getElementById("kept").dataset;
  var shown = document.getElementById("age");
  var warning = document.getElementById("stale");
  var line = document.getElementById("keeping");
  var told = document.getElementById("keeping-told");
  var button = document.getElementById("pause");
  var begun = Date.now();
  var paused = false;
  function words(seconds) {
    if (seconds < 120) { return seconds + " s"; }
    return seconds < 7200 ? Math.floor(seconds / 60) + " min" : Math.floor(seconds / 3600) + " h";
  }
  function held() {
    if (paused) { return "Paused; press again to go on."; }
    if (document.querySelector("details[open]")) {
      return "Not loaded again while a part of it is opened.";
    }
    if (!getSelection().isCollapsed) { return "Not loaded again while text is selected."; }
    if (document.querySelector("body :focus-visible")) {
      return "Not loaded again while the keyboard is in the page.";
    }
    return "";
  }
  function put(place, text) { if (place.textContent !== text) { place.textContent = text; } }
  function tell() {
    var age = Math.max(0, Math.floor(Date.now() / 1000 - Number(data.at)));
    var why = held();
    var old = !why && age > Number(data.late);
    put(shown, words(age) + " ago");
    if (old) { put(document.getElementById("stale-age"), words(age)); }
    if (warning.hidden === old) { warning.hidden = !old; }
    line.classList.toggle("held", why !== "");
    put(told, why ? why + " It shows how things were " + words(age) + " ago."
      : "Loaded again every " + data.refresh + " s.");
    if (!why && Date.now() - begun >= Number(data.refresh) * 1000) {
      begun = Date.now();
      location.reload();
    }
  }
  button.addEventListener("click", function () {
    paused = !paused;
    button.setAttribute("aria-pressed", String(paused));
    if (!paused) { button.blur(); }
    tell();
  });
  line.hidden = false;
  tell();
  setInterval(tell, 1000);
}());
"""


def policy(refresh: float) -> str:
    """Return the page's content security policy: its own style, and its own script if kept."""
    allowed = "default-src 'none'; style-src 'unsafe-inline'"
    if not refresh:
        return allowed
    digest = base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode()
    return f"{allowed}; script-src 'sha256-{digest}'"


def head(refresh: float) -> Html:
    """Return what lets a browser without scripts load the page again; or nothing."""
    if not refresh:
        return Html("")
    seconds = without_script(refresh)
    return Html(f'<noscript><meta http-equiv="refresh" content="{seconds}"></noscript>\n')


def without_script(refresh: float) -> int:
    """Return after how many seconds a browser without scripts loads the page again."""
    return round(max(LEAST_WITHOUT_SCRIPT, WITHOUT_SCRIPT * refresh))


def warning(at: float, refresh: float) -> Html:
    """Return where a page read *at* tells its age, hidden while it is young, and can be paused."""
    if not refresh:
        return Html("")
    late = escaped(3 * refresh + LATE)
    every = escaped(f"{max(LEAST, refresh):g}")
    return Html(
        f'<div id="kept" data-at="{escaped(at)}" data-late="{late}" data-refresh="{every}">'
        '<p id="stale" class="stale" role="alert" hidden><strong>This page is'
        ' <span id="stale-age"></span> old.</strong> Nobody writes it any more, so what it shows'
        " may be no longer so. See holdfast status on a node.</p></div>\n"
        '<p id="keeping" class="keeping" hidden><button type="button" id="pause"'
        ' aria-pressed="false">Pause</button><span id="keeping-told"></span></p>\n'
    )


def script(refresh: float) -> Html:
    """Return the script that loads the page again and tells its age, at its end; or nothing."""
    return Html(f"<script>{_SCRIPT}</script>\n" if refresh else "")
