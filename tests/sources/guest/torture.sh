#!/usr/bin/env bash
# The coherence promises between programs on the view and another client behind it. If a promise
# breaks, the suite tests it on the source without a view: a view cannot keep a promise that its
# source breaks.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
guest_suite torture 'the promises of coherence on network file systems and FAT'

# keeps MOUNT BEHIND PROMISE ROUNDS: whether a promise holds there.
keeps() {
    mkdir -p "$1" "$2"
    timeout 120 "$OGIVE_TORTURE" coherence --mount "$1" --source "$2" --rounds "$4" \
        --names-ms 1500 "$3"
}

# empty DIRECTORY: removes all files, through the client that made them, because other clients may
# have cached names. A replaced file that the view has open exists for a moment on its NFS client.
empty() {
    rm -rf "${1:?}"/* 2>/dev/null || { sleep 3 && rm -rf "${1:?}"/*; } || true
}

# promise NAME BEHIND: tests a promise on the view, with changes behind it at BEHIND.
promise() {
    local try
    if keeps "$VIEW" "$2" "$1" 3 >"$WORK/output" 2>&1; then
        held=$((held + 1))
        return
    fi
    for try in 1 2 3; do
        empty "$2"
        if ! keeps "$SOURCE" "$2" "$1" 3 >"$WORK/bare" 2>&1; then
            not_kept+=" $1"
            say "$kind $mode: $1: bare: $(tail -n 2 "$WORK/bare")"
            return
        fi
    done
    wrong "$kind $mode: $1, which the source keeps in $try runs: $(tail -n 4 "$WORK/output")"
}

# lookupcache=none: the promises need changes to be visible at once. closetimeo=0: a deferred close
# of the SMB client would keep removed files.
while read -r kind options mode; do
    open_source "$kind" "${options#-}"
    open_others "$kind" "${options#-}"
    view_of "$mode"
    held=0 not_kept=''
    for name in $("$OGIVE_TORTURE" coherence --list | awk '{ print $1 }'); do
        # Through the page cache, an append across pages is two requests (docs/coherence.md).
        [[ "$name" != append-in-one-piece || "$mode" == *--direct-io* ]] || continue
        promise "$name" "$OTHER"
        empty "$OTHER"
    done
    say "$kind $options $mode: $held hold; the source breaks:${not_kept:- none}"
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
