#!/usr/bin/env bash
# What other users may do where a server decides it: as on the mount of that server, for each of
# them. Its access lists count, and root is nobody where the server takes it for that.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
guest_suite rights 'three users on servers that decide themselves what each of them may do'
# shellcheck source=tests/mount/users.bash
source "$HERE/users.bash"

for kind in nfs4.2 nfs4.2-squash nfs3 nfs3-squash smb; do
    open_source "$kind"
    for mode in default --direct-io; do
        view_of "$mode" --allow-other
        grep -q '"permissions": "source"' "$VIEW/.ogive/mount" || wrong "$kind is not asked"
        row "$kind $mode" answers_agree "$SERVER" "$SOURCE" "$VIEW"
        rm -rf "${SERVER:?}"/*
        unmount_view "$VIEW"
    done
    close_source
done
verdict
