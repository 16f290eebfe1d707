#!/usr/bin/env bash
# A source whose path leads elsewhere, and a source that vanishes. A write goes to the file system
# that was mounted, or it fails. A vanished source gives an error, with one message in the log,
# until the same file system is back.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite vanished 'a source that is renamed, covered, unmounted, removed, shut down, killed'
needs_ogive
need "$OGIVE" perl mkfs.ext4

view="$WORK/view"
disk="$WORK/disk"
mkdir "$view" "$disk"

# says_gone: whether the mount reports that its source has gone.
says_gone() {
    grep -q '"error"' "$view/.ogive/mount"
}

# make_image FILE TYPE: makes a file system in a file.
make_image() {
    case "$2" in
        ext4) truncate -s 16M "$1" && mkfs.ext4 -q "$1" ;;
        xfs) truncate -s 320M "$1" && mkfs.xfs -q "$1" ;;
        btrfs) truncate -s 128M "$1" && mkfs.btrfs -q "$1" >/dev/null 2>&1 ;;
    esac
}

# mount_image FILE: mounts an image at $disk.
mount_image() {
    mount -o loop "$1" "$disk"
    remember_mount "$disk"
}

# The path of the source leads elsewhere: the view keeps the mounted directory.
make_image "$WORK/image" ext4
mount_image "$WORK/image" || skip 'no loop device on this machine'
mount_view "$disk" "$view"
echo before >"$view/before"
umount -l "$disk"
echo after >"$view/after" || fail 'a write fails after a lazy unmount of the source'
sync "$view/after"
[ -z "$(ls -A "$disk")" ] || fail "the write is under the mount point: $(ls -A "$disk")"
! says_gone || fail 'a lazily unmounted source is reported as gone'
unmount_view "$view"
mount_image "$WORK/image"
[ "$(cat "$disk/before" "$disk/after")" = $'before\nafter' ] ||
    fail 'the writes are not in the image'
umount "$disk"
say 'a source that was unmounted lazily: writes go to the image'

mkdir "$WORK/source"
echo one >"$WORK/source/one"
mount_view "$WORK/source" "$view" --metadata-ttl 0 --negative-ttl 0
mv "$WORK/source" "$WORK/moved"
mkdir "$WORK/source"
echo two >"$WORK/source/two"
echo three >"$view/three"
[ "$(ls "$view")" = $'one\nthree' ] || fail "the view was switched: $(ls "$view")"
[ "$(ls "$WORK/source")" = two ] || fail 'a write went to another directory of that name'
[ "$(cat "$WORK/moved/three")" = three ] || fail 'a write is not in the renamed source'
say 'a renamed source: the view follows it'
mount -t tmpfs none "$WORK/moved"
remember_mount "$WORK/moved"
echo four >"$view/four"
[ "$(ls "$view")" = $'four\none\nthree' ] || fail "the view was covered: $(ls "$view")"
[ -z "$(ls "$WORK/moved")" ] || fail 'a write went to the mount over the source'
umount "$WORK/moved"
say 'a mount over the source: the view keeps the source below'
rm -rf "$WORK/moved"
mkdir "$WORK/moved"
expect_failure 'Input/output error' ls "$view"
expect_failure 'rror' touch "$view/new"
if [ -e "$WORK/moved/new" ] || [ -e "$WORK/source/new" ]; then
    fail 'a write went to a new directory'
fi
says_gone || fail 'a removed source is not reported as gone'
unmount_view "$view"
say 'a removed source: an error, and no other directory in its place'

# A file system that is shut down, as after an I/O error or when its disk is pulled.
for type in ext4 xfs btrfs; do
    rm -f "$WORK/image"
    if ! command -v "mkfs.$type" >/dev/null || ! make_image "$WORK/image" "$type" ||
        ! mount_image "$WORK/image" 2>/dev/null; then
        say "no $type here: its shutdown was not tested"
        continue
    fi
    mkdir "$disk/directory"
    echo kept >"$disk/directory/kept"
    sync -f "$disk/directory/kept"
    mount_view "$disk" "$view" --log-file "$WORK/log.$type" --log-format json
    [ "$(cat "$view/directory/kept")" = kept ] || fail "cannot read a view of $type"
    # EXT4_IOC_SHUTDOWN has the number of XFS_IOC_GOINGDOWN. 1: flush the log before.
    if ! perl -e 'open my $d, "<", $ARGV[0] or die; my $how = pack "L", 1;
        ioctl $d, 0x8004587d, $how or die "$!\n"' "$disk" 2>/dev/null; then
        say "$type cannot be shut down"
        unmount_view "$view"
        umount "$disk"
        continue
    fi
    expect_failure 'rror' sh -c "echo lost >'$view/directory/lost'"
    for number in $(seq 50); do
        ! { echo lost >"$view/directory/lost.$number"; } 2>/dev/null || fail 'a write was accepted'
    done
    eventually 60 "$type that was shut down is reported as gone" says_gone
    timeout 60 "$OGIVE" stat "$view" 2>&1 | grep -q 'source.*has gone' ||
        fail 'stat does not report it'
    [ "$(grep -c 'has gone' "$WORK/log.$type")" -eq 1 ] ||
        fail "not logged once: $(cat "$WORK/log.$type")"
    # The view does not keep it busy.
    eventually 60 "$type that has gone can be unmounted" umount "$disk"
    expect_failure 'rror' touch "$view/under"
    [ -z "$(ls -A "$disk")" ] || fail 'a write is under the mount point'
    # Another file system at the same path, even a similar one, is not accepted.
    make_image "$WORK/other" "$type" && mount_image "$WORK/other"
    sleep 1.2
    expect_failure 'rror' touch "$view/other"
    [ ! -e "$disk/other" ] || fail 'a write went to another file system'
    says_gone || fail 'another file system was accepted as the source'
    umount "$disk"
    rm "$WORK/other"
    # The same file system is accepted.
    mount_image "$WORK/image"
    eventually 60 "$type comes back" sh -c "echo back >'$view/directory/back'"
    [ "$(cat "$disk/directory/back")" = back ] || fail 'a write is not in the source that is back'
    [ "$(cat "$view/directory/kept")" = kept ] || fail 'cannot read the source that is back'
    ! says_gone || fail 'a source that is back is reported as gone'
    [ "$(grep -c 'is back after' "$WORK/log.$type")" -eq 1 ] || fail 'its return is not logged'
    # The JSON lines have members: event, level, and numbers as numbers.
    grep 'has gone' "$WORK/log.$type" | grep '"event":"source_gone"' | grep '"level":"error"' |
        grep -q '"errno":[1-9]' || fail "the loss has no members: $(cat "$WORK/log.$type")"
    grep 'is back' "$WORK/log.$type" | grep '"event":"source_back"' | grep '"level":"notice"' |
        grep -q '"losses":1' || fail "the return has no members: $(cat "$WORK/log.$type")"
    unmount_view "$view"
    umount "$disk"
    say "$type that was shut down: one error in the log; it can be unmounted, and comes back"
done

# A server that is killed, another one in its place, and the same one again.
if command -v bindfs >/dev/null; then
    mkdir "$WORK/remote" "$WORK/foreign" "$WORK/served"
    echo here >"$WORK/remote/file"
    serve() {
        bindfs -f "$1" "$WORK/served" &
        server=$!
        remember_mount "$WORK/served"
        eventually 60 'a mount of bindfs' is_mounted "$WORK/served"
    }
    serve "$WORK/remote"
    mount_view "$WORK/served" "$view" --log-file "$WORK/log.served"
    [ "$(cat "$view/file")" = here ] || fail 'cannot read before the server dies'
    kill -9 "$server"
    end_of 60 'the end of bindfs' "$server" || true
    for number in $(seq 20); do
        expect_failure 'Input/output error' timeout 60 touch "$view/lost.$number"
    done
    says_gone || fail 'a source with a dead server is not reported as gone'
    umount -l "$WORK/served"
    expect_failure 'Input/output error' timeout 60 touch "$view/under"
    serve "$WORK/foreign"
    sleep 1.2
    expect_failure 'Input/output error' timeout 60 touch "$view/foreign"
    [ -z "$(ls -A "$WORK/foreign")" ] || fail 'a write went to another server'
    umount "$WORK/served"
    end_of 60 'the end of bindfs' "$server" || true
    serve "$WORK/remote"
    eventually 60 'the same source is accepted again' sh -c "echo back >'$view/back'"
    [ "$(cat "$WORK/remote/back")" = back ] || fail 'a write is not in the source that is back'
    [ "$(grep -c 'has gone' "$WORK/log.served")" -eq 1 ] || fail 'not logged once'
    unmount_view "$view"
    umount "$WORK/served"
    end_of 60 'the end of bindfs' "$server" || true
    say 'a killed server: an error until the same source is back'
else
    say 'no bindfs: a killed server was not tested'
fi
passed
