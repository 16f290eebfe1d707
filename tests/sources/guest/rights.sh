#!/usr/bin/env bash
# A server checks permissions itself. Each user has the same rights in the view as on the bare
# mount. This also holds with access lists, and where the server maps root to `nobody`.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
guest_suite rights 'three users on servers that check permissions themselves'
# shellcheck source=tests/mount/users.bash
source "$HERE/users.bash"

# same_rights: one difference is expected. Where root is `nobody`, a program with the right to
# execute but not to read does not run (docs/rights.md).
same_rights() {
    EXPECTED_DIFFERENCE='' WITHOUT_LISTS=''
    # This server sees all users of a machine as one.
    [ "$kind" != smb ] || WITHOUT_LISTS=yes
    [[ "$kind" != *-squash ]] || EXPECTED_DIFFERENCE='execute (unreadable|program-x) EACCES'
    compare_rights "$SERVER" "$SOURCE" "$VIEW"
    [ -z "$EXPECTED_DIFFERENCE" ] || [ -s "$WORK/expected-differences" ] ||
        fail "no longer occurs: $EXPECTED_DIFFERENCE"
}

while read -r kind mode; do
    open_source "$kind"
    view_of "$mode" --allow-other
    grep -q '"permissions": "source"' "$VIEW/.ogive/mount" ||
        wrong "$kind does not check permissions"
    row "$kind $mode" same_rights
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
