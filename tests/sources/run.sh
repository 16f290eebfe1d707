#!/usr/bin/env bash
# Runs the suites of sources that this machine's kernel may not know (NFS, SMB, FAT, exFAT, NTFS),
# each in its own virtual machine, one after another, and prints a table.
#
# usage: tests/sources/run.sh [--list | SUITE...]
#
# Nothing needs KVM; without it a suite takes from two to fifteen minutes. Exit code 0: none failed;
# 1: at least one failed; 77: none could run.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
all=(as-bare removed-trees operations stale-handles rights seen-behind names-without-case
    servers-that-stop written-bytes torture)
if [ "${1:-}" = --list ]; then
    printf '%s\n' "${all[@]}"
    exit 0
fi
suites=("$@")
[ "$#" -gt 0 ] || suites=("${all[@]}")

source "$here/../suites.bash"
run_suites "$here/guest" "${OGIVE_SUITE_SECONDS:-3600}" "${suites[@]}"
printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" -eq 0 ] || exit 1
[ "$passed" -gt 0 ] || exit 77
