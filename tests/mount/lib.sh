# Shared by the mount suites: a view of a directory that is mounted before a suite and always removed
# after it. Sourced, never run.
#
# A suite starts with
#     source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
#     suite NAME "what it does"
# and ends with `passed`. All files of a suite are below $WORK, which is removed at the end.
#
# From `suite` on it runs in its own mount and process name spaces, without the mounts and processes
# of others. They end with their first process, so even a killed suite leaves no process and no mount.
# Its process number is always 1 there, so names that the machine shares are made of $WORK.
#
# No wait is for a time: `eventually` waits for a condition, for at most a minute, which no working
# program needs, and fails with its name.
#
# Environment:
#   OGIVE                the ogive binary (default: the workspace's release build)
#   OGIVE_TORTURE        the torture binary (default: the workspace's release build)
#   OGIVE_TRANSPORT      the transport of every mount of a suite (ogive mount --transport): uring,
#                        for which root may have to switch FUSE over io_uring on
#                        (tests/mount/run.sh --over-uring does and undoes it), or device
#   OGIVE_PASSTHROUGH    not empty: every mount that can lets the kernel read and write files itself
#                        (ogive mount --passthrough)
#   OGIVE_MOUNT_COMMAND  another file system to test instead, called as COMMAND SRC MNT [OPTION...];
#                        it returns when the mount answers (this is how the suites are tested)
#   OGIVE_SEED           the seed of the random decisions of a suite (default: 1)
#   OGIVE_TEST_TOOLS     the folder of pjdfstest, fsx and test_syscalls (default: the cache that
#                        .ci/nightly fills)
#   OGIVE_TEST_DIRECTORY the working directory of suites (default: /var/tmp; not a tmpfs, where
#                        xattrs, sparse files and O_DIRECT differ from a disk)
# shellcheck shell=bash

set -euo pipefail

HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
ROOT="$(cd "$HERE/../.." && pwd)"
TARGET="${CARGO_TARGET_DIR:-$ROOT/target}"
OGIVE="${OGIVE:-$TARGET/release/ogive}"
OGIVE_TORTURE="${OGIVE_TORTURE:-$TARGET/release/ogive-torture}"
OGIVE_TEST_TOOLS="${OGIVE_TEST_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/ogive-test-tools}"
PATH="$OGIVE_TEST_TOOLS/bin:$PATH"
# Exported, because ogive-torture takes it from the environment.
export OGIVE_SEED="${OGIVE_SEED:-1}"
# The arguments of the suite, which is called again inside its name spaces.
SUITE_ARGUMENTS=("$@")

# Exit codes of a suite.
SKIPPED=77

SUITE_NAME=''
WORK=''
ASKED=/dev/null
MOUNTED=()
STOPPED=''

# say TEXT...: one line about the suite's work.
say() {
    printf '[%s] %s\n' "$SUITE_NAME" "$*"
}

# fail TEXT...: the suite ends here and has failed.
fail() {
    printf '[%s] FAILED: %s\n' "$SUITE_NAME" "$*" >&2
    exit 1
}

# skip TEXT...: the suite cannot run here; never counted as passed.
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

# enter_name_spaces: starts the suite again in its own name spaces, unless it is in them already.
enter_name_spaces() {
    local enter=(unshare --mount --propagation private --pid --fork --kill-child --mount-proc)
    [ -z "${OGIVE_SUITE_INSIDE:-}" ] || return 0
    if "${enter[@]}" true 2>/dev/null; then
        OGIVE_SUITE_INSIDE=1 exec "${enter[@]}" bash "$0" "${SUITE_ARGUMENTS[@]}"
    fi
    say 'no name spaces of its own are to be had here: killed, it would leave its mounts'
}

# suite NAME TEXT: checks the requirements of every suite and makes $WORK.
suite() {
    SUITE_NAME="$1"
    [ "$(id -u)" -eq 0 ] || skip 'must run as root'
    [ -c /dev/fuse ] || skip 'no /dev/fuse on this machine'
    enter_name_spaces
    WORK="$(mktemp -d "${OGIVE_TEST_DIRECTORY:-/var/tmp}/ogive-$1.XXXXXX")"
    # Other users must be able to reach the mount point.
    chmod 755 "$WORK"
    ASKED="$WORK/asked-last"
    trap cleanup EXIT
    trap 'exit 130' INT TERM
    if [ -n "${OGIVE_PASSTHROUGH:-}" ] && [ -z "${OGIVE_MOUNT_COMMAND:-}" ]; then
        over_passthrough
        say 'with --passthrough where it can be'
    fi
    if [ -n "${OGIVE_TRANSPORT:-}" ] && [ -z "${OGIVE_MOUNT_COMMAND:-}" ]; then
        over_transport "$OGIVE_TRANSPORT"
        say "$2 (over $OGIVE_TRANSPORT; OGIVE_SEED=$OGIVE_SEED)"
    else
        say "$2 (OGIVE_SEED=$OGIVE_SEED)"
    fi
}

# over_transport WAY: from here on every call of $OGIVE mounts with --transport WAY.
over_transport() {
    local program
    program="$(command -v "$OGIVE")" || skip "no $OGIVE on this machine"
    # shellcheck disable=SC2016 # the shell that runs the script is to expand it
    printf '#!/bin/sh\n[ "$1" = mount ] || exec %q "$@"\nshift\n' "$program" >"$WORK/ogive"
    # shellcheck disable=SC2016 # as above
    printf 'exec %q mount --transport %q "$@"\n' "$program" "$1" >>"$WORK/ogive"
    chmod 755 "$WORK/ogive"
    OGIVE="$WORK/ogive"
}

# over_passthrough: from here on $OGIVE mounts with --passthrough, unless other options exclude it.
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

# Ends every mount of this suite and removes its files. The exit code stays what it was.
cleanup() {
    local code=$? mount
    set +e
    for mount in "${MOUNTED[@]}"; do
        unmount_at_any_price "$mount"
    done
    # If a mount is left, its contents must not be removed through it.
    if ! grep -q " $WORK/" /proc/self/mounts; then
        rm -rf "$WORK"
    else
        printf '[%s] still mounted below %s, left there\n' "$SUITE_NAME" "$WORK" >&2
        [ "$code" -ne 0 ] || code=1
    fi
    exit "$code"
}

# stop_process PID: stops a process; all of its threads are stopped when this returns. The signal
# alone is not enough: one thread takes it and stops the others, which go on until then.
stop_process() {
    kill -STOP "$1"
    eventually 60 "process $1 stops" is_stopped "$1"
}

# is_stopped PID: whether all of its threads are.
is_stopped() {
    ! grep -h '^State:' "/proc/$1/task/"*/status 2>/dev/null | grep -qv 'T (stopped)'
}

# continue_at_exit PID: continues a stopped process at every end of the suite, so that no program is
# left waiting for it.
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

# unmount_at_any_price DIRECTORY: unmounts what is mounted there, dead or alive.
unmount_at_any_price() {
    local try
    for try in 1 2 3; do
        is_mounted "$1" || return 0
        umount "$1" 2>/dev/null || { sleep "0.$try"; umount -l "$1" 2>/dev/null; }
    done
    is_mounted "$1" && return 1
    return 0
}

# is_mounted DIRECTORY: asks the kernel's list, which answers for dead mounts too.
is_mounted() {
    awk -v at="$1" '$2 == at { found = 1 } END { exit !found }' /proc/self/mounts
}

# is_not_mounted DIRECTORY: for `eventually`.
is_not_mounted() {
    ! is_mounted "$1"
}

# remember_mount DIRECTORY: unmount it when the suite ends.
remember_mount() {
    MOUNTED=("$1" "${MOUNTED[@]}")
}

# mount_view SRC MNT [OPTION...]: mounts a view and returns when it answers.
mount_view() {
    local source="$1" mount="$2"
    shift 2
    # A dead mount point cannot be examined, and need not be created.
    is_mounted "$mount" || mkdir -p "$source" "$mount"
    remember_mount "$mount"
    if [ -n "${OGIVE_MOUNT_COMMAND:-}" ]; then
        # shellcheck disable=SC2086 # the command may have arguments of its own
        $OGIVE_MOUNT_COMMAND "$source" "$mount" "$@"
    else
        "$OGIVE" mount "$@" "$source" "$mount"
    fi
    is_mounted "$mount" || fail "the mount command returned, but $mount is not mounted"
}

# unmount_view MNT: the clean way.
unmount_view() {
    if [ -n "${OGIVE_MOUNT_COMMAND:-}" ]; then
        umount "$1"
    else
        "$OGIVE" unmount "$1"
    fi
    ! is_mounted "$1" || fail "$1 is still mounted after unmount"
}

# needs_ogive: skips the suite when another file system is tested.
needs_ogive() {
    [ -z "${OGIVE_MOUNT_COMMAND:-}" ] || skip 'tests what only ogive has'
}

# has_option NAME: whether this ogive mounts with an option.
has_option() {
    [ -z "${OGIVE_MOUNT_COMMAND:-}" ] && "$OGIVE" mount --help | grep -q -- "$1"
}

# daemon_of MNT: the process id of the daemon that serves a mount, empty when there is none.
daemon_of() {
    local process
    for process in /proc/[0-9]*; do
        # A process may end meanwhile.
        if { tr '\0' '\n' <"$process/cmdline" | grep -qxF -- "$1"; } 2>/dev/null &&
            [ -n "$(find "$process/fd" -lname /dev/fuse -print -quit 2>/dev/null)" ]; then
            echo "${process#/proc/}"
        fi
    done | head -n 1
}

# within_seconds SECONDS COMMAND...: repeats a command until it succeeds; whether it does within so
# many seconds. It runs at least once, and once more when the time is over. Each run has its own
# shell, so it sets no variables here and cannot fail the suite. $ASKED has its last output.
within_seconds() {
    local end=$((SECONDS + $1))
    shift
    until ("$@") >"$ASKED" 2>&1; do
        if [ "$SECONDS" -gt "$end" ]; then
            ("$@") >"$ASKED" 2>&1
            return
        fi
        sleep 0.05
    done
}

# eventually SECONDS TEXT COMMAND...: waits until a command succeeds; the suite fails with the text
# if it does not. The seconds are more than any working program needs, not a measure of it.
eventually() {
    local seconds="$1" text="$2"
    shift 2
    within_seconds "$seconds" "$@" ||
        fail "never came, in $seconds s: $text$(tail -n 5 "$ASKED" | sed '1s/^/; at last: /')"
}

# has_gone PID: whether all threads of a process have ended. The first one alone proves nothing: it
# may be a zombie while others still have files open. (A zombie has ended, and its parent has not
# waited for it yet.)
has_gone() {
    local states
    states="$(grep -h '^State:' "/proc/$1/task/"*/status 2>/dev/null)" || true
    ! grep -qv '^State:.[ZX]' <<<"${states:-State:	X}"
}

# wait_gone PID: waits up to a minute until a process has ended.
wait_gone() {
    within_seconds 60 has_gone "$1"
}

# wait_free DEVICE: waits until no process has a device of the second level locked. Pending I/O over
# io_uring holds the lock for a moment after the end of a process.
wait_free() {
    eventually 60 "$1 is let go of" flock --nonblock "$1" true
}

# end_of SECONDS TEXT PID: waits until a job of this shell has ended; the suite fails with the text
# if it does not. Its exit code is the job's; a kill is not reported.
end_of() {
    eventually "$1" "$2" has_gone "$3"
    wait "$3" 2>/dev/null
}

# end_of_all SECONDS TEXT: waits until all jobs of this shell have ended, as `end_of` does for one.
end_of_all() {
    # shellcheck disable=SC2046 # a number each
    eventually "$1" "$2" have_gone $(jobs -rp)
    wait
}

# have_gone PID...: whether all of them have.
have_gone() {
    local pid
    for pid; do
        has_gone "$pid" || return 1
    done
}

# same_twice COMMAND...: whether a command prints the same now and in a second, because its subject
# is at rest.
same_twice() {
    local before
    before="$("$@")"
    sleep 1
    [ "$("$@")" = "$before" ]
}

# seed_of NUMBER: the seed of this run with that number, from 1 on; small enough for every program.
seed_of() {
    echo $(((OGIVE_SEED + $1 - 1) & 0x7fffffff))
}

# expect_failure TEXT COMMAND...: the command must fail and say TEXT.
expect_failure() {
    local text="$1" output
    shift
    if output="$("$@" 2>&1)"; then
        fail "succeeded, but should have failed with '$text': $*"
    fi
    grep -qF -- "$text" <<<"$output" || fail "'$*' failed without '$text': $output"
}

# free_port: a port without a listener.
free_port() {
    python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])'
}

# fsx_configuration RESERVE PUNCH: writes the weights of fsx's operations to $WORK/fsx.toml; the
# arguments are those of reserving space and of punching holes.
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

# pjdfstest_configuration EXPECTED: writes $WORK/pjdfstest.toml. EXPECTED is a file of the cases that
# should fail: one name a line, with its reason after a #. The suite switches to two users that every
# Debian has.
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
