#!/usr/bin/env bash
# test_syscalls of libfuse: the results of each system call on files, through the mount and in the
# source of the same files, for root and for a user, also with files that have lost their last name.
#
# Environment:
#   LIBFUSE_DIR  a tree of libfuse's sources (without it test_syscalls must be in $PATH, where
#                .ci/nightly builds it)
# shellcheck source=tests/mount/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite syscalls 'the calls of test_syscalls of libfuse, compared with the source'
need setpriv
program="$(command -v test_syscalls || true)"
if [ -n "${LIBFUSE_DIR:-}" ]; then
    need cc
    # The results of meson's checks.
    touch "$WORK/fuse_config.h"
    cc -w -DHAVE_COPY_FILE_RANGE -DHAVE_STATX -D_FILE_OFFSET_BITS=64 -I "$WORK" \
        -o "$WORK/test_syscalls" "$LIBFUSE_DIR/test/test_syscalls.c" || fail 'test_syscalls.c'
    program="$WORK/test_syscalls"
fi
[ -n "$program" ] || skip 'no test_syscalls on this machine, and no LIBFUSE_DIR to build it from'

# call_all NAME USER ARGUMENT...: all tests, as a user, in a directory of that user.
call_all() {
    local name="$1" user="$2" code=0 cases
    shift 2
    # The program leaves two files of its own behind, on any file system.
    rm -rf "${WORK:?}/$name/$user"
    mkdir "$WORK/$name/$user"
    chown "$user:" "$WORK/$name/$user"
    (cd / && timeout 200 setpriv --reuid "$user" --regid "$(id -g "$user")" --clear-groups -- \
        "$program" "$WORK/$name/$user" "$@" >"$WORK/log" 2>&1) || code=$?
    cases="$(grep -c 'OK$' "$WORK/log" || true)"
    [ "$code" -eq 0 ] || {
        grep -v -e 'OK$' -e 'START$' "$WORK/log" | tail -n 20
        fail "$name as $user: test_syscalls $* ended with $code"
    }
    # Fewer tests would mean another program.
    [ "$cases" -ge 55 ] || fail "$name as $user: only $cases tests"
    say "$name as $user${1:+, ${1/#:*/beside the source}}: $cases tests"
}

mount_view "$WORK/believing-source" "$WORK/believing" --allow-other
mount_view "$WORK/direct-source" "$WORK/direct" --allow-other --direct-io
for mode in believing direct; do
    for user in root nobody; do
        call_all "$mode" "$user"
        call_all "$mode" "$user" -u
    done
    unmount_view "$WORK/$mode"
done

# The program makes files in the source and looks at once for names that were missing, so nothing may
# be cached.
mount_view "$WORK/asking-source" "$WORK/asking" --allow-other --metadata-ttl 0s --negative-ttl 0s
for user in root nobody; do
    call_all asking "$user" ":$WORK/asking-source/$user"
done
unmount_view "$WORK/asking"
passed
