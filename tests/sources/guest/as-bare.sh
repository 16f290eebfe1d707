#!/usr/bin/env bash
# Forty behaviours of a file system, compared between the source and its view. as-bare.expected
# lists known differences: kind, mode, point, reason. A listed difference that no longer occurs is a
# failure as well.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
guest_suite as-bare 'forty behaviours of a file system: the view behaves as its source'
readonly EXPECTED="$GUEST/as-bare.expected"

# expected_lines KIND MODE POINT: the numbers of the expected differences that match.
expected_lines() {
    local number=0 kind mode point
    while read -r kind mode point _; do
        number=$((number + 1))
        # shellcheck disable=SC2053 # patterns are meant
        [[ "$1" != $kind || "$2" != $mode || "$3" != $point ]] || echo "$number"
    done <"$EXPECTED"
}

# compare KIND MODE: compares the results of the view and of the source, a point a line.
compare() {
    local point found differs=0
    [ "$(cut -d ' ' -f 1 "$WORK/bare")" = "$(cut -d ' ' -f 1 "$WORK/view")" ] ||
        wrong "$1 $2: some points did not run: $(tail -n 3 "$WORK/view")"
    for point in $(diff "$WORK/bare" "$WORK/view" | sed -n 's/^[<>] \([^ ]*\).*/\1/p' | sort -u); do
        found="$(expected_lines "$1" "$2" "$point")"
        echo "$found" >>"$WORK/occurred"
        [ -z "$found" ] || continue
        differs=$((differs + 1))
        wrong "$1 $2: $(grep "^$point " "$WORK/bare" | sed 's/ /: bare /')" \
            "| view $(grep "^$point " "$WORK/view" | cut -d ' ' -f 2-)"
    done
    say "$(printf '%-8s %-12s %3d points, %d differ' "$1" "$2" "$(wc -l <"$WORK/view")" "$differs")"
}

: >"$WORK/occurred"
for kind in nfs4.2 nfs4.1 nfs4.0 nfs3 smb vfat exfat ntfs3; do
    open_source "$kind"
    timeout 300 python3 "$GUEST/probe.py" "$SOURCE/bare" >"$WORK/bare" 2>&1 ||
        wrong "$kind: the source itself: $(tail -n 3 "$WORK/bare")"
    for mode in default --direct-io; do
        view_of "$mode"
        timeout 300 python3 "$GUEST/probe.py" "$VIEW/view$mode" >"$WORK/view" 2>&1 || true
        compare "$kind" "$mode"
        unmount_view "$VIEW"
    done
    close_source
done
while read -r number; do
    wrong "no longer occurs: $(sed -n "${number}p" "$EXPECTED")"
done < <(seq "$(wc -l <"$EXPECTED")" | grep -vxFf "$WORK/occurred" || true)
verdict
