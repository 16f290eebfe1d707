#!/usr/bin/env bash
# The second level against an attacker who can write to its device. A sealed device is never used
# without seals, a key requires seals, and no field on the device controls the amount of work.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite hostile-device 'a second level whose device an attacker can write to'
source "$(dirname "${BASH_SOURCE[0]}")/second-level.bash"
need dd grep stat

L2="$WORK/cache.ogl2"
OPTIONS+=(--l2-size 64M)
for number in $(seq 20); do
    head -c 1000000 < <(yes "line $number that nobody else may read") >"$SRC/text-$number"
done
sleep 0.2
head -c 32 /dev/urandom >"$WORK/key"
chmod 600 "$WORK/key"

say 'a key file by a relative path'
(cd "$WORK" && "$OGIVE" mount "${OPTIONS[@]}" --l2 "$L2" --key-file key "$SRC" "$MNT")
remember_mount "$MNT"
cat "$MNT"/text-* >/dev/null
forget
grep -q '"cipher": *"aes-256-gcm"' "$MNT/.ogive/mount" || fail 'the mount does not show its cipher'
unmount_view "$MNT"
wait_free "$L2"

say 'an attacker formats the device without seals'
cp "$L2" "$WORK/sealed.ogl2"
"$OGIVE" l2 format --force --cipher off "$L2" >/dev/null
sum="$(sha256sum <"$L2")"
for options in "--key-file $WORK/key" "--cipher aes-256-gcm --key-file $WORK/key" ''; do
    # shellcheck disable=SC2086 # several options
    expect_failure 'nothing on it is sealed' "$OGIVE" mount "${OPTIONS[@]}" --l2 "$L2" $options \
        "$SRC" "$MNT"
done
expect_failure 'nothing on it is sealed' "$OGIVE" l2 verify --key-file "$WORK/key" "$L2"
expect_failure 'a key was given' "$OGIVE" mount "${OPTIONS[@]}" --l2 "$L2" --cipher off \
    --key-file "$WORK/key" "$SRC" "$MNT"
[ "$(sha256sum <"$L2")" = "$sum" ] || fail 'a refused device was written to'
if grep -qa 'nobody else may read' "$L2"; then
    fail 'a device that must be sealed holds plain text'
fi
mount_view "$SRC" "$MNT" "${OPTIONS[@]}" --l2 "$L2" --cipher off
grep -q '"cipher": *"off"' "$MNT/.ogive/mount" ||
    fail 'the mount does not show that nothing is sealed'
unmount_view "$MNT"

say 'a superblock with another format version'
cp "$WORK/sealed.ogl2" "$L2"
for place in 8 65544; do
    printf '\001' | dd of="$L2" bs=1 seek="$place" conv=notrunc status=none
done
expect_failure 'version 1' "$OGIVE" mount "${OPTIONS[@]}" --l2 "$L2" --key-file "$WORK/key" \
    "$SRC" "$MNT"

say 'verify does not change the device'
cp "$WORK/sealed.ogl2" "$L2"
truncate -s 20M "$L2"
chmod 400 "$L2"
"$OGIVE" l2 verify --key-file "$WORK/key" "$L2" >"$WORK/verified" || true
grep -q 'bad records' "$WORK/verified" || fail 'verify does not finish'
[ "$(stat -c %s "$L2")" = $((20 << 20)) ] || fail 'verify changed the length of the device'

say 'another key'
cp "$WORK/sealed.ogl2" "$L2.rekeyed"
head -c 32 /dev/urandom >"$WORK/next"
chmod 600 "$WORK/next"
"$OGIVE" l2 rekey --key-file "$WORK/key" --new-key-file "$WORK/next" "$L2.rekeyed" >/dev/null
mount_view "$SRC" "$MNT" "${OPTIONS[@]}" --l2 "$L2.rekeyed" --key-file "$WORK/next"
expect_failure 'unmount that mount first' "$OGIVE" l2 rekey --key-file "$WORK/next" \
    --new-key-file "$WORK/key" "$L2.rekeyed"
daemon="$(daemon_of "$MNT")"
unmount_view "$MNT"
wait_gone "$daemon" || fail 'the daemon does not end'
wait_free "$L2.rekeyed"
expect_failure 'another key' "$OGIVE" l2 verify --key-file "$WORK/key" "$L2.rekeyed"
"$OGIVE" l2 verify --key-file "$WORK/next" "$L2.rekeyed" | grep -q 'bad records  0' ||
    fail 'a device has bad records after rekey'

say 'a key file of another user'
cp "$WORK/key" "$WORK/foreign.key"
chmod 600 "$WORK/foreign.key"
chown 65534 "$WORK/foreign.key"
expect_failure 'belongs to user 65534' "$OGIVE" mount "${OPTIONS[@]}" --l2 "$L2" \
    --key-file "$WORK/foreign.key" "$SRC" "$MNT"
passed
