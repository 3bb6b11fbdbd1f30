#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Apply all roles in check mode, in earnest, and once more.  A script, because a task
# cannot see whether the tasks of a role changed something, nor what was printed.
set -eu

said="$OUTPUT_DIR/said"

fail() {
    echo "$1"
    exit 1
}

# apply EXPECTED OPTIONS...: run the playbook; its recap has to show EXPECTED.
apply() {
    expected=$1
    shift
    ansible-playbook -i "$INVENTORY_PATH" --diff -vvv "$@" roles.yml >"$said" 2>&1 || {
        cat "$said"
        fail "The roles failed with the options: $*"
    }
    grep -E "^testhost .* $expected .* failed=0 " "$said" || {
        grep -E '^(TASK|changed|testhost)' "$said"
        fail "The roles with the options '$*' were expected to end with: $expected"
    }
    if grep -q a-secret "$said"; then
        fail "A password was shown with the options: $*"
    fi
}

apply 'changed=[1-9][0-9]*' --check
[ ! -e "$OUTPUT_DIR/roles" ] || fail "Check mode made $OUTPUT_DIR/roles."

apply 'changed=[1-9][0-9]*'
grep -q a-secret "$OUTPUT_DIR/roles/etc/fence.json" || fail "The password is not where it belongs."
secrets=$(cd "$OUTPUT_DIR/roles/etc/secrets" && stat -c '%n %a' . -- *)
[ "$secrets" = $'. 700\nweb.password 600\nweb.token 700' ] || fail "The secrets are not as they should be: $secrets"
"$OUTPUT_DIR/roles/bin/holdfast" --help >/dev/null
ansible testhost -i "$INVENTORY_PATH" -m holdfast.ha.lockspace_info \
    -a "name=rack1 path=$OUTPUT_DIR/roles/storage" >"$said"
grep -q '"io_timeout": 3' "$said" || fail "The I/O timeout was not passed on: $(cat "$said")"

apply 'changed=0'
