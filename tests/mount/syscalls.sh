#!/usr/bin/env bash
# libfuse's test_syscalls: the result of each system call on files, in the mount and in the source.
# It runs as root and as a user, also on unlinked files.
#
# Environment:
#   LIBFUSE_DIR  a tree of libfuse's sources (without it test_syscalls must be in $PATH, where
#                .ci/nightly builds it)
# shellcheck source=tests/mount/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite syscalls "the calls of libfuse's test_syscalls, compared with the source"
need setpriv
program="$(command -v test_syscalls || true)"
if [ -n "${LIBFUSE_DIR:-}" ]; then
    need cc
    # meson would generate this file.
    touch "$WORK/fuse_config.h"
    cc -w -DHAVE_COPY_FILE_RANGE -DHAVE_STATX -D_FILE_OFFSET_BITS=64 -I "$WORK" \
        -o "$WORK/test_syscalls" "$LIBFUSE_DIR/test/test_syscalls.c" || fail 'test_syscalls.c'
    program="$WORK/test_syscalls"
fi
[ -n "$program" ] || skip 'no test_syscalls on this machine, and no LIBFUSE_DIR to build it from'

# call_all NAME USER ARGUMENT...: runs all tests as a user, in a directory of that user.
call_all() {
    local name="$1" user="$2" code=0 cases
    shift 2
    # The program leaves two files behind, on any file system.
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
    # Fewer tests mean another version of the program.
    [ "$cases" -ge 55 ] || fail "$name as $user: only $cases tests"
    say "$name as $user${1:+, ${1/#:*/next to the source}}: $cases tests"
}

mount_view "$WORK/default-source" "$WORK/default" --allow-other
mount_view "$WORK/direct-source" "$WORK/direct" --allow-other --direct-io
for mode in default direct; do
    for user in root nobody; do
        call_all "$mode" "$user"
        call_all "$mode" "$user" -u
    done
    unmount_view "$WORK/$mode"
done

# Here the program also creates files in the source and looks them up at once, so TTLs must be 0.
mount_view "$WORK/uncached-source" "$WORK/uncached" --allow-other \
    --metadata-ttl 0s --negative-ttl 0s
for user in root nobody; do
    call_all uncached "$user" ":$WORK/uncached-source/$user"
done
unmount_view "$WORK/uncached"
passed
