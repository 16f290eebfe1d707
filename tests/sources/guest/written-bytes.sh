#!/usr/bin/env bash
# Writes through the view: others see them after the close, a full disk is reported as the source
# reports it, and kill -9 loses nothing that was synced.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
guest_suite written-bytes 'closed files as others see them, full disks, kill -9 under fsync'

# same_as_bare PROGRAM [DIRECTORY...]: its output is equal for the view and the source.
same_as_bare() {
    timeout 300 python3 "$GUEST/$1" "$SOURCE" "${@:2}" >"$WORK/bare"
    timeout 300 python3 "$GUEST/$1" "$VIEW" "${@:2}" >"$WORK/view"
    cat "$WORK/view"
    diff "$WORK/bare" "$WORK/view"
}

# killed MODE: kills the daemon in the middle of writes.
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
        row "$kind $mode: closed files" same_as_bare closed.py "$OTHER" "$SERVER"
        rm -rf "${SERVER:?}"/*
        unmount_view "$VIEW"
        row "$kind $mode: kill -9" killed "$mode"
        unmount_at_any_price "$VIEW"
        rm -rf "${SERVER:?}"/*
    done
    close_source
    open_source "$kind-small"
    for mode in default --direct-io; do
        view_of "$mode"
        row "$kind $mode: a full disk" same_as_bare full.py
        unmount_view "$VIEW"
    done
    close_source
done
verdict
