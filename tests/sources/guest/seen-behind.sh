#!/usr/bin/env bash
# The view shows changes by others no later than its source does, apart from the lifetimes in
# docs/coherence.md.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
guest_suite seen-behind 'kinds of changes by others, and when they are seen'

# seen_in_time BELIEVED: another client of the source and two views, each with its own client, see
# every change in time.
seen_in_time() {
    local bare="$SOURCE" changers=(server="$SERVER")
    case "$kind" in
        nfs* | smb) bare="$OTHER" changers+=(client="$THIRD") ;;
    esac
    timeout 400 python3 "$GUEST/behind.py" "$1" bare="$bare" default="$VIEW" direct="$WORK/direct" \
        -- "${changers[@]}" | tee "$WORK/behind"
    [ "${PIPESTATUS[0]}" -eq 0 ] || fail 'it did not come to its end'
    ! grep -q '^WRONG' "$WORK/behind"
}

# A short TTL of NFS, so that the suite need not wait a minute.
readonly SHOWN=yes SHORT=acregmin=1,acdirmin=1,acregmax=4,acdirmax=4
# SMB caches a directory that was changed on the server for 30 s, and checks the age only every 30 s.
while read -r kind believed options; do
    open_source "$kind" "$options"
    open_others "$kind" "$options"
    mount_client "$kind" "$WORK/client-direct" "$options"
    view_of default
    mount_view "$WORK/client-direct/$NAME" "$WORK/direct" --direct-io
    row "$kind $options" seen_in_time "$believed"
    close_source
done <<ROWS
nfs4.2 4 $SHORT
nfs4.2 0 lookupcache=none
nfs4.1 4 $SHORT
nfs3 4 $SHORT
nfs3 0 lookupcache=none
smb 60
vfat 0
exfat 0
ntfs3 0
ROWS
verdict
