# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How Sphinx makes the documentation a site; the stage ``site`` of ./run_tests calls it.

The source is the whole checkout, so that the pages' links are the same there and in the
repository; what antsibull-docs makes of modules, roles and plugins lies in docs/docsite/reference.
"""

from __future__ import annotations

project = "holdfast.ha"
author = "The holdfast authors"
project_copyright = "2026 The holdfast authors"

extensions = ["myst_parser", "sphinx_antsibull_ext"]
include_patterns = [
    "docs/docsite/*.rst",
    "docs/docsite/reference/**",
    "docs/*.md",
    "*.md",
    "roles/*/README.md",
]
root_doc = "docs/docsite/index"
myst_heading_anchors = 4
# Options of modules have no highlighting of their own.
highlight_language = "text"
html_theme = "sphinx_ansible_theme"
html_title = "holdfast.ha"
