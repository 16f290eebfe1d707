#!/usr/bin/env bash
# Other clients replace, recreate, remove or retarget a name. An open never fails with ESTALE, and
# opens the current file.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
guest_suite stale-handles 'names that others replace, recreate, remove or retarget are never stale'

# never_stale CHANGER FOLDER: see stale_handles.py. NFS clients cache names for a minute.
never_stale() {
    mkdir "$1/$2"
    python3 "$GUEST/stale_handles.py" "$VIEW/$2" "$OTHER/$2" "$1/$2" 70 | tee "$WORK/stale"
    [ ! -s "$WORK/stale" ]
}

while read -r kind mode; do
    open_source "$kind"
    open_others "$kind"
    view_of "$mode"
    for changer in THIRD SERVER SOURCE; do
        row "$kind $mode: by ${changer,,}" never_stale "${!changer}" "$changer"
    done
    close_source
done <<'ROWS'
nfs4.2 default
nfs4.2 --direct-io
nfs4.1 default
nfs4.0 default
nfs3 default
nfs3 --direct-io
smb default
ROWS
verdict
