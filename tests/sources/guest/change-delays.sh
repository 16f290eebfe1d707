#!/usr/bin/env bash
# The view shows changes by other clients as soon as its source does, except for the TTLs of
# docs/coherence.md.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
guest_suite change-delays 'kinds of changes by other clients, and their delays'

# seen_in_time TTL: compares two views, each on its own client, with another client of the source.
seen_in_time() {
    local bare="$SOURCE" changers=(server="$SERVER")
    case "$kind" in
        nfs* | smb) bare="$OTHER" changers+=(client="$THIRD") ;;
    esac
    timeout 400 python3 "$GUEST/change_delays.py" "$1" bare="$bare" default="$VIEW" \
        direct="$WORK/direct" -- "${changers[@]}" | tee "$WORK/delays"
    [ "${PIPESTATUS[0]}" -eq 0 ] || fail 'change_delays.py did not finish'
    ! grep -q '^WRONG' "$WORK/delays"
}

# Short TTLs of the NFS client; by default the suite would wait a minute for them.
readonly SHOWN=yes SHORT=acregmin=1,acdirmin=1,acregmax=4,acdirmax=4
# The SMB client caches a directory for 30 s, and checks for expired ones every 30 s.
while read -r kind ttl options; do
    open_source "$kind" "$options"
    open_others "$kind" "$options"
    mount_client "$kind" "$WORK/client-direct" "$options"
    view_of default
    mount_view "$WORK/client-direct/$NAME" "$WORK/direct" --direct-io
    row "$kind $options" seen_in_time "$ttl"
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
