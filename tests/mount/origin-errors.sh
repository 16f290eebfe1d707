#!/usr/bin/env bash
# The view passes errors of the source on unchanged. A source that vanished gives EIO until it is
# back.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite origin-errors 'no space, no quota, a source that vanishes and returns'
need mkfs.ext4 setfattr

# A source of 16 MiB on a loop device: it fills up.
truncate -s 16M "$WORK/image"
mkfs.ext4 -q "$WORK/image"
mkdir "$WORK/disk"
mount -o loop "$WORK/image" "$WORK/disk" || skip 'no loop device on this machine'
remember_mount "$WORK/disk"
mkdir "$WORK/disk/source"
chmod 777 "$WORK/disk/source"
mount_view "$WORK/disk/source" "$WORK/mount" --allow-other
echo kept >"$WORK/mount/kept"

expect_failure 'No space left on device' dd if=/dev/zero of="$WORK/mount/big" bs=64k count=1000
expect_failure 'No space left on device' fallocate -l 100M "$WORK/mount/allocated"
cmp "$WORK/mount/big" "$WORK/disk/source/big" || fail 'the bytes before ENOSPC differ'
rm -f "$WORK/mount/big" "$WORK/mount/allocated"
# The kernel sends RELEASE and FORGET after close(2) has returned, so the space is free a bit later.
written=''
for ((try = 0; try < 100; try++)); do
    if { echo again >"$WORK/mount/again"; } 2>/dev/null; then
        written=yes
        break
    fi
    sleep 0.1
done
[ -n "$written" ] || fail 'freed space is not usable'
say 'no space left on device, and usable again'

expect_failure 'No space left on device' setfattr -n user.large -v "$(printf '%060000d' 0)" \
    "$WORK/mount/kept"
expect_failure 'File name too long' touch "$WORK/mount/$(printf '%0256d' 0)"
[ "$(stat -f -c '%b %S' "$WORK/mount")" = "$(stat -f -c '%b %S' "$WORK/disk")" ] ||
    fail 'statfs describes another file system'

# The source's file system becomes read-only, as after a disk error.
mount -o remount,ro "$WORK/disk"
expect_failure 'Read-only file system' sh -c "echo x >'$WORK/mount/new'"
[ "$(cat "$WORK/mount/kept")" = kept ] || fail 'a read-only source cannot be read'
mount -o remount,rw "$WORK/disk"
echo new >"$WORK/mount/new" || fail 'writing did not heal'
say 'a source that became read-only, and writable again'
unmount_view "$WORK/mount"
umount "$WORK/disk"

# A second disk with quota, if kernel and tools support it.
truncate -s 16M "$WORK/quota-image"
mkdir "$WORK/quota"
if command -v setquota >/dev/null && mkfs.ext4 -q -O quota "$WORK/quota-image" &&
    mount -o loop,usrquota "$WORK/quota-image" "$WORK/quota" 2>/dev/null; then
    remember_mount "$WORK/quota"
    mkdir -m 777 "$WORK/quota/source"
    setquota -u nobody 64 64 0 0 "$WORK/quota"
    mount_view "$WORK/quota/source" "$WORK/limited" --allow-other
    expect_failure 'Disk quota exceeded' runuser -u nobody -- \
        dd if=/dev/zero of="$WORK/limited/over" bs=64k count=20
    unmount_view "$WORK/limited"
    umount "$WORK/quota"
    say 'disk quota exceeded'
else
    say 'no quota in this kernel or no quota tools: quota was not tested'
fi

# The source vanishes, as a network file system does: it is a FUSE mount whose server dies, and all
# descriptors into it fail. A new server mounts it again at the same path.
if ! command -v bindfs >/dev/null; then
    say 'no bindfs: a source that vanishes was not tested'
    passed
    exit 0
fi
mkdir -p "$WORK/remote/directory" "$WORK/source"
echo here >"$WORK/remote/directory/file"
head -c 300000 /dev/urandom >"$WORK/remote/large"
# In the foreground, to have its PID.
bindfs -f "$WORK/remote" "$WORK/source" &
server=$!
remember_mount "$WORK/source"
eventually 60 'a mount of bindfs' is_mounted "$WORK/source"
mount_view "$WORK/source" "$WORK/lost"
[ "$(cat "$WORK/lost/directory/file")" = here ] || fail 'cannot read before the source vanishes'
kill -9 "$server"
wait "$server" 2>/dev/null || true
# Cached bytes may still be served. Requests to the source fail with EIO and do not hang.
for path in "directory/never asked before" large; do
    code=0
    timeout 60 cat "$WORK/lost/$path" >/dev/null 2>"$WORK/message" || code=$?
    [ "$code" -ne 124 ] || fail 'a program hangs after the source vanished'
    [ "$code" -ne 0 ] || fail "a read of '$path' succeeded after the source vanished"
    grep -q 'Input/output error' "$WORK/message" || fail "not EIO: $(cat "$WORK/message")"
done
is_mounted "$WORK/lost" || fail 'the mount ended with its source'
say 'a vanished source gives EIO at once'
umount -l "$WORK/source"
echo back >"$WORK/remote/directory/file"
bindfs "$WORK/remote" "$WORK/source"
has_healed() {
    [ "$(timeout 60 cat "$WORK/lost/directory/file")" = back ]
}
within_seconds 60 has_healed ||
    fail "did not heal: $(timeout 60 cat "$WORK/lost/directory/file" 2>&1 || true)"
cmp "$WORK/lost/large" "$WORK/remote/large" || fail 'wrong bytes after the source returned'
echo new >"$WORK/lost/new"
[ "$(cat "$WORK/remote/new")" = new ] || fail 'writing did not heal'
unmount_view "$WORK/lost"
say 'it heals when the source returns'
passed
