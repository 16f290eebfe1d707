#!/usr/bin/env bash
# Runs the suites of buckets one after the other and prints a table.
#
# usage: tests/bucket/run.sh [--list | [--all] SUITE...]
#
# Without --all: what a bare machine installs within two minutes and runs within three. With it the
# servers that have to be compiled as well (MinIO, fake-gcs-server: OGIVE_ALL=1), and longer runs
# of what goes by time or number. Exit code 0: none failed; 1: at least one failed; 77: none could
# run.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
all=(moto demo credentials web azure names google minio fight programs posix metadata kills)
all+=(faults)
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

# A thousand kills and an hour of faults take their time.
limit=900
[ "${OGIVE_ALL:-0}" != 1 ] || limit=7200

source "$here/../suites.bash"
run_suites "$here" "$limit" "${suites[@]}"
printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" -eq 0 ] || exit 1
[ "$passed" -gt 0 ] || exit 77
