#!/usr/bin/env bash
# A read-only mount refuses every change with EROFS, and the source does not change.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite readonly 'every change is refused with EROFS'
need setfattr

source="$WORK/source"
mkdir -p "$source/directory"
echo bytes >"$source/file"
ln -s file "$source/link"
find "$source" -printf '%P %s %m %T@\n' >"$WORK/before"
mount_view "$source" "$WORK/mount" --read-only
cd "$WORK/mount"
[ "$(cat file)$(readlink link)$(find . | wc -l)" = bytesfile4 ] || fail 'reading does not work'
refused='Read-only file system'
expect_failure "$refused" sh -c 'echo x >>file'
expect_failure "$refused" sh -c 'echo x >new'
expect_failure "$refused" truncate -s 1 file
expect_failure "$refused" rm -f file
expect_failure "$refused" mkdir new
expect_failure "$refused" rmdir directory
expect_failure "$refused" mv file new
expect_failure "$refused" ln file new
expect_failure "$refused" ln -s file new
expect_failure "$refused" mkfifo new
expect_failure "$refused" chmod 600 file
expect_failure "$refused" chown 1 file
expect_failure "$refused" touch file
expect_failure "$refused" setfattr -n user.a -v b file
expect_failure "$refused" fallocate -l 100000 file
cd /
find "$source" -printf '%P %s %m %T@\n' >"$WORK/after"
cmp "$WORK/before" "$WORK/after" || fail 'the source changed'
unmount_view "$WORK/mount"
passed
