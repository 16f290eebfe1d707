#!/usr/bin/env bash
# Runs the mount suites one after the other and prints a table.
#
# usage: tests/mount/run.sh [--list | --list-uring | [--over-uring] SUITE...]
#
# --list prints the names of the suites, --list-uring of those that are to be run over io_uring, too.
# --over-uring runs them over io_uring: FUSE over io_uring is switched on for the time, if root can,
# and the suites are skipped where the kernel has none. Without arguments all suites run. Exit code 0: none failed; 1: at least one failed.
# A suite that could not run (no /dev/fuse, not root, a tool missing) is counted as skipped.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
all=(life control permissions readonly origin-errors hang coherence l2 l2-places mirror durability fsx fio sqlite
    git trees pressure doctor pjdfstest)
over_uring=(coherence fsx fio mirror pjdfstest life control hang pressure)
case "${1:-}" in
    --list)
        printf '%s\n' "${all[@]}"
        exit 0
        ;;
    --list-uring)
        printf '%s\n' "${over_uring[@]}"
        exit 0
        ;;
    --over-uring)
        shift
        switch=/sys/module/fuse/parameters/enable_uring
        if [ ! -e "$switch" ]; then
            echo 'this kernel has no FUSE over io_uring' >&2
            exit 77
        fi
        if [ "$(cat "$switch")" != Y ]; then
            if ! { echo Y >"$switch"; } 2>/dev/null; then
                echo "FUSE over io_uring is switched off and $switch cannot be written" >&2
                exit 77
            fi
            trap 'echo N >"$switch"' EXIT
        fi
        export OGIVE_TRANSPORT=uring
        [ "$#" -gt 0 ] || set -- "${over_uring[@]}"
        ;;
esac
suites=("$@")
[ "$#" -gt 0 ] || suites=("${all[@]}")
limit_seconds="${OGIVE_SUITE_SECONDS:-900}"

passed=0
failed=0
skipped=0
table=''
for suite in "${suites[@]}"; do
    suite="${suite%.sh}"
    if [ ! -f "$here/$suite.sh" ]; then
        printf "no suite is called '%s'; there are: %s\n" "$suite" "${all[*]}" >&2
        exit 2
    fi
    started="$SECONDS"
    code=0
    timeout --kill-after=30 "$limit_seconds" bash "$here/$suite.sh" </dev/null || code=$?
    case "$code" in
        0) result=passed passed=$((passed + 1)) ;;
        77) result=skipped skipped=$((skipped + 1)) ;;
        124 | 137) result="failed (over $limit_seconds s)" failed=$((failed + 1)) ;;
        *) result="failed ($code)" failed=$((failed + 1)) ;;
    esac
    table+="$(printf '%-16s %7d  %s' "$suite" "$((SECONDS - started))" "$result")"$'\n'
done

printf '\n%-16s %7s  %s\n%s' suite seconds result "$table"
[ "$skipped" -eq 0 ] || printf '%d skipped\n' "$skipped"
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
