#!/usr/bin/env bash
# File systems without case sensitivity. The view answers each spelling of a name as its source
# does, also at once after a change through another spelling. NTFS3 is case-sensitive, and so is its
# view.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
guest_suite names-without-case 'other spellings of names, before and after changes'

# same_answers LINES [BEHIND]: compares the answers of source and view. With BEHIND, changes are
# also made there, behind the view.
same_answers() {
    mkdir "$SOURCE/bare" "$SOURCE/view"
    python3 "$GUEST/spellings.py" "$SOURCE/bare" ${2:+"$2/bare"} >"$WORK/bare"
    python3 "$GUEST/spellings.py" "$VIEW/view" ${2:+"$2/view"} >"$WORK/view"
    [ "$(wc -l <"$WORK/view")" -eq "$1" ]
    if grep -vxFf "$WORK/bare" "$WORK/view" >"$WORK/others"; then
        sed 's/^/view: /' "$WORK/others"
        cut -d ' ' -f 1,2 "$WORK/others" | grep -Ff - "$WORK/bare" | sed 's/^/bare: /'
        return 1
    fi
}

# Without nocase, an SMB client caches each spelling separately.
for kind in vfat exfat smb ntfs3; do
    options=''
    [ "$kind" != smb ] || options=nocase
    open_source "$kind" "$options"
    for mode in default --direct-io '--metadata-ttl 60 --negative-ttl 60'; do
        view_of "$mode"
        # On a case-sensitive source, names are cached for the TTL, so changes behind may be late.
        if [ "$kind" = ntfs3 ]; then
            row "$kind $mode" same_answers 11
        else
            row "$kind $mode" same_answers 22 "$SOURCE"
        fi
        rm -rf "${SERVER:?}"/*
        unmount_view "$VIEW"
    done
    close_source
done
verdict
