# Three users, a tree with files for each of them, and their requests to a view and to its source.
# Read after lib.sh and `suite`.
# shellcheck shell=bash

need setpriv setfacl python3
HERE_USERS="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
readonly ALICE=1234 BOB=1235 GROUP=4321

# as USER COMMAND...: alice is in a group, bob in none.
as() {
    local user="$1"
    shift
    case "$user" in
        alice) setpriv --reuid $ALICE --regid $ALICE --groups $GROUP "$@" ;;
        bob) setpriv --reuid $BOB --regid $BOB --clear-groups "$@" ;;
        root) "$@" ;;
    esac
}

# A python that other users may run.
PYTHON=''
for one in $(type -aP python3); do
    ! as bob "$one" -c '' 2>/dev/null || { PYTHON="$one" && break; }
done
[ -n "$PYTHON" ] || skip 'no python3 that other users may run'

# tree DIRECTORY: files for each user.
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

# state DIRECTORY: all of its contents.
state() {
    (cd "$1" && find . -mindepth 1 -printf '%P %y %m %U %G %s %n\n' | sort)
}

# compare NAME: compares the answers of the view and of the source. Lines with a known difference
# match UNLIKE, and are kept.
compare() {
    diff "$WORK/bare" "$WORK/asked" | grep '^[<>]' >"$WORK/differences" || true
    if [ -n "${UNLIKE:-}" ]; then
        grep -E "^> ($UNLIKE)$" "$WORK/differences" >>"$WORK/unlike" || true
        sed -i -E "/^[<>] (${UNLIKE% *}) /d" "$WORK/differences"
    fi
    [ ! -s "$WORK/differences" ] ||
        fail "$1: the view (>) differs from the source (<): $(head -n 20 "$WORK/differences")"
}

# ask_as USER DIRECTORY [change]
ask_as() {
    as "$1" "$PYTHON" "$WORK/ask.py" "${@:2}"
}

# answers_agree SERVER SOURCE VIEW: every question of each user is answered by the view as by the
# source, and every change of theirs leaves the same. SERVER is the source as root has it all. The
# source goes by access lists, unless WITHOUT_LISTS says that it does not.
answers_agree() {
    local server="$1" source="$2" view="$3" user number=0
    # Other users cannot reach its directory.
    cp "$HERE_USERS/ask.py" "$WORK/ask.py"
    tree "$server/shared-by-all"
    # Each user comes right after another, whose answers are in the caches.
    for user in root bob alice bob root alice; do
        ask_as "$user" "$source/shared-by-all" >"$WORK/bare"
        ask_as "$user" "$view/shared-by-all" >"$WORK/asked"
        compare "$user"
    done
    if [ -z "${WITHOUT_LISTS:-}" ]; then
        grep -q '^read denied EACCES' "$WORK/bare" || fail 'alice may read what is denied to her'
        grep -q "^read given b'given" "$WORK/bare" || fail 'alice may not read what is given to her'
    fi
    say "$(wc -l <"$WORK/bare") questions of each user are answered as by the source"
    for user in alice bob root; do
        number=$((number + 1))
        tree "$server/bare.$number"
        tree "$server/asked.$number"
        ask_as "$user" "$source/bare.$number" change >"$WORK/bare"
        ask_as "$user" "$view/asked.$number" change >"$WORK/asked"
        compare "$user"
        state "$server/bare.$number" >"$WORK/bare"
        state "$server/asked.$number" >"$WORK/asked"
        compare "what is left by $user"
    done
    say 'and so are their changes'
    rm -rf "$server/"{shared-by-all,bare.*,asked.*}
}
