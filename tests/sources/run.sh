#!/usr/bin/env bash
# Runs the suites of other sources (NFS, SMB, FAT, exFAT, NTFS), one after the other, and prints a
# table. Each runs in a new virtual machine, because this kernel may lack their file systems.
#
# usage: tests/sources/run.sh [--list | SUITE...]
#
# KVM is optional; without it a suite takes from two to fifteen minutes. Exit code 0: no suite
# failed; 1: a suite failed; 77: no suite could run.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
all=(as-bare removed-trees operations stale-handles rights change-delays names-without-case
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
