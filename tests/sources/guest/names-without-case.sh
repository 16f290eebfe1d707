#!/usr/bin/env bash
# Sources where any spelling of a name leads to the same file. The view answers for each spelling as
# its source does, also right after a change by any of them. NTFS3 distinguishes spellings, and so
# does the view.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
guest_suite names-without-case 'other spellings of names, before and after changes'

# same_answers LINES [BEHIND]: makes changes behind the mount in BEHIND, for source and view.
same_answers() {
    mkdir "$SOURCE/bare" "$SOURCE/view"
    python3 "$GUEST/names.py" "$SOURCE/bare" ${2:+"$2/bare"} >"$WORK/bare"
    python3 "$GUEST/names.py" "$VIEW/view" ${2:+"$2/view"} >"$WORK/view"
    [ "$(wc -l <"$WORK/view")" -eq "$1" ]
    if grep -vxFf "$WORK/bare" "$WORK/view" >"$WORK/others"; then
        sed 's/^/view: /' "$WORK/others"
        cut -d ' ' -f 1,2 "$WORK/others" | grep -Ff - "$WORK/bare" | sed 's/^/bare: /'
        return 1
    fi
}

# Without the option that ignores case, an SMB client caches each spelling separately.
for kind in vfat exfat smb ntfs3; do
    options=''
    [ "$kind" != smb ] || options=nocase
    open_source "$kind" "$options"
    for mode in default --direct-io '--metadata-ttl 60 --negative-ttl 60'; do
        view_of "$mode"
        # Where spellings differ, names stay cached for the documented TTL.
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
