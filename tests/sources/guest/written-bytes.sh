#!/usr/bin/env bash
# Writes through the view. Other clients see them after close, a full disk gives the same errors as
# on the source, and kill -9 loses no synced bytes.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
guest_suite written-bytes 'close-to-open for other clients, full disks, kill -9 under fsync'

# same_as_bare PROGRAM [DIRECTORY...]: a program must print the same for the view as for the source.
same_as_bare() {
    timeout 300 python3 "$GUEST/$1" "$SOURCE" "${@:2}" >"$WORK/bare"
    timeout 300 python3 "$GUEST/$1" "$VIEW" "${@:2}" >"$WORK/view"
    cat "$WORK/view"
    diff "$WORK/bare" "$WORK/view"
}

# killed MODE: kills the daemon during writes.
killed() {
    local options=()
    [ "$1" = default ] || options=("$1")
    timeout 400 "$OGIVE_TORTURE" durability --mount "$VIEW" --source "$SOURCE" --rounds 3 -- \
        "$OGIVE" mount -f "${options[@]}" "$SOURCE" "$VIEW"
}

for kind in nfs4.2 nfs3 smb; do
    open_source "$kind"
    open_others "$kind"
    for mode in default --direct-io; do
        view_of "$mode"
        row "$kind $mode: closed files" same_as_bare close_to_open.py "$OTHER" "$SERVER"
        rm -rf "${SERVER:?}"/*
        unmount_view "$VIEW"
        row "$kind $mode: kill -9" killed "$mode"
        force_unmount "$VIEW"
        rm -rf "${SERVER:?}"/*
    done
    close_source
    open_source "$kind-small"
    for mode in default --direct-io; do
        view_of "$mode"
        row "$kind $mode: a full disk" same_as_bare full_disk.py
        unmount_view "$VIEW"
    done
    close_source
done
verdict
