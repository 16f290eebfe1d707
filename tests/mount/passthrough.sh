#!/usr/bin/env bash
# With --passthrough, the kernel reads and writes files itself. The bytes are the source's and never
# come to ogive. All opens of a file go the same way, passthrough or cache. Writes clear set-ID
# bits. If passthrough is impossible, the mount uses the cache and counts that.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite passthrough 'files that the kernel reads and writes itself'
needs_ogive
need "$OGIVE" perl setpriv
has_option --passthrough || skip 'this ogive has no --passthrough'

source="$WORK/source"
view="$WORK/view"

# count NAME: a counter of the mount.
count() {
    awk -v name="$1" '$1 == name { print $3 }' "$view/.ogive/ogivestats"
}

# goes_to_kernel COMMAND...: the command must succeed without read or write requests to ogive.
goes_to_kernel() {
    local reads writes
    reads="$(count read_requests)"
    writes="$(count write_requests)"
    "$@" || fail "failed: $*"
    [ "$(count read_requests) $(count write_requests)" = "$reads $writes" ] ||
        fail "ogive got requests for bytes: $*"
}

mkdir -p "$source"
mount_view "$source" "$view" --passthrough --allow-other --suid --log-file "$WORK/log"
grep -q '"passthrough": true' "$view/.ogive/mount" || {
    grep -q 'CONFIG_FUSE_PASSTHROUGH' "$WORK/log" || fail 'no message that the kernel cannot do it'
    skip 'this kernel has no FUSE passthrough'
}

# Bytes, by every kind of access.
head -c 3000000 /dev/urandom >"$source/data"
goes_to_kernel cmp "$source/data" "$view/data"
goes_to_kernel cp "$source/data" "$view/copy"
cmp "$source/data" "$source/copy" || fail 'the written bytes are not in the source'
goes_to_kernel dd if="$view/data" of="$WORK/direct" bs=64k iflag=direct status=none
cmp "$WORK/direct" "$source/data" || fail 'a direct read gives other bytes'
goes_to_kernel sh -c "printf end >>'$view/copy'"
[ "$(stat -c %s "$view/copy")" -eq 3000003 ] || fail 'the size after appending'
[ "$(tail -c 3 "$source/copy")" = end ] || fail 'not appended'
truncate -s 100 "$view/copy"
[ "$(stat -c %s "$source/copy")" -eq 100 ] || fail 'not truncated'
# shellcheck disable=SC2016 # variables of Perl
goes_to_kernel perl -e 'open my $f, "+<", $ARGV[0] or die; unlink $ARGV[0] or die;
    syswrite $f, "gone" or die; sysseek $f, 0, 0; sysread $f, my $b, 4; $b eq "gone" or die' \
    "$view/copy"
[ ! -e "$source/copy" ] || fail 'not removed'
# A change behind the mount is visible at once, also in an open file.
exec 8<"$view/data"
printf changed | dd of="$source/data" conv=notrunc status=none
[ "$(head -c 7 <&8)" = changed ] || fail 'a change behind the mount is not visible'
exec 8<&-
[ "$(count passthrough_opens)" -gt 3 ] || fail 'opens are not counted'
[ "$(count passthrough_refused)" -eq 0 ] || fail 'refused without a reason'
say 'reads and writes do not come to ogive'

# A mapping still works after its file is closed.
cat >"$WORK/map.py" <<'MAP'
import mmap, os, sys
descriptor = os.open(sys.argv[1], os.O_RDWR)
mapping = mmap.mmap(descriptor, 4096)
os.close(descriptor)
mapping[:6] = b"mapped"
mapping.flush()
assert open(sys.argv[1], "rb").read(6) == b"mapped"
MAP
if command -v python3 >/dev/null; then
    goes_to_kernel python3 "$WORK/map.py" "$view/data"
    [ "$(head -c 6 "$source/data")" = mapped ] ||
        fail 'a write through a mapping is not in the source'
    say 'mappings'
fi

# The first open of a file decides its way, and no open gets EIO.
chmod 4777 "$source/data"
exec 8<>"$view/data"
[ "$(count passthrough_refused)" -eq 1 ] ||
    fail 'a file with set-ID bits was opened for writing with passthrough'
before="$(count read_requests)"
head -c 100 "$view/data" >/dev/null || fail 'cannot read a file that is open through the cache'
[ "$(count read_requests)" -gt "$before" ] ||
    fail 'a file that is open through the cache got passthrough'
exec 8<&-
exec 8<"$view/data"
goes_to_kernel head -c 100 "$view/data" >/dev/null
exec 9<>"$view/data" || fail 'cannot write a file that is open with passthrough'
setpriv --reuid 4003 --regid 4003 --clear-groups -- dd bs=1 count=1 status=none if=/dev/zero >&9
[ "$(stat -c %a "$source/data")" = 777 ] || fail "set-ID bits stay: $(stat -c %a "$source/data")"
exec 8<&- 9<&-
exec 9<>"$view/data"
chmod 6777 "$view/data"
setpriv --reuid 4003 --regid 4003 --clear-groups -- dd bs=1 count=1 status=none if=/dev/zero >&9
[ "$(stat -c %a "$source/data")" = 777 ] || fail 'set-ID bits that were set after the open stay'
exec 9<&-
say 'one way a file, and set-ID bits'

# Concurrent opens and closes of one file, some of which must go through the cache.
cat >"$WORK/open.pl" <<'OPEN'
my ($path, $how, $turns) = @ARGV;
for (1 .. $turns) {
    open my $f, $how, $path or die "open $how: $!\n";
    sysread $f, my $b, 8192 or die "read: $!\n";
}
OPEN
chmod 6777 "$source/data"
pids=()
for how in '<' '+<' '<' '+<' '<' '+<'; do
    setpriv --reuid 4003 --regid 4003 --clear-groups -- \
        perl "$WORK/open.pl" "$view/data" "$how" "${OGIVE_PASSTHROUGH_OPENS:-5000}" &
    pids+=("$!")
done
for pid in "${pids[@]}"; do
    end_of 300 'the end of all opens' "$pid" ||
        fail 'an open of a file that others open and close failed'
done
say 'concurrent opens of one file'

# After the close, no backing file stays registered with the kernel.
if truncate -s 16M "$WORK/image" && mkfs.ext4 -q "$WORK/image" 2>/dev/null &&
    mkdir "$source/disk" && mount -o loop "$WORK/image" "$source/disk" 2>/dev/null; then
    remember_mount "$source/disk"
    goes_to_kernel sh -c "echo below >'$view/disk/file' && cat '$view/disk/file' >/dev/null"
    eventually 60 'a file system below the source can be unmounted' umount "$source/disk"
    say 'a file system below the source can be unmounted'
fi

# Options that exclude passthrough are refused.
if "$OGIVE" mount --help | grep -q -- --passthrough; then
    for option in --direct-io --sole-writer --no-atime; do
        expect_failure "--passthrough cannot go with $option" \
            "$OGIVE" mount --passthrough "$option" "$source" "$WORK/other"
    done
    expect_failure 'is for directories' "$OGIVE" mount --passthrough s3://bucket "$WORK/other"
fi
expect_failure 'not supported' cat "$view/.ogive/trace"
unmount_view "$view"
say 'options that exclude passthrough are refused'

# Passthrough works on an overlay. On two stacked overlays, the cache is used.
mkdir -p "$WORK/lower" "$WORK/upper" "$WORK/work" "$WORK/overlay" "$WORK/upper2" "$WORK/work2" \
    "$WORK/overlay2"
echo lower >"$WORK/lower/file"
if mount -t overlay overlay "$WORK/overlay" \
    -o "lowerdir=$WORK/lower,upperdir=$WORK/upper,workdir=$WORK/work" 2>/dev/null; then
    remember_mount "$WORK/overlay"
    mount_view "$WORK/overlay" "$view" --passthrough
    goes_to_kernel grep -q lower "$view/file"
    goes_to_kernel sh -c "echo upper >'$view/file'"
    [ "$(cat "$WORK/overlay/file")" = upper ] || fail 'not written to the overlay'
    [ "$(count passthrough_refused)" -eq 0 ] || fail 'an overlay is refused'
    unmount_view "$view"
    if mount -t overlay overlay "$WORK/overlay2" \
        -o "lowerdir=$WORK/overlay,upperdir=$WORK/upper2,workdir=$WORK/work2" 2>/dev/null; then
        remember_mount "$WORK/overlay2"
        mount_view "$WORK/overlay2" "$view" --passthrough --log-file "$WORK/log.overlay"
        [ "$(cat "$view/file" "$view/file")" = $'upper\nupper' ] || fail 'cannot read'
        echo through >"$view/file"
        [ "$(cat "$WORK/overlay2/file")" = through ] || fail 'not written through the cache'
        [ "$(count passthrough_refused)" -ge 3 ] || fail 'not counted'
        [ "$(grep -c 'stands on too many others' "$WORK/log.overlay")" -eq 1 ] ||
            fail "the reason is not logged once: $(cat "$WORK/log.overlay")"
        unmount_view "$view"
        umount "$WORK/overlay2"
    fi
    umount "$WORK/overlay"
    say 'overlays'
fi

# Other users than root get an error with the reason.
if "$OGIVE" mount --help | grep -q -- --passthrough; then
    chmod 777 "$WORK"
    expect_failure 'is for root' setpriv --reuid 4003 --regid 4003 --clear-groups -- \
        "$OGIVE" mount --passthrough "$source" "$WORK/other"
    chmod 755 "$WORK"
fi

# After the daemon is killed, programs get errors or bytes, and the mount can be unmounted.
mount_view "$source" "$view" --passthrough
daemon="$(daemon_of "$view")"
exec 8<>"$view/data"
kill -9 "$daemon"
wait_gone "$daemon" || fail 'the daemon survives SIGKILL'
printf x >&8 2>/dev/null || true
exec 8<&- || true
umount "$view" || umount -l "$view" || fail 'cannot be unmounted'
say 'killed'
passed
