# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""``holdfast completion``: a script for the completion of bash, zsh or fish.

It is made from the command's parser.  ``holdfast list`` gives names of nodes and services.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from typing import Any

from .places import Place, Value, places

SHELLS = ("bash", "zsh", "fish")

_BASH_BEGIN = "# bash completion of holdfast; source it, or put it into bash-completion's folder.\n"
_ZSH_BEGIN = """\
# zsh completion of holdfast: source <(holdfast completion zsh)
autoload -U +X compinit && compinit
autoload -U +X bashcompinit && bashcompinit
"""
"""The script for zsh is that of bash, with zsh's bashcompinit."""


def register(commands: Any) -> None:
    """Add the command to the subparsers *commands*."""
    completion = commands.add_parser(
        "completion", help="print a script for the completion of a shell"
    )
    completion.add_argument("shell", choices=SHELLS)
    completion.set_defaults(act=_completion)


def _completion(options: argparse.Namespace) -> int:
    from .commands import make_parser

    sys.stdout.write(script(options.shell, list(places(make_parser()))))
    return 0


def script(shell: str, found: list[Place]) -> str:
    """Return the script for a *shell*, one of ``SHELLS``."""
    if shell == "fish":
        return _fish(found)
    if shell == "bash":
        return f"{_BASH_BEGIN}{_bash(found)}"
    return f"{_ZSH_BEGIN}{_bash(found)}"


def _with_value(found: list[Place]) -> dict[str, Value]:
    """Return the value of each option that takes one, in all commands."""
    words = [word for place in found for word in place.options]
    return {word.text: word.value for word in words if word.value is not None}


def _bash(found: list[Place]) -> str:
    """Return the script for bash; it does not need the package bash-completion."""
    known = " ".join(shlex.quote(" ".join(place.words)) for place in found if place.words)
    valued = " | ".join(sorted(_with_value(found)))
    return f"""_holdfast() {{
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
    local place='' offers='' files='' count=0 skip='' last='' word candidate
    local -a known=({known})
    for word in "${{COMP_WORDS[@]:1:$((at - 1))}}"; do
        for candidate in "${{known[@]}}"; do
            if [ "$candidate" = "${{place:+$place }}$word" ]; then
                place=$candidate count=-1
                break
            fi
        done
        # How many arguments there are already, without options and their values.
        if [ "$word" = = ]; then
            skip=yes
        elif [ -n "$skip" ]; then
            skip=''
        elif [[ $word != :* && $last != *: ]]; then
            case $word in
                {valued}) skip=yes ;;
                -*) ;;
                *) count=$((count + 1)) ;;
            esac
        fi
        last=$word
    done
{_values("    ", found)}
    case $place in
{_cases("        ", found)}
    esac
    COMPREPLY=($(compgen -W "$offers" -- "$current"))
    if [ -n "$files" ] && [ "${{#COMPREPLY[@]}}" -eq 0 ]; then
        COMPREPLY=($(compgen -f -- "$current"))
    fi
}}
complete -o filenames -F _holdfast holdfast
"""


def _values(indent: str, found: list[Place]) -> str:
    """Return the lines by which bash completes the value of an option."""
    options: dict[Value, list[str]] = {}
    for text, value in sorted(_with_value(found).items()):
        options.setdefault(value, []).append(text)
    lines = [f"{indent}case $before in"]
    for value, texts in options.items():
        reply = "COMPREPLY=()"
        if value.files:
            reply = 'COMPREPLY=($(compgen -f -- "$current"))'
        elif value.words or value.names:
            reply = f'COMPREPLY=($(compgen -W "{_offers(value)}" -- "$current"))'
        lines.append(f"{indent}    {' | '.join(texts)}) {reply}; return ;;")
    return "\n".join([*lines, f"{indent}esac"])


def _cases(indent: str, found: list[Place]) -> str:
    """Return the lines by which bash completes what may follow each command."""
    lines = []
    for place in found:
        words = " ".join(word.text for word in (*place.commands, *place.options))
        lines.append(f"{indent}{shlex.quote(' '.join(place.words))})")
        lines.append(f"{indent}    offers='{words}'")
        if place.arguments:
            lines.append(f"{indent}    case $count in")
            for count, value in enumerate(place.arguments):
                files = " files=yes" if value.files else ""
                at = "*" if value.many else count
                lines.append(f'{indent}        {at}) offers+=" {_offers(value)}"{files} ;;')
            lines.append(f"{indent}    esac")
        lines.append(f"{indent}    ;;")
    return "\n".join(lines)


def _offers(value: Value, mark: str = "$") -> str:
    """Return the words of a value, and the commands that list its names while completing."""
    names = [f"{mark}(holdfast list {one} 2>/dev/null)" for one in value.names]
    return " ".join([*value.words, *names])


def _fish(found: list[Place]) -> str:
    lines = [_fish_begin(found), "complete -c holdfast -f"]
    for place in found:
        test = _fish_test(place)
        first = _fish_test(place, f"-eq {len(place.words)}")
        for word in place.commands:
            lines.append(_fish_line(first, f"-a {shlex.quote(word.text)}", word.help))
        for word in place.options:
            flag = f"-l {word.text[2:]}" if word.text.startswith("--") else f"-s {word.text[1:]}"
            lines.append(_fish_line(test, flag + _fish_value(word.value), word.help))
        for at, value in enumerate(place.arguments, len(place.words)):
            than = "-ge" if value.many else "-eq"
            here = _fish_test(place, f"{than} {at}")
            if value.words or value.names:
                lines.append(_fish_line(here, f"-a '{_offers(value, '')}'", ""))
            if value.files:
                lines.append(_fish_line(here, "-F", ""))
    return "\n".join(lines) + "\n"


def _fish_test(place: Place, many: str = "") -> str:
    """Return fish's condition for the words of *place*, and for the number of words, if given."""
    there = [f"__holdfast_in {' '.join(place.words)}"] if place.words else []
    number = [f"test (count (__holdfast_words)) {many}"] if many else []
    return "; and ".join([*there, *number])


def _fish_begin(found: list[Place]) -> str:
    """Return fish's functions for the words before the cursor without options and values."""
    return f"""\
# fish completion of holdfast; put it into ~/.config/fish/completions/holdfast.fish.
function __holdfast_words
    set -l words (commandline -opc)
    set -e words[1]
    set -l skip no
    for word in $words
        if test $skip = yes
            set skip no
            continue
        end
        switch $word
            case {" ".join(sorted(_with_value(found)))}
                set skip yes
            case '-*'
            case '*'
                echo $word
        end
    end
end
function __holdfast_in
    set -l words (__holdfast_words)
    set -l many (count $argv)
    test "$words[1..$many]" = "$argv"
end"""


def _fish_value(value: Value | None) -> str:
    if value is None:
        return ""
    if value.files:
        return " -r -F"
    return f" -x -a '{_offers(value, '')}'" if value.words or value.names else " -x"


def _fish_line(test: str, what: str, help_: str) -> str:
    condition = f" -n {shlex.quote(test)}" if test else ""
    told = f" -d {shlex.quote(help_)}" if help_ else ""
    return f"complete -c holdfast{condition} {what}{told}"
