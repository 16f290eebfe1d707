#!/usr/bin/env bash
# Runs the mount suites one after the other and prints a table.
#
# usage: tests/mount/run.sh [--list | SUITE...]
#
# --list prints the names of the suites. Without arguments all suites run. Exit code 0: none failed; 1: at least one failed.
# A suite that could not run (no /dev/fuse, not root, a tool missing) is counted as skipped.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
all=(life control permissions readonly origin-errors coherence l2 mirror durability fsx fio sqlite
    git trees pressure doctor pjdfstest)
if [ "${1:-}" = --list ]; then
    printf '%s\n' "${all[@]}"
    exit 0
fi
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
