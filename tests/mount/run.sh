#!/usr/bin/env bash
# Runs the mount suites one after the other and prints a table.
#
# usage: tests/mount/run.sh [--list | --list-uring | --list-passthrough | --list-smoke |
#            --smoke | [--all] [--over-uring] [--over-passthrough] SUITE...]
#
# Without arguments, all suites run.
#
# --smoke             a short run of the suites of --list-smoke. Its random choices follow from
#                     OGIVE_SEED. It takes a minute, also with debug builds
# --all               full length: a million files, every stressor alone (OGIVE_ALL=1), an hour a
#                     suite at most
# --over-uring        mounts over io_uring. Enables FUSE over io_uring in the kernel, and restores
#                     it at the end. One such run at a time; without kernel support, exit code 77
# --over-passthrough  mounts whose files the kernel reads and writes itself
# --list              prints all suites
# --list-uring, --list-passthrough   print the suites that run with these options by default
#
# Exit code 0: no suite failed. 1: a suite failed. A suite that cannot run (no /dev/fuse, not root,
# a tool missing) counts as skipped.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
all=(life control caching permissions rights user reserve flags readonly times origin-errors
    vanished replaced cycles remount submounts overlay watchers passthrough hits-during-hang
    hanging-source privileges coherence execute requests l2 l2-places l2-devices hostile-device
    mirror durability fsx fio sqlite postgresql stress syscalls fsstress git trees pressure doctor
    pjdfstest descriptors xfstests)
over_uring=(rights coherence execute times watchers requests fsx fio mirror passthrough pjdfstest
    life control hits-during-hang hanging-source privileges pressure)
smoke=(readonly times permissions rights control caching flags life origin-errors remount overlay
    hits-during-hang hostile-device durability coherence execute mirror)
over_passthrough=(passthrough coherence execute fsx fio mirror privileges permissions sqlite git)

# The kernel's switch is global. A lock allows one run at a time. The old value is in a file, so
# that the next run can restore it if this one is killed.
readonly SWITCH=/sys/module/fuse/parameters/enable_uring
readonly SWITCH_BEFORE=/run/ogive-uring.before SWITCH_LOCK=/run/ogive-uring.lock

# restore_switch: restores the old value. The caller holds the lock.
restore_switch() {
    [ -s "$SWITCH_BEFORE" ] || return 0
    cat "$SWITCH_BEFORE" >"$SWITCH"
    rm -f "$SWITCH_BEFORE"
}

# enable_uring: enables FUSE over io_uring until this run ends.
enable_uring() {
    if [ ! -e "$SWITCH" ]; then
        echo 'this kernel has no FUSE over io_uring' >&2
        exit 77
    fi
    if ! { exec 9>"$SWITCH_LOCK" && [ -w "$SWITCH" ]; } 2>/dev/null; then
        [ "$(cat "$SWITCH")" != Y ] || return 0
        echo "FUSE over io_uring is switched off and $SWITCH cannot be written" >&2
        exit 77
    fi
    if ! flock --nonblock 9; then
        echo "another run holds $SWITCH_LOCK" >&2
        exit 1
    fi
    restore_switch
    cp "$SWITCH" "$SWITCH_BEFORE"
    trap restore_switch EXIT
    trap 'exit 130' INT TERM
    if ! { echo Y >"$SWITCH"; } 2>/dev/null; then
        echo "FUSE over io_uring is switched off and $SWITCH cannot be written" >&2
        exit 77
    fi
}

# A killed run may have left the switch on.
if [ -w "$SWITCH" ] && [ -s "$SWITCH_BEFORE" ]; then
    (! flock --nonblock 9 || restore_switch) 9>"$SWITCH_LOCK"
fi
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
    --list-smoke)
        printf '%s\n' "${smoke[@]}"
        exit 0
        ;;
    --smoke)
        shift
        export OGIVE_DURABILITY_ROUNDS=2 OGIVE_COHERENCE_ROUNDS=2 OGIVE_EXECUTE_ROUNDS=3
        export OGIVE_MIRROR_MODES='plain direct' OGIVE_MIRROR_SEEDS=1 OGIVE_MIRROR_OPERATIONS=500
        [ "$#" -gt 0 ] || set -- "${smoke[@]}"
        ;;
    --over-uring)
        shift
        enable_uring
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
