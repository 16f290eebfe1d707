#!/usr/bin/env bash
# Devices of the second level are added and removed while programs read the mount. Every byte stays
# right, and a removed device is unlocked. After kill -9 in between, the devices are still valid.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite l2-devices 'devices of a second level, added and removed while it is used'
source "$(dirname "${BASH_SOURCE[0]}")/second-level.bash"

ONE="$WORK/one.ogl2"
TWO="$WORK/two.ogl2"
OPTIONS+=(--l2-size 64M)
fill_source 30 40000

say 'a device is added while everything is read'
mount_view "$SRC" "$MNT" "${OPTIONS[@]}" --l2 "$ONE"
check 'with one device'
forget
(for _ in 1 2 3; do check 'while a device is added'; done) &
reader=$!
"$OGIVE" l2 add "$MNT" "$TWO"
end_of 120 'the end of a reader' "$reader" || fail 'reading while a device is added'
[ "$(statistic l2_ndev)" -eq 2 ] || fail 'the device was not added'
[ "$(stat -c %s "$TWO")" = $((64 << 20)) ] || fail 'the device does not have the size of --l2-size'
grep -q "$TWO" "$MNT/.ogive/mount" || fail 'the mount does not list the device'
keep 200
before="$(statistic l2_hits)"
check 'with two devices, warm'
[ "$(($(statistic l2_hits) - before))" -gt 100 ] || fail 'two devices serve too few hits'
"$OGIVE" l2 status "$MNT" | grep -q "path .*$TWO" || fail 'status does not list the device'
"$OGIVE" l2 status --json "$MNT" | grep -q '"records": [1-9]' || fail 'status has no records'

say 'refused with a reason'
expect_failure 'in use by this mount already' "$OGIVE" l2 add "$MNT" "$TWO"
expect_failure 'inside the source' "$OGIVE" l2 add "$MNT" "$SRC/cache"
expect_failure 'inside the mount' "$OGIVE" l2 add "$MNT" "$MNT/cache"
head -c 9000000 /dev/urandom >"$WORK/precious"
expect_failure 'to overwrite that' "$OGIVE" l2 add "$MNT" "$WORK/precious"
expect_failure 'is not in use by this mount' "$OGIVE" l2 remove "$MNT" "$WORK/precious"
expect_failure 'no ogive mount is at' "$OGIVE" l2 add "$WORK" "$TWO"
expect_failure 'in use by another process' "$OGIVE" l2 rekey "$TWO" --new-key-file "$WORK/none"
"$OGIVE" l2 format --cipher off --size 16M "$WORK/off.ogl2" >/dev/null
expect_failure 'nothing on it is sealed' "$OGIVE" l2 add "$MNT" "$WORK/off.ogl2"
if command -v setpriv >/dev/null; then
    expect_failure 'ermission denied' setpriv --reuid 65534 --regid 65534 --clear-groups \
        sh -c "echo 'remove $TWO' >'$MNT/.ogive/l2'"
fi

say 'a device is removed while everything is read, and is unlocked'
(for _ in 1 2 3; do check 'while a device is removed'; done) &
reader=$!
"$OGIVE" l2 remove "$MNT" "$TWO"
end_of 120 'the end of a reader' "$reader" || fail 'reading while a device is removed'
[ "$(statistic l2_ndev)" -eq 1 ] || fail 'the device was not removed'
"$OGIVE" l2 verify "$TWO" | grep -q 'bad records  0' || fail 'the removed device has bad records'
check 'with one device again'
"$OGIVE" l2 add "$MNT" "$TWO"
forget
recovered
before="$(statistic l2_hits)"
check 'with both again'
[ "$(($(statistic l2_hits) - before))" -gt 50 ] ||
    fail 'records of the removed device are not found again'

say 'kill -9 while devices are added and removed'
# has_lines FILE COUNT
has_lines() {
    [ "$(wc -l <"$1")" -ge "$2" ]
}
for round in 1 2 3; do
    daemon="$(daemon_of "$MNT")"
    rm -f "$WORK/changed"
    (while "$OGIVE" l2 remove "$MNT" "$TWO" && "$OGIVE" l2 add "$MNT" "$TWO"; do
        echo once >>"$WORK/changed"
    done) >/dev/null 2>&1 &
    (while check 'before kill -9'; do :; done) >/dev/null 2>&1 &
    eventually 60 "a device was removed and added $round times" has_lines "$WORK/changed" "$round"
    kill -9 "$daemon"
    wait_gone "$daemon" || fail 'the daemon does not die'
    end_of_all 60 'the end of the jobs after the daemon died'
    force_unmount "$MNT"
    wait_free "$ONE"
    wait_free "$TWO"
    mount_view "$SRC" "$MNT" "${OPTIONS[@]}" --l2 "$ONE" --l2 "$TWO"
    recovered
    check "after kill -9, round $round"
    [ "$(statistic l2_hits)" -gt 0 ] || fail "nothing was left after kill -9, round $round"
    forget
done

say 'the last device is removed, and one of another size is added'
"$OGIVE" l2 remove "$MNT" "$ONE"
"$OGIVE" l2 remove "$MNT" "$TWO"
check 'without a device'
"$OGIVE" l2 status "$MNT" | grep -q 'no device' || fail 'status lists a removed device'
"$OGIVE" l2 add "$MNT" "$WORK/three.ogl2" --size 24M
[ "$(stat -c %s "$WORK/three.ogl2")" -eq $((24 << 20)) ] ||
    fail 'the device does not have the size of --size'
forget
check 'with the third'
unmount_view "$MNT"

say 'a mount without a key cannot add devices'
mount_view "$SRC" "$MNT" "${OPTIONS[@]}" --passphrase-fd 5 --l2 "$WORK/phrase.ogl2" 5<<<'horse'
expect_failure 'which is not kept' "$OGIVE" l2 add "$MNT" "$WORK/four.ogl2"
"$OGIVE" l2 remove "$MNT" "$WORK/phrase.ogl2"
unmount_view "$MNT"
mount_view "$SRC" "$MNT"
expect_failure 'started without --l2' "$OGIVE" l2 add "$MNT" "$ONE"
passed
