#!/usr/bin/env bash
# The promises of coherence, with programs on the view and with another machine or session behind
# it. A promise that breaks is tried on the source itself, as its own view, because a view cannot
# keep a promise that its source does not keep.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
guest_suite torture 'the promises of coherence on network file systems and FAT'

# keeps MOUNT BEHIND PROMISE ROUNDS: whether the promise holds there.
keeps() {
    mkdir -p "$1" "$2"
    timeout 120 "$OGIVE_TORTURE" coherence --mount "$1" --source "$2" --rounds "$4" \
        --names-ms 1500 "$3"
}

# clear_away DIRECTORY: through the client that made it, because others may have it cached. On the same
# NFS client, a file that was replaced while the view had it open stays for a moment.
clear_away() {
    rm -rf "${1:?}"/* 2>/dev/null || { sleep 3 && rm -rf "${1:?}"/*; } || true
}

# promise NAME BEHIND: through the view, with changes in BEHIND.
promise() {
    local try
    if keeps "$VIEW" "$2" "$1" 3 >"$WORK/said" 2>&1; then
        held=$((held + 1))
        return
    fi
    for try in 1 2 3; do
        clear_away "$2"
        if ! keeps "$SOURCE" "$2" "$1" 3 >"$WORK/bare" 2>&1; then
            not_kept+=" $1"
            say "$kind $mode: $1: bare: $(tail -n 2 "$WORK/bare")"
            return
        fi
    done
    wrong "$kind $mode: $1, which bare keeps in $try runs: $(tail -n 4 "$WORK/said")"
}

# With another machine at work, NFS caches no names, because the promises require changes at once. SMB
# closes each file with its program, because a file removed while it is open would stay.
while read -r kind options mode; do
    open_source "$kind" "${options#-}"
    open_others "$kind" "${options#-}"
    view_of "$mode"
    held=0 not_kept=''
    for name in $("$OGIVE_TORTURE" coherence --list | awk '{ print $1 }'); do
        # With page cache an append of two pages is two requests (docs/coherence.md).
        [[ "$name" != append-in-one-piece || "$mode" == *--direct-io* ]] || continue
        promise "$name" "$OTHER"
        clear_away "$OTHER"
    done
    say "$kind $options $mode: $held held; not on bare:${not_kept:- none}"
    close_source
done <<'ROWS'
nfs4.2 lookupcache=none default
nfs4.2 lookupcache=none --direct-io
nfs3 lookupcache=none default
smb closetimeo=0 default
vfat - default
exfat - default
ROWS
verdict
