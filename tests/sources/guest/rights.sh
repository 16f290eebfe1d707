#!/usr/bin/env bash
# The rights of other users where a server decides: as on the mount of that server, for each of
# them. Its access lists count, and root acts as nobody if the server squashes root.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
guest_suite rights 'three users on servers that decide themselves what each of them may do'
# shellcheck source=tests/mount/users.bash
source "$HERE/users.bash"

# agree: an executable program without read permission does not run where root is squashed
# (docs/rights.md).
agree() {
    UNLIKE='' WITHOUT_LISTS=''
    # This server treats all users of a machine as one.
    [ "$kind" != smb ] || WITHOUT_LISTS=yes
    [[ "$kind" != *-squash ]] || UNLIKE='execute (unreadable|program-x) EACCES'
    answers_agree "$SERVER" "$SOURCE" "$VIEW"
    [ -z "$UNLIKE" ] || [ -s "$WORK/unlike" ] || fail "no more: $UNLIKE"
}

while read -r kind mode; do
    open_source "$kind"
    view_of "$mode" --allow-other
    grep -q '"permissions": "source"' "$VIEW/.ogive/mount" || wrong "$kind is not asked"
    row "$kind $mode" agree
    close_source
done <<'ROWS'
nfs4.2-squash default
nfs3 default
nfs3-squash default
smb default
nfs4.2 --direct-io
nfs4.2 default
ROWS
verdict
