# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a status page has besides when somebody keeps it up to date, as ``holdfast watch`` does.

The browser loads it again and again, so that it can be left open.  A page that nobody writes
any more would go on showing that all is well: so it says how old it is, and that what it
shows may be no longer so once it was not written for a while.  That takes a script; the
page's policy allows this one by its hash, and nothing else.
"""

from __future__ import annotations

import base64
import hashlib

from .status_page_parts import Html, escaped

LATE = 5.0
"""A page is too old after three times its refresh and so many seconds more."""

_SCRIPT = """
(function () {
  "use strict";
  var data = document.getElementById("kept").dataset;
  var shown = document.getElementById("age");
  var warning = document.getElementById("stale");
  function words(seconds) {
    if (seconds < 120) { return seconds + " s"; }
    return seconds < 7200 ? Math.floor(seconds / 60) + " min" : Math.floor(seconds / 3600) + " h";
  }
  function tell() {
    var seconds = Math.max(0, Math.floor(Date.now() / 1000 - Number(data.at)));
    var old = seconds > Number(data.late);
    shown.textContent = words(seconds) + " ago";
    if (old) { document.getElementById("stale-age").textContent = words(seconds); }
    if (warning.hidden === old) { warning.hidden = !old; }
  }
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
    """Return what lets the browser load the page again after *refresh* seconds; or nothing."""
    if not refresh:
        return Html("")
    return Html(f'<meta http-equiv="refresh" content="{max(1, round(refresh))}">\n')


def warning(at: float, refresh: float) -> Html:
    """Return where the age of a page that was read *at* is told, hidden while it is young."""
    if not refresh:
        return Html("")
    late = escaped(3 * refresh + LATE)
    return Html(
        f'<div id="kept" data-at="{escaped(at)}" data-late="{late}">'
        '<p id="stale" class="stale" role="alert" hidden><strong>This page is'
        ' <span id="stale-age"></span> old.</strong> Nobody writes it any more, so what it shows'
        " may be no longer so. See holdfast status on a node.</p></div>\n"
    )


def script(refresh: float) -> Html:
    """Return the script that tells the age, at the page's end; or nothing."""
    return Html(f"<script>{_SCRIPT}</script>\n" if refresh else "")
