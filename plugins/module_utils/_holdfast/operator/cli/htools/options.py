# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Command lines as htools' programs read them (getopt), without ``argparse``.

A program states its options as a table; starting ``argparse`` takes longer than an
allocator's answer to a small question.
"""

from __future__ import annotations

import sys

from ....errors import ClusterDataError, HoldfastError
from ....hints import Callable, Sequence, TypeVar
from ... import streams

Value = TypeVar("Value")
Option = tuple[str, str, int, str, str]

ANSWERED, BAD_INPUT, BAD_COMMAND_LINE = 0, 1, 2

NONE, NEEDED, MAYBE = 0, 1, 2
"""Whether an option takes a value.

An option is its letter, its name, one of these, the name of its value, and its help.
"""


def finish_output(status: int) -> int:
    """Return *status* once all is written, 1 with an error message if that fails."""
    if sys.stdout is None:
        return status
    try:
        sys.stdout.flush()
    except OSError as error:
        if status == 0:
            say_unwritten(streams.reason(error))
        status = 1
    streams.complain("")
    return status


def say_unwritten(why: str) -> None:
    """Print why the answer cannot be written."""
    streams.complain(f"Error: {streams.UnwrittenError(why)}\n")


class CommandLine(HoldfastError):
    """The command line cannot be understood."""


class Unrecognized(CommandLine):
    """There is no such option."""


class Settings:
    """What the command line says."""

    def __init__(self) -> None:
        self.given: list[tuple[str, str | None]] = []
        self.files: list[str] = []

    def has(self, name: str) -> bool:
        """Return whether the option *name* was given."""
        return any(option == name for option, _value in self.given)

    def last(self, name: str) -> str | None:
        """Return the last value that the option *name* was given."""
        values = self.all(name)
        return values[-1] if values else None

    def all(self, name: str) -> list[str]:
        """Return all values that the option *name* was given."""
        return [value or "" for option, value in self.given if option == name]


def run_program(
    program: tuple[str, str, str, str],
    options: Sequence[Option],
    arguments: Sequence[str],
    act: Callable[[Settings, streams.Progress], None],
) -> int:
    """Run *act* with what *arguments* say, and return the exit status.

    *program* is its name, its arguments in the usage, htools' name of it, and its first progress.
    """
    name, takes, of_htools, first = program
    if not streams.prepare_streams():
        say_unwritten(streams.CLOSED)
        return BAD_INPUT
    help_text = usage(f"{name} {takes}", options)
    try:
        settings = read_command_line(options, arguments)
    except CommandLine as error:
        sys.stderr.write(f"Command line error: {error}\n\n{help_text}")
        return BAD_COMMAND_LINE
    if settings.has("help"):
        sys.stdout.write(help_text)
        return ANSWERED
    if settings.has("version"):
        from ....version import VERSION

        sys.stdout.write(f"{name} {VERSION}, as {of_htools} of htools 3.0.2\n")
        return ANSWERED
    progress = streams.Progress(first)
    try:
        act(settings, progress)
    except CommandLine as error:
        sys.stderr.write(f"Error while parsing command line arguments:\n{error}\n")
    except HoldfastError as error:
        text = str(error)
        sys.stderr.write(f"{text}\n" if text.endswith("Error: Aborting.") else f"Error: {text}\n")
    except RecursionError:
        sys.stderr.write("Error: the input is nested too deeply\n")
    except (OverflowError, MemoryError) as error:
        sys.stderr.write(f"Error: a number or the input is too large: {error}\n")
    except OSError as error:
        say_unwritten(streams.reason(error))
    else:
        return ANSWERED
    finally:
        progress.done()
    return BAD_INPUT


def warn(warnings: Sequence[str]) -> None:
    """Print what looks wrong in a cluster."""
    if warnings:
        lines = "".join([f"  - {warning}\n" for warning in warnings])
        sys.stderr.write(f"Warning: cluster has inconsistent data:\n{lines}\n")


def read_choice(value: str | None) -> bool:
    """Return whether the option ``--mond`` says yes; raises `CommandLine` for other words."""
    choice = "yes" if value is None else value
    if choice not in ("yes", "no"):
        raise CommandLine(f"Invalid choice '{choice}', pass one of 'yes' or 'no'")
    return choice == "yes"


def read_command_line(options: Sequence[Option], arguments: Sequence[str]) -> Settings:
    """Return what *arguments* say of *options*; raises `CommandLine` if they are not understood.

    As with getopt, options may be anywhere, their names may be shortened, and ``--`` ends them.
    """
    settings = Settings()
    rest = list(arguments)
    wrong: list[str] = []
    unknown: list[str] = []
    while rest:
        word = rest.pop(0)
        if word == "--":
            settings.files += rest
            break
        try:
            if word.startswith("--"):
                _read_long(options, settings, word[2:], rest)
            elif word.startswith("-") and word != "-":
                _read_short(options, settings, word[1:], rest)
            else:
                settings.files.append(word)
        except Unrecognized as error:
            unknown.append(str(error))
        except CommandLine as error:
            wrong.append(str(error))
    if wrong or unknown:
        raise CommandLine("\n".join(wrong + unknown))
    return settings


def _read_long(options: Sequence[Option], settings: Settings, word: str, rest: list[str]) -> None:
    start, equals, value = word.partition("=")
    names = [option for option in options if option[1].startswith(start)]
    exact = [option for option in names if option[1] == start]
    if not names:
        raise Unrecognized(f"unrecognized option `--{word}'")
    if len(names) > 1 and not exact:
        shown = "".join([f"\n  --{option[1]}  {option[4]}" for option in names])
        raise CommandLine(f"option `--{start}' is ambiguous; could be one of:{shown}")
    _letter, name, takes, what, _help = (exact or names)[0]
    if takes == NONE and equals:
        raise CommandLine(f"option `--{start}' doesn't allow an argument")
    if takes == NEEDED and not equals:
        if not rest:
            raise CommandLine(f"option `--{start}' requires an argument {what}")
        value = rest.pop(0)
    settings.given.append((name, value if equals or takes == NEEDED else None))


def _read_short(
    options: Sequence[Option], settings: Settings, letters: str, rest: list[str]
) -> None:
    """Take the first of *letters*; those behind an option without a value are the next word."""
    letter, letters = letters[0], letters[1:]
    known = [option for option in options if option[0] == letter]
    if letters and (not known or known[0][2] == NONE):
        rest.insert(0, f"-{letters}")
        letters = ""
    if not known:
        raise Unrecognized(f"unrecognized option `-{letter}'")
    _letter, name, takes, what, _help = known[0]
    if takes == NEEDED and not letters:
        if not rest:
            raise CommandLine(f"option `-{letter}' requires an argument {what}")
        letters = rest.pop(0)
    settings.given.append((name, letters or None))


def read_value(read: Callable[[str, str], Value], what: str, text: str | None) -> Value:
    """Return what *read* makes of an option's value; *what* starts the error text.

    Raises `CommandLine` where *read* raises `ClusterDataError`.
    """
    try:
        return read(what, text or "")
    except ClusterDataError as error:
        raise CommandLine(str(error)) from None


def usage(first: str, options: Sequence[Option]) -> str:
    """Return the help text of *options*; *first* is its first line."""
    lines = [f"Usage: {first}\n"]
    for letter, name, takes, what, text in options:
        value = {NONE: "", NEEDED: f"={what}", MAYBE: f"[={what}]"}[takes]
        short = f"-{letter}, " if letter else "    "
        lines.append(f"  {short}--{name + value:<34} {text}\n")
    return "".join(lines)
