# Compares the rights of three users in a view and in its source, on a tree with files for each.
# Suites source this file after lib.sh and `suite`.
# shellcheck shell=bash

need setpriv setfacl python3
HERE_USERS="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
readonly ALICE=1234 BOB=1235 GROUP=4321

# as USER COMMAND...: runs a command as alice, who is in a group, bob, who is in none, or root.
as() {
    local user="$1"
    shift
    case "$user" in
        alice) setpriv --reuid $ALICE --regid $ALICE --groups $GROUP "$@" ;;
        bob) setpriv --reuid $BOB --regid $BOB --clear-groups "$@" ;;
        root) "$@" ;;
    esac
}

# A python that other users may execute.
PYTHON=''
for candidate in $(type -aP python3); do
    ! as bob "$candidate" -c '' 2>/dev/null || { PYTHON="$candidate" && break; }
done
[ -n "$PYTHON" ] || skip 'no python3 that other users may run'

# tree DIRECTORY: makes files and directories with different owners, modes and access lists.
tree() {
    local name
    mkdir -p "$1"/{closed,home/sub,dd,shared,sticky,open}
    for name in own foreign public grouped writable denied given closed/f home/f dd/f open/f \
        sticky/foreign sticky/own; do
        echo "$name" >"$1/$name"
    done
    ln -s home/f "$1/link"
    printf '#!/bin/sh\nexit 0\n' | tee "$1/script" >"$1/unreadable"
    cp "$(type -P true)" "$1/program"
    cp "$(type -P true)" "$1/program-x"
    chmod 755 "$1" "$1"/{dd,script,program}
    chmod 644 "$1"/{public,denied,closed/f,home/f,dd/f}
    chmod 600 "$1"/{own,foreign,given}
    chmod 640 "$1/grouped"
    chmod 666 "$1/writable"
    chmod 711 "$1"/{program-x,unreadable}
    chown -R $ALICE:$ALICE "$1"/{own,home,sticky/own}
    chgrp -R $GROUP "$1"/{grouped,shared}
    chmod 700 "$1"/{closed,home}
    chmod 2770 "$1/shared"
    chmod 1777 "$1/sticky"
    chmod 777 "$1/open"
    setfacl -m u:$ALICE:--- "$1/denied" "$1/dd"
    setfacl -m u:$ALICE:rw "$1/given"
    python3 -c 'import os, sys
for path in sys.argv[1:]:
    os.setxattr(path, "user.ogive", b"1")' "$1"/{own,foreign,public,grouped,denied,closed,home}
}

# state DIRECTORY: prints all objects with their attributes.
state() {
    (cd "$1" && find . -mindepth 1 -printf '%P %y %m %U %G %s %n\n' | sort)
}

# compare NAME: compares the results of the view with those of the source. If set, the pattern
# EXPECTED_DIFFERENCE matches lines that may differ; they go to $WORK/expected-differences.
compare() {
    diff "$WORK/bare" "$WORK/view-results" | grep '^[<>]' >"$WORK/differences" || true
    if [ -n "${EXPECTED_DIFFERENCE:-}" ]; then
        grep -E "^> ($EXPECTED_DIFFERENCE)$" "$WORK/differences" >>"$WORK/expected-differences" ||
            true
        sed -i -E "/^[<>] (${EXPECTED_DIFFERENCE% *}) /d" "$WORK/differences"
    fi
    [ ! -s "$WORK/differences" ] ||
        fail "$1: the view (>) differs from the source (<): $(head -n 20 "$WORK/differences")"
}

# try_as USER DIRECTORY [change]: tries all operations as a user, and prints the results.
try_as() {
    as "$1" "$PYTHON" "$WORK/try_rights.py" "${@:2}"
}

# compare_rights SERVER SOURCE VIEW: every operation of each user must have the same result in the
# view as in the source, and leave the same state. At SERVER, root has all rights. The source must
# check access lists, unless WITHOUT_LISTS is set.
compare_rights() {
    local server="$1" source="$2" view="$3" user number=0
    # Other users cannot read the folder of the suites.
    cp "$HERE_USERS/try_rights.py" "$WORK/try_rights.py"
    tree "$server/shared-by-all"
    # Each user follows another one, whose results are in the caches.
    for user in root bob alice bob root alice; do
        try_as "$user" "$source/shared-by-all" >"$WORK/bare"
        try_as "$user" "$view/shared-by-all" >"$WORK/view-results"
        compare "$user"
    done
    if [ -z "${WITHOUT_LISTS:-}" ]; then
        grep -q '^read denied EACCES' "$WORK/bare" || fail 'alice may read a file denied to her'
        grep -q "^read given b'given" "$WORK/bare" || fail 'alice may not read a file given to her'
    fi
    say "$(wc -l <"$WORK/bare") operations of each user have the same results as in the source"
    for user in alice bob root; do
        number=$((number + 1))
        tree "$server/bare.$number"
        tree "$server/view.$number"
        try_as "$user" "$source/bare.$number" change >"$WORK/bare"
        try_as "$user" "$view/view.$number" change >"$WORK/view-results"
        compare "$user"
        state "$server/bare.$number" >"$WORK/bare"
        state "$server/view.$number" >"$WORK/view-results"
        compare "state after $user"
    done
    say 'changes of each user have the same results as in the source'
    rm -rf "$server/"{shared-by-all,bare.*,view.*}
}
