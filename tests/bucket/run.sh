#!/usr/bin/env bash
# Runs the suites of buckets one after the other and prints a table.
#
# usage: tests/bucket/run.sh [--list | [--all] SUITE...]
#
# Without --all, a bare machine needs two minutes to install everything, and three minutes to run
# it. --all (OGIVE_ALL=1) also compiles MinIO and fake-gcs-server, and runs some suites longer. Exit
# code 0: no suite failed; 1: a suite failed; 77: no suite could run.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
all=(moto demo credentials web azure key-names google minio two-writers programs posix metadata
    kills faults)
case "${1:-}" in
    --list)
        printf '%s\n' "${all[@]}"
        exit 0
        ;;
    --all)
        export OGIVE_ALL=1
        shift
        ;;
esac
suites=("$@")
[ "$#" -gt 0 ] || suites=("${all[@]}")

# A thousand kills, or faults for an hour, take longer.
limit=900
[ "${OGIVE_ALL:-0}" != 1 ] || limit=7200

source "$here/../suites.bash"
run_suites "$here" "$limit" "${suites[@]}"
printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" -eq 0 ] || exit 1
[ "$passed" -gt 0 ] || exit 77
