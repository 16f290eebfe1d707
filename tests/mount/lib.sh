# Common ground of the mount suites: a view of a directory that is mounted before a suite and gone
# after it, whatever happens in between. Sourced, never run.
#
# A suite starts with
#     source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
#     suite NAME "what it does"
# and ends with `passed`. Everything a suite makes lives below $WORK, which is removed at the end.
#
# Environment:
#   OGIVE                the ogive binary (default: the workspace's release build)
#   OGIVE_TORTURE        the torture binary (default: the workspace's release build)
#   OGIVE_TRANSPORT      how requests come to every mount of a suite (ogive mount --transport):
#                        uring, for which root may have to switch FUSE over io_uring on
#                        (tests/mount/run.sh --over-uring does it and undoes it), or device
#   OGIVE_PASSTHROUGH    not empty: every mount that can lets the kernel read and write files itself
#                        (ogive mount --passthrough)
#   OGIVE_MOUNT_COMMAND  another file system to test instead, called as COMMAND SRC MNT [OPTION...];
#                        it returns when the mount answers (this is how the suites are tested)
#   OGIVE_TEST_TOOLS     where pjdfstest, fsx and test_syscalls live (default: the cache that
#                        .ci/nightly fills)
#   OGIVE_TEST_DIRECTORY where suites work (default: /var/tmp; must not be a tmpfs for xattrs,
#                        sparse files and O_DIRECT to mean what they mean on a disk)
# shellcheck shell=bash

set -euo pipefail

HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
ROOT="$(cd "$HERE/../.." && pwd)"
TARGET="${CARGO_TARGET_DIR:-$ROOT/target}"
OGIVE="${OGIVE:-$TARGET/release/ogive}"
OGIVE_TORTURE="${OGIVE_TORTURE:-$TARGET/release/ogive-torture}"
OGIVE_TEST_TOOLS="${OGIVE_TEST_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/ogive-test-tools}"
PATH="$OGIVE_TEST_TOOLS/bin:$PATH"

# Exit codes of a suite.
SKIPPED=77

SUITE_NAME=''
WORK=''
MOUNTED=()
STOPPED=''

# say TEXT...: one line of what the suite does.
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

# suite NAME TEXT: checks what every suite needs and makes $WORK.
suite() {
    SUITE_NAME="$1"
    [ "$(id -u)" -eq 0 ] || skip 'must run as root'
    [ -c /dev/fuse ] || skip 'no /dev/fuse on this machine'
    WORK="$(mktemp -d "${OGIVE_TEST_DIRECTORY:-/var/tmp}/ogive-$1.XXXXXX")"
    # Other users must be able to come to the mount point.
    chmod 755 "$WORK"
    trap cleanup EXIT
    trap 'exit 130' INT TERM
    if [ -n "${OGIVE_PASSTHROUGH:-}" ] && [ -z "${OGIVE_MOUNT_COMMAND:-}" ]; then
        over_passthrough
        say 'with --passthrough where it can be'
    fi
    if [ -n "${OGIVE_TRANSPORT:-}" ] && [ -z "${OGIVE_MOUNT_COMMAND:-}" ]; then
        over_transport "$OGIVE_TRANSPORT"
        say "$2 (over $OGIVE_TRANSPORT)"
    else
        say "$2"
    fi
}

# over_transport WAY: from here on $OGIVE mounts with --transport WAY, whoever calls it how.
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

# over_passthrough: from here on $OGIVE mounts with --passthrough, but for what cannot go with it.
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
    # A mount that somehow stayed must not have its contents removed through it.
    if ! grep -q " $WORK/" /proc/self/mounts; then
        rm -rf "$WORK"
    else
        printf '[%s] still mounted below %s, left there\n' "$SUITE_NAME" "$WORK" >&2
        [ "$code" -ne 0 ] || code=1
    fi
    exit "$code"
}

# stop_process PID: stops a process, all of its threads, when this returns. The signal alone is not
# enough: whichever thread takes it stops the others, and until then they go on.
stop_process() {
    kill -STOP "$1"
    while grep -h '^State:' "/proc/$1/task/"*/status 2>/dev/null | grep -qv 'T (stopped)'; do
        sleep 0.01
    done
}

# continue_at_exit PID: a process that a suite stops goes on when the suite ends, however it ends,
# so that nobody is left waiting for it.
continue_at_exit() {
    STOPPED="$1"
    trap continue_and_clean_up EXIT
}

continue_and_clean_up() {
    local code=$?
    kill -CONT "$STOPPED" 2>/dev/null
    wait
    set +e
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

# remember_mount DIRECTORY: unmount it when the suite ends.
remember_mount() {
    MOUNTED=("$1" "${MOUNTED[@]}")
}

# mount_view SRC MNT [OPTION...]: mounts a view and returns when it answers.
mount_view() {
    local source="$1" mount="$2"
    shift 2
    # A dead mount point cannot be looked at, and need not be made.
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
        # A process may end while it is looked at.
        if { tr '\0' '\n' <"$process/cmdline" | grep -qxF -- "$1"; } 2>/dev/null &&
            [ -n "$(find "$process/fd" -lname /dev/fuse -print -quit 2>/dev/null)" ]; then
            echo "${process#/proc/}"
        fi
    done | head -n 1
}

# wait_gone PID: waits up to 10 s until a process has ended.
wait_gone() {
    local _
    for _ in $(seq 100); do
        [ -d "/proc/$1" ] || return 0
        # A zombie has ended; who started it has not looked yet.
        grep -q '^State:.Z' "/proc/$1/status" 2>/dev/null && return 0
        sleep 0.1
    done
    return 1
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

# free_port: a port that nobody listens on.
free_port() {
    python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])'
}

# fsx_configuration RESERVE PUNCH: how often fsx does what, in $WORK/fsx.toml; the arguments are the
# weights of reserving room and of punching holes.
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

# pjdfstest_configuration EXPECTED: what pjdfstest asks for, in $WORK/pjdfstest.toml. EXPECTED is a
# file of the cases that are expected to fail: one name a line, with its reason after a #. The suite
# switches to two users that every Debian has.
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
naptime = 0.02
expected_failures = [$expected]
[dummy_auth]
entries = [["nobody", "nogroup"], ["daemon", "daemon"]]
EOF
}

# passed: the last line of a suite.
passed() {
    say ok
}
