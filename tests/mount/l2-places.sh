#!/usr/bin/env bash
# Places of a second level: block devices (loop devices here), shared memory, several at once. Keys
# of all kinds. Other data on a device must never be overwritten.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite l2-places \
    'a second level on block devices, in shared memory, on several of them, with all kinds of keys'
source "$(dirname "${BASH_SOURCE[0]}")/second-level.bash"
need dd losetup mkfs.ext4

SHARED="/dev/shm/${WORK##*/}"
LOOPS=()

# Detaches the loop devices: after unmounting, and before their files are removed.
trap finish EXIT
finish() {
    local code=$? mount loop
    set +e
    rm -f "$SHARED"
    for mount in "${MOUNTED[@]}"; do force_unmount "$mount"; done
    for loop in "${LOOPS[@]}"; do losetup -d "$loop"; done
    (exit "$code")
    cleanup
}

# loop IMAGE SIZE: a loop device of a new file; sets LOOP.
loop() {
    truncate -s "$2" "$1"
    LOOP="$(losetup --find --show --direct-io=on "$1" 2>/dev/null)" ||
        LOOP="$(losetup --find --show "$1" 2>/dev/null)" || skip 'no loop device on this machine'
    LOOPS+=("$LOOP")
}

fill_source 30 40000

# hits_after WHEN LEAST: reads everything; the second level must serve at least LEAST hits.
hits_after() {
    local before
    before="$(statistic l2_hits)"
    check "$1"
    [ "$(($(statistic l2_hits) - before))" -ge "$2" ] ||
        fail "only $(($(statistic l2_hits) - before)) hits $1"
}

# kill_mount DEVICE: kills the daemon, removes the mount, and waits for the device's lock.
kill_mount() {
    local daemon
    daemon="$(daemon_of "$MNT")"
    kill -9 "$daemon"
    wait_gone "$daemon" || fail 'the daemon does not die'
    force_unmount "$MNT"
    wait_free "$1"
}

say 'a block device with other data'
loop "$WORK/block" 96M
BLOCK="$LOOP"
mkfs.ext4 -q "$BLOCK"
sum="$(sha256sum <"$BLOCK")"
expect_failure 'ext4' "$OGIVE" l2 format "$BLOCK"
expect_failure 'ext4' "$OGIVE" mount "${OPTIONS[@]}" --l2 "$BLOCK" "$SRC" "$MNT"
expect_failure 'no second level' "$OGIVE" l2 status "$BLOCK"
expect_failure 'not a second level' "$OGIVE" l2 destroy "$BLOCK"
[ "$(sha256sum <"$BLOCK")" = "$sum" ] || fail 'an ext4 was changed'
mkdir -p "$WORK/ext4"
if mount "$BLOCK" "$WORK/ext4"; then
    remember_mount "$WORK/ext4"
    echo precious >"$WORK/ext4/file"
    # Even --force does not overwrite a mounted device.
    expect_failure 'in use' "$OGIVE" l2 format --force "$BLOCK"
    expect_failure 'in use' "$OGIVE" l2 destroy --force "$BLOCK"
    expect_failure 'in use' "$OGIVE" mount "${OPTIONS[@]}" --l2 "$BLOCK" "$SRC" "$MNT"
    [ "$(cat "$WORK/ext4/file")" = precious ] || fail 'a mounted device was changed'
    umount "$WORK/ext4"
else
    say 'this kernel mounts no ext4: a mounted device was not tested'
fi
# Only a partition table; then data far behind the beginning; then data at the very end.
for place in 510 50000000 100663290; do
    dd if=/dev/zero of="$BLOCK" bs=1M status=none 2>/dev/null || true
    if [ "$place" = 50000000 ]; then
        head -c 1000000 /dev/urandom | dd of="$BLOCK" bs=64K seek=700 conv=notrunc status=none
    else
        printf '\x55\xaa' | dd of="$BLOCK" bs=1 seek="$place" conv=notrunc status=none
    fi
    expect_failure 'it holds' "$OGIVE" l2 format "$BLOCK"
    expect_failure 'it holds' "$OGIVE" mount "${OPTIONS[@]}" --l2 "$BLOCK" "$SRC" "$MNT"
done

say 'formatted by force, mounted, killed, mounted again'
"$OGIVE" l2 format --force "$BLOCK" | grep -q 'aes-256-gcm' ||
    fail 'format does not print the cipher'
grep -q '0 segments' <<<"$("$OGIVE" l2 status "$BLOCK")" || fail 'a new device is not empty'
for engine in auto pread buffered; do
    mount_view "$SRC" "$MNT" "${OPTIONS[@]}" --l2 "$BLOCK" --l2-engine "$engine"
    keep 150
    hits_after "on a block device, warm, $engine" 100
    grep -q 'in use *yes' <<<"$("$OGIVE" l2 status "$BLOCK")" ||
        fail 'status does not report the mount'
    expect_failure 'in use' "$OGIVE" l2 format --force "$BLOCK"
    kill_mount "$BLOCK"
    mount_view "$SRC" "$MNT" "${OPTIONS[@]}" --l2 "$BLOCK" --l2-engine "$engine"
    recovered
    hits_after "on a block device, after kill -9, $engine" 100
    unmount_view "$MNT"
    wait_free "$BLOCK"
done
"$OGIVE" l2 status --json "$BLOCK" | grep -q '"cipher": "aes-256-gcm"' || fail 'status --json'
grep -q 'bad records  0' <<<"$("$OGIVE" l2 verify "$BLOCK")" || fail 'verify finds bad records'

say 'discard'
expect_failure 'not a device' "$OGIVE" l2 discard "$WORK"
"$OGIVE" l2 discard "$BLOCK" >"$WORK/discarded" 2>&1 || {
    grep -q 'tell it what is free' "$WORK/discarded" || fail "discard says $(cat "$WORK/discarded")"
    say 'this loop device has no discard, and the command says so'
}
grep -q 'bad records  0' <<<"$("$OGIVE" l2 verify "$BLOCK")" || fail 'discard changed a record'
mount_view "$SRC" "$MNT" "${OPTIONS[@]}" --l2 "$BLOCK"
recovered
hits_after 'after discard' 100
expect_failure 'in use' "$OGIVE" l2 discard "$BLOCK"
unmount_view "$MNT"
mount_view "$SRC" "$MNT" "${OPTIONS[@]}" --l2 "$WORK/sparse" --l2-size 256M
keep 150
unmount_view "$MNT"
is_unused() {
    grep -q 'in use *no' <<<"$("$OGIVE" l2 status "$1")"
}
eventually 60 'the file is no longer in use' is_unused "$WORK/sparse"
before="$(stat -c %b "$WORK/sparse")"
if "$OGIVE" l2 discard "$WORK/sparse" >"$WORK/discarded" 2>&1; then
    [ "$(stat -c %b "$WORK/sparse")" -lt "$before" ] || fail 'discard frees no blocks of a file'
    [ "$(stat -c %s "$WORK/sparse")" -ge $((255 << 20)) ] ||
        fail 'discard changes the length of a file'
else
    grep -q 'tell it what is free' "$WORK/discarded" || fail "discard says $(cat "$WORK/discarded")"
fi
mount_view "$SRC" "$MNT" "${OPTIONS[@]}" --l2 "$WORK/sparse"
recovered
hits_after 'on a file with holes' 100
unmount_view "$MNT"
grep -q '^disk ' <<<"$("$OGIVE" l2 status "$BLOCK")" || fail 'status does not show the disk'
grep -q '^budget ' <<<"$("$OGIVE" l2 status "$BLOCK")" || fail 'status does not show the budget'

say 'a block device that fails: it loses all sectors at once'
mount_view "$SRC" "$MNT" "${OPTIONS[@]}" --l2 "$BLOCK"
truncate -s 0 "$WORK/block"
check 'on a device that lost everything'
forget
check 'on a device that lost everything, again'
[ "$(statistic l2_io_error)" -gt 0 ] ||
    say 'this kernel reads zeroes there; the unit tests cover errors'
unmount_view "$MNT"
wait_free "$BLOCK"
truncate -s 96M "$WORK/block"

say 'destroyed'
"$OGIVE" l2 format --force "$BLOCK" >/dev/null
mount_view "$SRC" "$MNT" "${OPTIONS[@]}" --l2 "$BLOCK"
check 'before it is destroyed'
forget
unmount_view "$MNT"
wait_free "$BLOCK"
"$OGIVE" l2 destroy "$BLOCK"
expect_failure 'no second level' "$OGIVE" l2 status "$BLOCK"
[ -b "$BLOCK" ] || fail 'destroy removed a device node'

say 'a device that does not exist or does not answer'
expect_failure 'No such file' "$OGIVE" mount "${OPTIONS[@]}" --l2 /dev/ogive-no-such-disk \
    --l2-size 8M "$SRC" "$MNT"
[ ! -e /dev/ogive-no-such-disk ] || fail 'mount created a file in place of a device'
if mknod "$WORK/dead" b 250 0; then
    mount_view "$SRC" "$MNT" "${OPTIONS[@]}" --l2 "$WORK/dead" --l2 "$WORK/alive" --l2-size 32M
    check 'with a device that does not answer'
    [ "$(statistic l2_ndev)" -eq 1 ] || fail 'a device that does not answer counts'
    unmount_view "$MNT"
fi

say 'shared memory'
mount_view "$SRC" "$MNT" "${OPTIONS[@]}" --l2 "$SHARED" --l2-size 64M
keep 150
hits_after 'in shared memory, warm' 100
kill_mount "$SHARED"
mount_view "$SRC" "$MNT" "${OPTIONS[@]}" --l2 "$SHARED"
recovered
hits_after 'in shared memory, after kill -9' 100
unmount_view "$MNT"

say 'several devices; one is added, one is removed'
"$OGIVE" l2 format --force "$BLOCK" >/dev/null
places=(--l2 "$BLOCK" --l2 "$WORK/two" --l2-size 64M)
mount_view "$SRC" "$MNT" "${OPTIONS[@]}" "${places[@]}"
keep 200
hits_after 'on two, warm' 100
unmount_view "$MNT"
wait_free "$BLOCK"
wait_free "$WORK/two"
mount_view "$SRC" "$MNT" "${OPTIONS[@]}" "${places[@]}" --l2 "$WORK/three"
recovered
[ "$(statistic l2_ndev)" -eq 3 ] || fail 'three devices are not three'
hits_after 'on three, of records on the first two' 60
keep 200
hits_after 'on three, warm' 100
unmount_view "$MNT"
wait_free "$WORK/two"
wait_free "$WORK/three"
mount_view "$SRC" "$MNT" "${OPTIONS[@]}" --l2 "$WORK/two" --l2 "$WORK/three" --l2-size 64M
recovered
hits_after 'on two of the three' 60
unmount_view "$MNT"

say 'keys of all kinds'
head -c 32 /dev/urandom >"$WORK/raw.key"
od -An -tx1 -v "$WORK/raw.key" | tr -d ' \n' >"$WORK/digits.key"
chmod 600 "$WORK"/*.key
mkdir -p "$WORK/credentials"
cp "$WORK/raw.key" "$WORK/credentials/ogive.l2-key"
chmod 400 "$WORK/credentials/ogive.l2-key"
key=(--l2 "$WORK/keyed" --l2-size 48M)
mount_view "$SRC" "$MNT" "${OPTIONS[@]}" "${key[@]}" --key-file "$WORK/raw.key"
keep 150
unmount_view "$MNT"
wait_free "$WORK/keyed"
# The same key from every other source.
mount_view "$SRC" "$MNT" "${OPTIONS[@]}" "${key[@]}" --key-file "$WORK/digits.key"
recovered
hits_after 'with the same key in digits' 100
unmount_view "$MNT"
wait_free "$WORK/keyed"
(
    OGIVE_L2_KEY="$(cat "$WORK/digits.key")"
    export OGIVE_L2_KEY
    "$OGIVE" mount "${OPTIONS[@]}" "${key[@]}" "$SRC" "$MNT" 2>"$WORK/warning"
)
grep -q 'other processes of this user can read' "$WORK/warning" ||
    fail 'no warning about a key in the environment'
recovered
hits_after 'with the same key in the environment' 100
unmount_view "$MNT"
wait_free "$WORK/keyed"
CREDENTIALS_DIRECTORY="$WORK/credentials" "$OGIVE" mount "${OPTIONS[@]}" "${key[@]}" "$SRC" "$MNT"
recovered
hits_after 'with the same key as a credential' 100
unmount_view "$MNT"
wait_free "$WORK/keyed"
# Another key and a passphrase are refused, and the device does not change.
sum="$(sha256sum <"$WORK/keyed")"
expect_failure 'another key' "$OGIVE" mount "${OPTIONS[@]}" "${key[@]}" "$SRC" "$MNT"
expect_failure 'formatted with a key' "$OGIVE" mount "${OPTIONS[@]}" "${key[@]}" --passphrase-fd 5 \
    "$SRC" "$MNT" 5<<<'a passphrase'
expect_failure 'another key' "$OGIVE" l2 verify "$WORK/keyed"
[ "$(sha256sum <"$WORK/keyed")" = "$sum" ] || fail 'a wrong key changed the device'
"$OGIVE" l2 verify --key-file "$WORK/raw.key" "$WORK/keyed" >/dev/null || fail 'verify with its key'
# No message contains the key.
digits="$(cat "$WORK/digits.key")"
if grep -rqaF "$digits" "$WORK/warning"; then fail 'a message shows the key'; fi

say 'columns and headline'
"$OGIVE" mount --foreground "${OPTIONS[@]}" "${key[@]}" --key-file "$WORK/raw.key" "$SRC" "$MNT" \
    2>"$WORK/messages" >"$WORK/messages.out" &
foreground=$!
remember_mount "$MNT"
eventually 60 'a mount in the foreground' is_mounted "$MNT"
recovered
check 'in the foreground'
columns="$("$OGIVE" stat "$MNT" \
    -f time,hits,l2hits,l2miss,l2read,l2hit%,l2size,l2asize,l2bytes 1 1)"
grep -q 'l2hits' <<<"$columns" || fail "stat does not print columns of the second level: $columns"
"$OGIVE" unmount "$MNT"
end_of 60 'the end of the mount in the foreground' "$foreground" ||
    fail 'the mount in the foreground failed'
cat "$WORK/messages" "$WORK/messages.out" >"$WORK/all"
grep -Eq 'read [0-9.]+ [KMG]?i?B: [0-9]+% memory, [0-9]+% L2, [0-9]+% source' "$WORK/all" ||
    fail "no headline: $(cat "$WORK/all")"
grep -q ': 0% memory, 0% L2' "$WORK/all" &&
    fail 'the headline does not count hits of the second level'
grep -h 'memory, ' "$WORK/all" | head -n 1
passed
