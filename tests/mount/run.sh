#!/usr/bin/env bash
# Runs the mount suites one after the other and prints a table.
#
# usage: tests/mount/run.sh [--list | --list-uring | --list-passthrough |
#            [--all] [--over-uring] [--over-passthrough] SUITE...]
#
# --list prints the names of the suites, --list-uring of those that are to be run over io_uring,
# too. --over-uring runs them over io_uring: FUSE over io_uring is switched on for the time, if root
# can, and the suites are skipped where the kernel has none. Without arguments all suites run.
# --over-passthrough runs suites on mounts whose files the kernel reads and writes itself;
# --list-passthrough prints those that run then if none is named. --all runs them at full length: a
# million files, every stressor alone (OGIVE_ALL=1), an hour each at most. Exit code 0: none failed;
# 1: at least one failed. A suite that could not run (no /dev/fuse, not root, a tool missing) is
# counted as skipped.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
all=(life control permissions user flags readonly origin-errors vanished replaced cycles remount
    submounts overlay passthrough hang hung privileges coherence requests l2 l2-places l2-devices
    hostile-device mirror
    durability fsx fio sqlite postgresql stress syscalls fsstress git trees pressure doctor
    pjdfstest descriptors xfstests)
over_uring=(coherence requests fsx fio mirror passthrough pjdfstest life control hang hung
    privileges pressure)
over_passthrough=(passthrough coherence fsx fio mirror privileges permissions sqlite git)
if [ "${1:-}" = --all ]; then
    export OGIVE_ALL=1
    export OGIVE_SUITE_SECONDS="${OGIVE_SUITE_SECONDS:-3600}"
    shift
fi
case "${1:-}" in
    --list)
        printf '%s\n' "${all[@]}"
        exit 0
        ;;
    --list-uring)
        printf '%s\n' "${over_uring[@]}"
        exit 0
        ;;
    --list-passthrough)
        printf '%s\n' "${over_passthrough[@]}"
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
if [ "${1:-}" = --over-passthrough ]; then
    shift
    export OGIVE_PASSTHROUGH=1
    [ "$#" -gt 0 ] || set -- "${over_passthrough[@]}"
fi
suites=("$@")
[ "$#" -gt 0 ] || suites=("${all[@]}")

source "$here/../suites.bash"
run_suites "$here" "${OGIVE_SUITE_SECONDS:-900}" "${suites[@]}"
[ "$skipped" -eq 0 ] || printf '%d skipped\n' "$skipped"
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
