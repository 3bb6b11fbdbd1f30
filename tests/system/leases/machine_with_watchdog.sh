#!/bin/sh
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
#
# machine_with_watchdog.sh FOLDER PYTHON COMMAND...
#
# Become COMMAND, a sanlock daemon, on a machine of its own as far as sanlock sees one:
# /etc/sanlock is FOLDER/etc/sanlock, /run and /dev/shm are empty, and there is a
# watchdog with wdmd at work on it.  To be called in a mount namespace of its own.
# Process ids go to FOLDER/pids, what the watchdog does to FOLDER/watchdog.log.
set -eu
folder=$1 python=$2
shift 2

# wait_for TEST...: wait until the test is true, for at most a minute.
wait_for() {
    for _ in $(seq 1200); do
        if "$@"; then
            return 0
        fi
        sleep 0.05
    done
    echo "$0: it did not come true: $*" >&2
    exit 1
}

mount -t tmpfs none /dev/shm
mount -t tmpfs none /run
mount -t overlay -o "lowerdir=$folder/etc:/etc" none /etc
mkdir /run/wdmd
# Where wdmd does not like the watchdog it is given, it must not find the machine's own.
for device in /dev/watchdog*; do
    if [ -e "$device" ]; then
        mount --bind /dev/null "$device"
    fi
done
"$python" "$(dirname "$0")/../../hardware/watchdog.py" "$folder/watchdog" "$folder/watchdog.log" &
echo $! >"$folder/pids"
wait_for grep -qs mounted "$folder/watchdog.log"
wdmd -D -w "$folder/watchdog" >"$folder/wdmd.log" 2>&1 &
echo $! >>"$folder/pids"
wait_for grep -qs 'wdmd started' "$folder/wdmd.log"
exec "$@"
