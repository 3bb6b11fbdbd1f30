# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck shell=sh
#
# What quickstart and run_tests share: find a Python, keep the user's settings
# out, and make a virtual environment inside the checkout.  It is read with "."
# by a script that has set "root" (the checkout, an absolute path) and "cache" (a
# folder in it for what the script leaves besides its virtual environment).
# shellcheck disable=SC2154

# fail SENTENCE: say what is wrong and end.
fail() {
    printf '%s: %s\n' "${0##*/}" "$1" >&2
    exit 1
}

# clean_environment: remove what the user's shell could change in Python or in
# Ansible.  The package index and proxy (PIP_INDEX_URL, https_proxy, pip.conf)
# stay: without them there may be no way to PyPI.
clean_environment() {
    for name in $(env | sed -n 's/^\(ANSIBLE_[A-Za-z0-9_]*\)=.*/\1/p; s/^\(PYTHON[A-Z]*\)=.*/\1/p'); do
        unset "$name"
    done
    unset VIRTUAL_ENV PIP_TARGET PIP_PREFIX PIP_ROOT PIP_REQUIRE_VIRTUALENV
    # A pip.conf may ask for --user installs, which a virtual environment refuses.
    export PIP_USER=0
    export PIP_DISABLE_PIP_VERSION_CHECK=1
    export PIP_CACHE_DIR="$cache/pip"
    # Ansible refuses to start in a locale that is not UTF-8.
    export LC_ALL=C.UTF-8
    # Bytecode of the daemons, which run from the checkout, and of the library in modules
    # belongs with the other leftovers.
    export PYTHONPYCACHEPREFIX="$cache/bytecode"
    export XDG_CACHE_HOME="$cache/user"
}

# check_checkout: refuse a checkout in which nothing can be made.
check_checkout() {
    case $root in
        *:*) fail "the path $root has a colon in it, which no list of paths can hold; move the checkout." ;;
    esac
    for place in "$root" "$root/.cache" "$cache" "$root/.venv" "$root/.quickstart"; do
        if [ -e "$place" ] && [ ! -w "$place" ]; then
            fail "$place cannot be written by $(id -un); run this as its owner, or clone the repository again."
        fi
    done
}

# find_python: set "python" to a Python 3.10 or newer that can make virtual
# environments, as a real path: shims (pyenv) and links do not survive a changed PATH.
find_python() {
    python='' found='' incomplete=''
    for candidate in ${HOLDFAST_PYTHON:-python3 python3.13 python3.12 python3.11 python3.10 python3.14}; do
        version=$("$candidate" -I -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || continue
        case $version in
            2.* | 3.[0-9]) found="$found, $candidate is $version" ; continue ;;
        esac
        if "$candidate" -I -c 'import ensurepip, venv' 2>/dev/null; then
            python=$("$candidate" -I -c 'import os, sys; print(os.path.realpath(sys.executable))')
            return
        fi
        incomplete=${incomplete:-$version}
    done
    if [ -n "$incomplete" ]; then
        fail "Python $incomplete lacks its venv module; install it (Debian and Ubuntu: apt-get install python3-venv) and try again."
    fi
    if [ -n "$found" ]; then
        fail "Python 3.10 or newer is needed (${found#, }); install one and try again."
    fi
    fail "python3 was not found; install Python 3.10 or newer with venv (Debian and Ubuntu: apt-get install python3 python3-venv) and try again."
}

# make_venv FOLDER REQUIREMENTS: make the virtual environment FOLDER with what a
# file of requirements/ names, unless it is there and complete.  The stamp is
# written last, so an interrupted run leaves a folder without one.
make_venv() {
    venv=$1 requirements=$root/requirements/$2
    stamp=$(
        printf '%s\n' "$venv" "$python"
        "$python" --version
        cksum "$requirements"
    )
    if [ "$(cat "$venv/complete" 2>/dev/null)" = "$stamp" ] && "$venv/bin/python" -c '' 2>/dev/null; then
        return
    fi
    echo "Setting up ${venv#"$root/"} with $("$python" --version) (once; this downloads from PyPI) ..."
    rm -rf "$venv"
    mkdir -p "$cache"
    if ! "$python" -m venv "$venv"; then
        rm -rf "$venv"
        fail "$python could not make the virtual environment $venv, see above."
    fi
    if ! "$venv/bin/python" -m pip install --quiet --require-hashes --requirement "$requirements"; then
        rm -rf "$venv"
        fail "the Python packages could not be installed, see above; is PyPI, or the index that pip is configured for, in reach?"
    fi
    printf '%s\n' "$stamp" >"$venv/complete"
}

# make_scratch: make a folder outside the checkout that goes when the script ends,
# for what breaks on a path with a space or a quote in it; set "scratch" to it.
make_scratch() {
    case ${TMPDIR:-/tmp} in
        *[!A-Za-z0-9._/-]*) TMPDIR=/tmp ;;
    esac
    scratch=$(mktemp -d "${TMPDIR:-/tmp}/holdfast.XXXXXXXX")
    trap 'rm -rf "$scratch"' EXIT
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM
}

# point_ansible_here: make Ansible use this checkout and leave nothing outside it.
point_ansible_here() {
    # Named, because Ansible ignores an ansible.cfg in a folder that anyone may write to.
    export ANSIBLE_CONFIG="$root/ansible.cfg"
    export ANSIBLE_COLLECTIONS_PATH="$root/.collections"
    export ANSIBLE_HOME="$cache/ansible"
    export ANSIBLE_LOCAL_TEMP="$cache/ansible/tmp"
    # Ansible puts these two into shell commands without quotes.
    export ANSIBLE_REMOTE_TEMP="$scratch"
    export ANSIBLE_ASYNC_DIR="$scratch/async"
    export ANSIBLE_INVENTORY=/dev/null
    export ANSIBLE_INVENTORY_UNPARSED_WARNING=false
    export ANSIBLE_LOCALHOST_WARNING=false
    export ANSIBLE_NOCOWS=1
}
