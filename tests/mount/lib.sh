# Functions of the mount suites. Suites source this file.
#
# A suite starts with
#     source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
#     suite NAME "what it does"
# and ends with `passed`. All files of a suite are below $WORK, which is removed at the end.
#
# `suite` enters new mount and PID namespaces, so other mounts and processes cannot interfere. The
# namespaces end with their first process: a killed suite leaves no process and no mount. There, $$
# is always 1, so names that are global on the machine are made from $WORK.
#
# Suites do not sleep for fixed times. `eventually` waits for a condition, with a bound that no
# working program reaches, and fails with the condition's name.
#
# Environment:
#   OGIVE                the ogive binary (default: the workspace's release build)
#   OGIVE_TORTURE        the torture binary (default: the workspace's release build)
#   OGIVE_TRANSPORT      --transport of every mount: uring or device. For uring, FUSE over io_uring
#                        must be enabled in the kernel (tests/mount/run.sh --over-uring does that,
#                        and restores it)
#   OGIVE_PASSTHROUGH    if set, every mount that can gets --passthrough: the kernel reads and
#                        writes files itself
#   OGIVE_MOUNT_COMMAND  another file system to test: COMMAND SRC MNT [OPTION...], which returns
#                        when the mount answers. It serves to test the suites
#   OGIVE_SEED           the seed of random choices of a suite and its tools (default: 1)
#   OGIVE_TEST_TOOLS     the folder of pjdfstest, fsx and test_syscalls (default: the cache that
#                        .ci/nightly fills)
#   OGIVE_TEST_DIRECTORY the parent of $WORK (default: /var/tmp). Not a tmpfs, where xattrs, sparse
#                        files and O_DIRECT differ from a disk
# shellcheck shell=bash

set -euo pipefail

HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
ROOT="$(cd "$HERE/../.." && pwd)"
TARGET="${CARGO_TARGET_DIR:-$ROOT/target}"
OGIVE="${OGIVE:-$TARGET/release/ogive}"
OGIVE_TORTURE="${OGIVE_TORTURE:-$TARGET/release/ogive-torture}"
OGIVE_TEST_TOOLS="${OGIVE_TEST_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/ogive-test-tools}"
PATH="$OGIVE_TEST_TOOLS/bin:$PATH"
# Exported for ogive-torture.
export OGIVE_SEED="${OGIVE_SEED:-1}"
# `suite` runs the script again inside the namespaces, with these arguments.
SUITE_ARGUMENTS=("$@")

# The exit code of a skipped suite.
SKIPPED=77

SUITE_NAME=''
WORK=''
LAST_OUTPUT=/dev/null
MOUNTED=()
STOPPED=''

# say TEXT...: prints a line of progress.
say() {
    printf '[%s] %s\n' "$SUITE_NAME" "$*"
}

# fail TEXT...: ends the suite as failed.
fail() {
    printf '[%s] FAILED: %s\n' "$SUITE_NAME" "$*" >&2
    exit 1
}

# skip TEXT...: ends a suite that cannot run here. It does not count as passed.
skip() {
    printf '[%s] SKIPPED: %s\n' "$SUITE_NAME" "$*"
    exit "$SKIPPED"
}

# need TOOL...: skips the suite when a program is missing.
need() {
    local tool
    for tool in "$@"; do
        command -v "$tool" >/dev/null || skip "no $tool on this machine"
    done
}

# enter_namespaces: runs the suite again inside new namespaces, unless it is already inside.
enter_namespaces() {
    local enter=(unshare --mount --propagation private --pid --fork --kill-child --mount-proc)
    [ -z "${OGIVE_SUITE_INSIDE:-}" ] || return 0
    if "${enter[@]}" true 2>/dev/null; then
        OGIVE_SUITE_INSIDE=1 exec "${enter[@]}" bash "$0" "${SUITE_ARGUMENTS[@]}"
    fi
    say 'no new namespaces here: if this suite is killed, its mounts stay'
}

# suite NAME TEXT: checks the requirements of every suite and makes $WORK.
suite() {
    SUITE_NAME="$1"
    [ "$(id -u)" -eq 0 ] || skip 'must run as root'
    [ -c /dev/fuse ] || skip 'no /dev/fuse on this machine'
    enter_namespaces
    WORK="$(mktemp -d "${OGIVE_TEST_DIRECTORY:-/var/tmp}/ogive-$1.XXXXXX")"
    # Other users must reach the mount point.
    chmod 755 "$WORK"
    LAST_OUTPUT="$WORK/last-output"
    trap cleanup EXIT
    trap 'exit 130' INT TERM
    if [ -n "${OGIVE_PASSTHROUGH:-}" ] && [ -z "${OGIVE_MOUNT_COMMAND:-}" ]; then
        over_passthrough
        say 'with --passthrough where other options allow it'
    fi
    if [ -n "${OGIVE_TRANSPORT:-}" ] && [ -z "${OGIVE_MOUNT_COMMAND:-}" ]; then
        over_transport "$OGIVE_TRANSPORT"
        say "$2 (over $OGIVE_TRANSPORT; OGIVE_SEED=$OGIVE_SEED)"
    else
        say "$2 (OGIVE_SEED=$OGIVE_SEED)"
    fi
}

# over_transport WAY: makes $OGIVE a wrapper that mounts with --transport WAY.
over_transport() {
    local program
    program="$(command -v "$OGIVE")" || skip "no $OGIVE on this machine"
    # shellcheck disable=SC2016 # the wrapper expands it
    printf '#!/bin/sh\n[ "$1" = mount ] || exec %q "$@"\nshift\n' "$program" >"$WORK/ogive"
    # shellcheck disable=SC2016 # as above
    printf 'exec %q mount --transport %q "$@"\n' "$program" "$1" >>"$WORK/ogive"
    chmod 755 "$WORK/ogive"
    OGIVE="$WORK/ogive"
}

# over_passthrough: makes $OGIVE a wrapper that mounts with --passthrough, unless an option of the
# mount excludes it.
over_passthrough() {
    local program
    program="$(command -v "$OGIVE")" || skip "no $OGIVE on this machine"
    cat >"$WORK/ogive-passthrough" <<WRAPPER
#!/usr/bin/env bash
[ "\$1" = mount ] || exec $(printf %q "$program") "\$@"
shift
for argument; do
    case "\$argument" in
        --direct-io | --l2 | --sole-writer | --no-atime | --passthrough | *://*)
            exec $(printf %q "$program") mount "\$@"
            ;;
    esac
done
exec $(printf %q "$program") mount --passthrough "\$@"
WRAPPER
    chmod 755 "$WORK/ogive-passthrough"
    OGIVE="$WORK/ogive-passthrough"
}

# Unmounts every mount of this suite and removes its files. Keeps the exit code.
cleanup() {
    local code=$? mount
    set +e
    for mount in "${MOUNTED[@]}"; do
        force_unmount "$mount"
    done
    # If a mount is left, rm would delete files through it.
    if ! grep -q " $WORK/" /proc/self/mounts; then
        rm -rf "$WORK"
    else
        printf '[%s] not removed, because a mount is left below it: %s\n' "$SUITE_NAME" "$WORK" >&2
        [ "$code" -ne 0 ] || code=1
    fi
    exit "$code"
}

# stop_process PID: stops a process and waits until all of its threads are stopped. They stop one
# after the other, and run on until then.
stop_process() {
    kill -STOP "$1"
    eventually 60 "process $1 stops" is_stopped "$1"
}

# is_stopped PID: whether all of its threads are stopped.
is_stopped() {
    ! grep -h '^State:' "/proc/$1/task/"*/status 2>/dev/null | grep -qv 'T (stopped)'
}

# continue_at_exit PID: continues a stopped process whenever the suite ends, so that no program
# waits for it.
continue_at_exit() {
    STOPPED="$1"
    trap continue_and_clean_up EXIT
}

continue_and_clean_up() {
    local code=$?
    set +e
    kill -CONT "$STOPPED" 2>/dev/null
    # shellcheck disable=SC2046 # a number each
    within_seconds 60 have_gone $(jobs -rp)
    (exit "$code")
    cleanup
}

# force_unmount DIRECTORY: unmounts a dead or live mount; lazily if it is busy.
force_unmount() {
    local try
    for try in 1 2 3; do
        is_mounted "$1" || return 0
        umount "$1" 2>/dev/null || { sleep "0.$try"; umount -l "$1" 2>/dev/null; }
    done
    is_mounted "$1" && return 1
    return 0
}

# is_mounted DIRECTORY: reads the kernel's list, which includes dead mounts.
is_mounted() {
    awk -v at="$1" '$2 == at { found = 1 } END { exit !found }' /proc/self/mounts
}

# is_not_mounted DIRECTORY: for `eventually`.
is_not_mounted() {
    ! is_mounted "$1"
}

# remember_mount DIRECTORY: unmounts it when the suite ends.
remember_mount() {
    MOUNTED=("$1" "${MOUNTED[@]}")
}

# mount_view SRC MNT [OPTION...]: mounts a view and returns when it answers.
mount_view() {
    local source="$1" mount="$2"
    shift 2
    # mkdir fails at a dead mount point, which exists already.
    is_mounted "$mount" || mkdir -p "$source" "$mount"
    remember_mount "$mount"
    if [ -n "${OGIVE_MOUNT_COMMAND:-}" ]; then
        # shellcheck disable=SC2086 # the command may have arguments
        $OGIVE_MOUNT_COMMAND "$source" "$mount" "$@"
    else
        "$OGIVE" mount "$@" "$source" "$mount"
    fi
    is_mounted "$mount" || fail "the mount command returned, but $mount is not mounted"
}

# mount_without_handles DESCRIPTORS SRC MNT [OPTION...]: mounts with this limit of file descriptors,
# and without the right to open files by handle.
mount_without_handles() {
    local descriptors="$1" source="$2" mount="$3"
    shift 3
    mkdir -p "$source" "$mount"
    remember_mount "$mount"
    (
        ulimit -n "$descriptors"
        exec setpriv --bounding-set=-dac_read_search --inh-caps=-dac_read_search \
            "$OGIVE" mount "$@" "$source" "$mount"
    )
    is_mounted "$mount" || fail "the mount command returned, but $mount is not mounted"
}

# find_connection MNT: mounts fusectl, and sets `connection` to the directory of the mount's
# connection.
find_connection() {
    if ! is_mounted "$WORK/connections"; then
        mkdir "$WORK/connections"
        mount -t fusectl fusectl "$WORK/connections" || skip 'no fusectl on this machine'
        remember_mount "$WORK/connections"
    fi
    connection="$WORK/connections/$(mountpoint -d "$1" | cut -d: -f2)"
    [ -r "$connection/waiting" ] || fail 'fusectl does not list the mount'
}

# wait_for_waiting COUNT: waits until COUNT requests wait at the mount of `find_connection`.
wait_for_waiting() {
    eventually 120 "$1 requests wait for a source that hangs" is_waiting "$1"
}

# is_waiting COUNT: whether that many requests wait.
is_waiting() {
    [ "$(cat "$connection/waiting")" -ge "$1" ]
}

# unmount_view MNT: unmounts a view; fails if it is busy.
unmount_view() {
    if [ -n "${OGIVE_MOUNT_COMMAND:-}" ]; then
        umount "$1"
    else
        "$OGIVE" unmount "$1"
    fi
    ! is_mounted "$1" || fail "$1 is still mounted after unmount"
}

# needs_ogive: skips the suite if OGIVE_MOUNT_COMMAND is set.
needs_ogive() {
    [ -z "${OGIVE_MOUNT_COMMAND:-}" ] || skip 'this suite tests features of ogive only'
}

# has_option NAME: whether `ogive mount` has an option.
has_option() {
    [ -z "${OGIVE_MOUNT_COMMAND:-}" ] && "$OGIVE" mount --help | grep -q -- "$1"
}

# daemon_of MNT: the PID of the daemon that serves a mount; empty if no daemon does.
daemon_of() {
    local process
    for process in /proc/[0-9]*; do
        # A process may end in between.
        if { tr '\0' '\n' <"$process/cmdline" | grep -qxF -- "$1"; } 2>/dev/null &&
            [ -n "$(find "$process/fd" -lname /dev/fuse -print -quit 2>/dev/null)" ]; then
            echo "${process#/proc/}"
        fi
    done | head -n 1
}

# within_seconds SECONDS COMMAND...: repeats a command until it succeeds, and returns whether it did
# in time. It runs at least once, and once more after the last second. Each run has a subshell, so
# its variables and its `fail` have no effect outside. $LAST_OUTPUT has the output of the last run.
within_seconds() {
    local end=$((SECONDS + $1))
    shift
    until ("$@") >"$LAST_OUTPUT" 2>&1; do
        if [ "$SECONDS" -gt "$end" ]; then
            ("$@") >"$LAST_OUTPUT" 2>&1
            return
        fi
        sleep 0.05
    done
}

# eventually SECONDS TEXT COMMAND...: waits until a command succeeds; otherwise the suite fails with
# the text. SECONDS is a generous bound, not a measurement.
eventually() {
    local seconds="$1" text="$2"
    shift 2
    within_seconds "$seconds" "$@" ||
        fail "not within $seconds s: $text$(tail -n 5 "$LAST_OUTPUT" | sed '1s/^/; last output: /')"
}

# has_gone PID: whether all threads of a process have ended. A zombie has ended too, but a first
# thread that is a zombie does not suffice: other threads may still have files open.
has_gone() {
    local states
    states="$(grep -h '^State:' "/proc/$1/task/"*/status 2>/dev/null)" || true
    ! grep -qv '^State:.[ZX]' <<<"${states:-State:	X}"
}

# wait_gone PID: waits until a process has ended, for a minute at most.
wait_gone() {
    within_seconds 60 has_gone "$1"
}

# wait_free DEVICE: waits until a device of the second level is unlocked. After a process ends, its
# requests of io_uring hold the lock for a moment.
wait_free() {
    eventually 60 "$1 is unlocked" flock --nonblock "$1" true
}

# end_of SECONDS TEXT PID: waits until a job of this shell has ended, and returns its exit code. If
# the job does not end, the suite fails with the text.
end_of() {
    eventually "$1" "$2" has_gone "$3"
    wait "$3" 2>/dev/null
}

# end_of_all SECONDS TEXT: waits until all jobs of this shell have ended; otherwise the suite fails.
end_of_all() {
    # shellcheck disable=SC2046 # a number each
    eventually "$1" "$2" have_gone $(jobs -rp)
    wait
}

# have_gone PID...: whether all of these processes have ended.
have_gone() {
    local pid
    for pid; do
        has_gone "$pid" || return 1
    done
}

# same_twice COMMAND...: whether a command prints the same now and a second later.
same_twice() {
    local before
    before="$("$@")"
    sleep 1
    [ "$("$@")" = "$before" ]
}

# seed_of NUMBER: the NUMBERth seed that follows from $OGIVE_SEED, from 1 on. Fits 31 bits.
seed_of() {
    echo $(((OGIVE_SEED + $1 - 1) & 0x7fffffff))
}

# expect_failure TEXT COMMAND...: the command must fail, and its output must contain TEXT.
expect_failure() {
    local text="$1" output
    shift
    if output="$("$@" 2>&1)"; then
        fail "succeeded instead of failing with '$text': $*"
    fi
    grep -qF -- "$text" <<<"$output" || fail "'$*' failed without '$text': $output"
}

# free_port: a free TCP port of loopback.
free_port() {
    python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])'
}

# fsx_configuration ALLOCATE PUNCH: writes $WORK/fsx.toml, the weights of fsx's operations. The
# arguments are the weights of posix_fallocate and of punching holes.
fsx_configuration() {
    cat >"$WORK/fsx.toml" <<EOF
flen = 1000000
[opsize]
max = 200000
[weights]
close_open = 2
invalidate = 1
mapread = 10
mapwrite = 10
read = 10
write = 10
truncate = 5
fsync = 1
fdatasync = 1
posix_fallocate = $1
punch_hole = $2
sendfile = 2
posix_fadvise = 1
copy_file_range = 4
EOF
}

# pjdfstest_configuration EXPECTED: writes $WORK/pjdfstest.toml. EXPECTED is a file with the cases
# that may fail: one name a line, with its reason after a #. pjdfstest switches to two users that
# every Debian has.
pjdfstest_configuration() {
    local expected
    expected="$(sed 's/#.*//' "$1" | awk 'NF { printf "\"%s\",", $1 }')"
    cat >"$WORK/pjdfstest.toml" <<EOF
[features]
posix_fallocate = {}
rename_ctime = {}
utime_now = {}
utimensat = {}
[settings]
naptime = 0.1
expected_failures = [$expected]
[dummy_auth]
entries = [["nobody", "nogroup"], ["daemon", "daemon"]]
EOF
}

# passed: the last line of a suite.
passed() {
    say ok
}
