#!/usr/bin/env bash
# The second level through a mount. It survives kill -9. Its device is damaged in many ways while it
# is mounted, and every byte read is still the origin's.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite l2 'a second level that is killed, truncated, overwritten, replaced and full'
source "$(dirname "${BASH_SOURCE[0]}")/second-level.bash"
need dd

L2="$WORK/cache.ogl2"
OPTIONS+=(--l2-size 96M)
fill_source 40 50000

# is_longer FILE BYTES
is_longer() {
    [ "$(stat -c %s "$1")" -gt "$2" ]
}

mount_l2() {
    mount_view "$SRC" "$MNT" "${OPTIONS[@]}" --l2 "$L2"
}

say 'filling it'
mount_l2
keep 300
check 'after memory evicted everything'
[ "$(statistic l2_hits)" -gt 100 ] || fail "only $(statistic l2_hits) hits of the second level"
[ "$(statistic l2_size)" -gt 1000000 ] || fail 'l2_size is too small'
[ "$(stat -c %a "$STATE_DIRECTORY/l2.key")" = 600 ] || fail 'other users can read the key'
threads="$(cat /proc/"$(daemon_of "$MNT")"/task/*/comm)"
for name in l2_read l2_write; do
    grep -qx "$name" <<<"$threads" || fail "no thread has the name $name"
done
grep -q 'yes, by a mount' <<<"$("$OGIVE" l2 status "$L2")" ||
    fail 'status does not report the mount'
expect_failure 'in use by another process' "$OGIVE" l2 verify "$L2"
forget
cp "$L2" "$WORK/older.ogl2"

say 'kill -9 in the middle of reading, and again'
for round in 1 2 3; do
    daemon="$(daemon_of "$MNT")"
    : >"$WORK/reading"
    (while cat "$MNT"/deep/*; do :; done) >"$WORK/reading" 2>/dev/null &
    reader=$!
    eventually 60 'something is read' is_longer "$WORK/reading" $((round * 1000000))
    kill -9 "$daemon"
    wait_gone "$daemon" || fail 'the daemon does not die'
    end_of 60 'the end of a reader whose mount is dead' "$reader" || true
    force_unmount "$MNT"
    wait_free "$L2"
    mount_l2
    recovered
    check "after kill -9, round $round"
    [ "$(statistic l2_hits)" -gt 0 ] || fail "nothing was left after kill -9, round $round"
done

say 'a clean restart'
forget
unmount_view "$MNT"
grep -q 'bad records  0' <<<"$("$OGIVE" l2 verify "$L2")" || fail 'verify finds bad records'
if grep -qa 'of text that compresses' "$L2"; then
    fail 'the device holds plain text'
fi
wait_free "$L2"
mount_l2
recovered
check 'after a restart'
[ "$(statistic l2_hits)" -gt 100 ] || fail 'a clean restart loses the second level'

say 'changed files are read again'
printf 'changed behind the mount' >"$SRC/text-1"
printf 'changed through it' >"$MNT/text-2"
(cd "$SRC" && find . -type f -exec sha256sum {} + | sort -k2) >"$WORK/expected"
forget
check 'after changes'

say 'overwritten with noise while mounted'
forget
dd if=/dev/urandom of="$L2" bs=1M seek=2 count=60 conv=notrunc status=none
check 'on noise'
[ "$(($(statistic l2_cksum_bad) + $(statistic l2_stale)))" -gt 0 ] ||
    fail 'the mount did not detect the noise'
forget
check 'after noise'

say 'truncated while mounted'
truncate -s 3M "$L2"
check 'on a truncated device'
forget
check 'after truncation'

say 'replaced by an older copy while mounted'
forget
dd if="$WORK/older.ogl2" of="$L2" bs=1M conv=notrunc status=none
check 'on an older copy'
forget
unmount_view "$MNT"
wait_free "$L2"
mount_l2
check 'after a restart with an older copy'
unmount_view "$MNT"

say 'refused with a reason'
head -c 10000000 /dev/urandom >"$WORK/precious"
sum="$(sha256sum <"$WORK/precious")"
expect_failure 'it holds' "$OGIVE" mount "${OPTIONS[@]}" --l2 "$WORK/precious" "$SRC" "$MNT"
expect_failure 'it holds' "$OGIVE" l2 format "$WORK/precious"
[ "$(sha256sum <"$WORK/precious")" = "$sum" ] || fail 'other data was overwritten'
head -c 32 /dev/urandom >"$WORK/other.key"
chmod 600 "$WORK/other.key"
expect_failure 'another key' "$OGIVE" mount "${OPTIONS[@]}" --l2 "$L2" \
    --key-file "$WORK/other.key" "$SRC" "$MNT"
chmod 644 "$WORK/other.key"
expect_failure 'others may read it' "$OGIVE" mount "${OPTIONS[@]}" --l2 "$L2" \
    --key-file "$WORK/other.key" "$SRC" "$MNT"
expect_failure 'inside the source' "$OGIVE" mount "${OPTIONS[@]}" --l2 "$SRC/cache" "$SRC" "$MNT"

say 'a passphrase, two devices and no cipher'
mount_view "$SRC" "$MNT" "${OPTIONS[@]}" --cipher aes-256-gcm --compress zstd:3 --passphrase-fd 5 \
    --l2 "$WORK/one.ogl2" --l2 "$WORK/two.ogl2" 5<<<'correct horse battery staple'
keep 300
check 'with two devices, warm'
[ "$(statistic l2_ndev)" -eq 2 ] || fail 'two devices are not two'
[ "$(statistic l2_hits)" -gt 100 ] || fail 'two devices serve too few hits'
daemon="$(daemon_of "$MNT")"
unmount_view "$MNT"
# The daemon still writes its queue, and uses the devices until it ends.
wait_gone "$daemon" || fail 'the daemon does not end'
wait_free "$WORK/one.ogl2"
expect_failure 'another key' "$OGIVE" mount "${OPTIONS[@]}" --l2 "$WORK/one.ogl2" \
    --passphrase-fd 5 "$SRC" "$MNT" 5<<<'wrong horse'
"$OGIVE" l2 destroy "$WORK/one.ogl2"
[ ! -e "$WORK/one.ogl2" ] || fail 'destroy does not remove the file'
mount_view "$SRC" "$MNT" "${OPTIONS[@]}" --cipher off --l2 "$WORK/off.ogl2" --l2-engine buffered
check 'without a cipher'
forget
check 'without a cipher, warm'
unmount_view "$MNT"

say 'padding, and admission by path'
mount_view "$SRC" "$MNT" "${OPTIONS[@]}" --l2 "$WORK/padded.ogl2" --l2-padding 16K \
    --l2-include '/deep/' --l2-include 'text-1*' --l2-exclude 'random-4'
keep 200
check 'with padding, warm'
[ "$(statistic l2_padding_bytes)" -gt 0 ] || fail 'nothing is padded'
[ "$(statistic l2_refused_path)" -gt 20 ] || fail 'no record is refused by its path'
[ "$(statistic l2_hits)" -gt 50 ] || fail 'no record of an included path is kept'
grep -q '"padding": "16K"' "$MNT/.ogive/mount" || fail 'the mount does not show its padding'
daemon="$(daemon_of "$MNT")"
unmount_view "$MNT"
wait_gone "$daemon" || fail 'the daemon does not end'
wait_free "$WORK/padded.ogl2"
"$OGIVE" l2 verify "$WORK/padded.ogl2" >"$WORK/verified" || fail 'padded records are bad'
grep -q 'of them padding' "$WORK/verified" || fail 'verify does not report the padding'
wait_free "$WORK/padded.ogl2"
mount_view "$SRC" "$MNT" "${OPTIONS[@]}" --l2 "$WORK/padded.ogl2"
recovered
check 'without padding, on a padded device'
[ "$(statistic l2_hits)" -gt 50 ] || fail 'a mount without padding does not read a padded device'
unmount_view "$MNT"
expect_failure 'names no file' "$OGIVE" mount "${OPTIONS[@]}" --l2 "$L2" --l2-exclude '[' \
    "$SRC" "$MNT"

say 'grown and shrunk'
for size in 160M 64M; do
    OPTIONS=(--arc-max 8M --direct-io --l2-size "$size" --l2-admit all --racy-window 50ms)
    wait_free "$L2"
    mount_l2
    recovered
    check "with $size"
    forget
    [ "$(statistic l2_hits)" -gt 0 ] || fail "nothing was left with $size"
    unmount_view "$MNT"
done

say 'a full disk'
if mkdir -p "$WORK/small" && mount -t tmpfs -o size=20M none "$WORK/small"; then
    remember_mount "$WORK/small"
    expect_failure 'cannot give it its size' "$OGIVE" mount --arc-max 8M --l2 "$WORK/small/cache" \
        --l2-size 64M "$SRC" "$MNT"
    # A sparse file on a file system that then fills up.
    truncate -s 18M "$WORK/small/cache"
    mount_view "$SRC" "$MNT" --arc-max 8M --direct-io --l2-admit all --l2 "$WORK/small/cache"
    dd if=/dev/zero of="$WORK/small/filler" bs=1M status=none 2>/dev/null || true
    check 'on a full disk'
    forget
    check 'on a full disk, again'
    unmount_view "$MNT"
else
    say 'cannot mount a tmpfs here; the unit tests cover a full disk'
fi
passed
