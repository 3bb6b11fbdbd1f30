# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parser of the command line: an error is one sentence with a hint at what was meant."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from ...errors import HoldfastError
from ...names import did_you_mean

if TYPE_CHECKING:
    from .places import Place


class CommandLineError(HoldfastError):
    """A command line that cannot be understood."""


class CommandParser(argparse.ArgumentParser):
    """A parser that raises ``CommandLineError`` instead of ending the process."""

    def error(self, message: str) -> NoReturn:
        """Raise the error with the command whose help explains it."""
        raise CommandLineError(f"{message}; see {self.prog} --help.")


def parse(parser: argparse.ArgumentParser, words: Sequence[str]) -> argparse.Namespace:
    """Return the options in *words*.

    Raises ``CommandLineError``, for a misspelt subcommand or option with the nearest one.
    """
    try:
        return parser.parse_args(list(words))
    except CommandLineError:
        from .places import places

        misspelt = _misspelt(list(places(parser, hidden=True)), words)
        if misspelt:
            raise CommandLineError(misspelt) from None
        raise


def _misspelt(known: list[Place], words: Sequence[str]) -> str:
    """Return a sentence about the first word that is no subcommand or no option; empty if none."""
    by_words = {place.words: place for place in known}
    here: tuple[str, ...] = ()
    for word in words:
        place = by_words[here]
        if word == "--":
            break
        if word.startswith("--"):
            option = word.partition("=")[0]
            options = [one.text for one in place.options]
            if not any(one.startswith(option) for one in options):
                return _no(f"{option!r}", "an option", here, did_you_mean(option, options))
        elif (*here, word) in by_words:
            here = (*here, word)
        elif place.commands and not word.startswith("-"):
            names = [one.text for one in place.commands]
            return _no(f"{word!r}", "a subcommand", here, did_you_mean(word, names))
    return ""


def _no(word: str, what: str, here: tuple[str, ...], hint: str) -> str:
    command = " ".join(["holdfast", *here])
    return f"{word} is not {what} of {command}{hint or '.'} See {command} --help."
