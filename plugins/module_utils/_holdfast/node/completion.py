# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""``holdfast completion``: a script that lets bash, zsh or fish complete the command.

It is made of the command's own parser, so it knows what the installed version knows.  Names
of nodes and services are asked from the cluster while completing, by ``holdfast list``.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

SHELLS = ("bash", "zsh", "fish")

NAMES = {"--node": "nodes", "--service": "services"}
"""Options whose values are names, and what ``holdfast list`` calls those."""

PLACES = {"NODE": ("nodes",), "SERVICE": ("services",), "SERVICE|NODE": ("services", "nodes")}
"""How arguments that are names are called, and what ``holdfast list`` calls those."""

FILES = ("FILE", "--config", "path", "config")
"""How an argument that is a file is called."""


@dataclass(frozen=True)
class Word:
    """A word that may come, and its help in one line; *value* is what follows it.

    That is ``none``, ``file``, ``names NODES`` (of ``holdfast list``), or ``other``.
    """

    text: str
    help: str
    value: str = "none"


@dataclass(frozen=True)
class Place:
    """A command (the words after ``holdfast``), what may follow it, and whether files may.

    *names* are those that may follow, as ``holdfast list`` calls them.
    """

    words: tuple[str, ...]
    commands: tuple[Word, ...]
    options: tuple[Word, ...]
    files: bool
    names: tuple[str, ...] = ()


def register(commands: Any, parser: Callable[[], argparse.ArgumentParser]) -> None:
    """Add the command to the subparsers *commands*; *parser* makes the whole command's."""
    completion = commands.add_parser(
        "completion", help="print a script for the completion of a shell"
    )
    completion.add_argument("shell", choices=SHELLS)
    completion.set_defaults(act=lambda options: _print(options.shell, parser()))


def places(parser: argparse.ArgumentParser, words: tuple[str, ...] = ()) -> Iterator[Place]:
    """Return the command at *words* and all below it, with what may follow each."""
    commands: list[Word] = []
    options: list[Word] = []
    below: list[Place] = []
    names: list[str] = []
    files = False
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {one.dest: one.help or "" for one in action._choices_actions}
            for name, child in action.choices.items():
                commands.append(Word(name, helps.get(name, "")))
                below.extend(places(child, (*words, name)))
        elif action.option_strings:
            text = action.option_strings[-1]
            options.append(Word(text, _line(action.help), _value(action)))
        elif action.choices:
            commands.extend(Word(str(one), "") for one in action.choices)
        else:
            files = files or action.dest in FILES
            names.extend(PLACES.get(str(action.metavar), ()))
    yield Place(words, tuple(commands), tuple(options), files, tuple(dict.fromkeys(names)))
    yield from below


def script(shell: str, found: list[Place]) -> str:
    """Return the script for a *shell*, one of ``SHELLS``."""
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](found)


def _print(shell: str, parser: argparse.ArgumentParser) -> int:
    sys.stdout.write(script(shell, list(places(parser))))
    return 0


def _line(text: str | None) -> str:
    return " ".join((text or "").split())


def _value(action: argparse.Action) -> str:
    if action.nargs == 0:
        return "none"
    name = action.option_strings[-1]
    if name in NAMES:
        return f"names {NAMES[name]}"
    if name in FILES or action.metavar in FILES:
        return "file"
    return "other"


def _bash(found: list[Place]) -> str:
    """Return a script that needs bash alone, not the package bash-completion."""
    known = " ".join(shlex.quote(" ".join(place.words)) for place in found if place.words)
    return f"""# bash completion of holdfast; source it, or put it into bash-completion's folder.
_holdfast() {{
    local at=$COMP_CWORD current=${{COMP_WORDS[COMP_CWORD]}} before typed
    # bash splits words at a colon, which names such as vm:100 have.
    while [ "$at" -gt 1 ] && [[ $current == :* || ${{COMP_WORDS[at-1]}} == *: ]]; do
        at=$((at - 1))
        current=${{COMP_WORDS[at]}}$current
    done
    before=${{COMP_WORDS[at-1]}}
    _holdfast_offer
    if [ "$at" -lt "$COMP_CWORD" ]; then
        typed=${{current%"${{current##*:}}"}}
        COMPREPLY=("${{COMPREPLY[@]#"$typed"}}")
    fi
}}
_holdfast_offer() {{
    local place='' word words='' files='' candidate
    local -a known=({known})
    for word in "${{COMP_WORDS[@]:1:at-1}}"; do
        for candidate in "${{known[@]}}"; do
            if [ "$candidate" = "${{place:+$place }}$word" ]; then place=$candidate; fi
        done
    done
{_values("    ", found)}
    case $place in
{_cases("        ", found)}
    esac
    COMPREPLY=($(compgen -W "$words" -- "$current"))
    if [ -n "$files" ] && [ "${{#COMPREPLY[@]}}" -eq 0 ]; then
        COMPREPLY=($(compgen -f -- "$current"))
    fi
}}
complete -o filenames -F _holdfast holdfast
"""


def _values(indent: str, found: list[Place]) -> str:
    """Return the lines by which bash completes the value of an option."""
    kinds: dict[str, list[str]] = {}
    for word in sorted({word for place in found for word in place.options}, key=lambda w: w.text):
        names = kinds.setdefault(word.value, [])
        if word.text not in names:
            names.append(word.text)
    lines = [f"{indent}case $before in"]
    for kind, texts in sorted(kinds.items()):
        if kind == "none":
            continue
        reply = "COMPREPLY=()"
        if kind == "file":
            reply = 'COMPREPLY=($(compgen -f -- "$current"))'
        elif kind.startswith("names "):
            listed = _listed(kind.split()[1])
            reply = f'COMPREPLY=($(compgen -W "{listed}" -- "$current"))'
        lines.append(f"{indent}    {' | '.join(texts)}) {reply}; return ;;")
    return "\n".join([*lines, f"{indent}esac"])


def _cases(indent: str, found: list[Place]) -> str:
    lines = []
    for place in found:
        words = " ".join(word.text for word in (*place.commands, *place.options))
        told = f"'{words}'"
        if place.names:
            told += f'" {" ".join(map(_listed, place.names))}"'
        files = " files=yes" if place.files else ""
        lines.append(f"{indent}{shlex.quote(' '.join(place.words))}) words={told}{files} ;;")
    return "\n".join(lines)


def _listed(names: str) -> str:
    """Return the shell's words for names, which the cluster is asked for when they are wanted."""
    return f"$(holdfast list {names} 2>/dev/null)"


def _zsh(found: list[Place]) -> str:
    """Return the script for zsh: that of bash, by zsh's own way of taking those."""
    begin = "# zsh completion of holdfast: source <(holdfast completion zsh)\n"
    return (
        f"{begin}autoload -U +X compinit && compinit\n"
        f"autoload -U +X bashcompinit && bashcompinit\n{_bash(found).partition(chr(10))[2]}"
    )


def _fish(found: list[Place]) -> str:
    lines = ["# fish completion of holdfast; put it into ~/.config/fish/completions/holdfast.fish."]
    lines.append("complete -c holdfast -f")
    for place in found:
        names = [word.text for word in place.commands]
        test = f"__fish_seen_subcommand_from {place.words[-1]}" if place.words else ""
        if len(place.words) > 1:
            above = "; and ".join(f"__fish_seen_subcommand_from {one}" for one in place.words)
            test = above
        if names and place.words:
            more = f"not __fish_seen_subcommand_from {' '.join(names)}"
            first = f"{test}; and {more}"
        else:
            first = test or "__fish_use_subcommand"
        for word in place.commands:
            lines.append(_fish_line(first, f"-a {shlex.quote(word.text)}", word.help))
        for word in place.options:
            flag = f"-l {word.text[2:]}" if word.text.startswith("--") else f"-s {word.text[1:]}"
            lines.append(_fish_line(test, flag + _fish_value(word.value), word.help))
        for kind in place.names:
            lines.append(_fish_line(test, f"-a '(holdfast list {kind} 2>/dev/null)'", ""))
        if place.files:
            lines.append(_fish_line(test, "-F", ""))
    return "\n".join(lines) + "\n"


def _fish_value(value: str) -> str:
    if value == "none":
        return ""
    if value == "file":
        return " -r -F"
    if value.startswith("names "):
        return f" -x -a '(holdfast list {value.split()[1]} 2>/dev/null)'"
    return " -x"


def _fish_line(test: str, what: str, help_: str) -> str:
    condition = f" -n {shlex.quote(test)}" if test else ""
    told = f" -d {shlex.quote(help_)}" if help_ else ""
    return f"complete -c holdfast{condition} {what}{told}"
