#!/usr/bin/env bash
# The control directory: it exists by name, no listing shows it, and its counters count.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite control 'the hidden control directory and arcstats in the kstat format'
needs_ogive
need "$OGIVE"

source="$WORK/source"
mount="$WORK/mount"
mkdir -p "$source"
head -c 4M /dev/urandom >"$source/file"
# Small enough that the cache need not shrink for other programs.
mount_view "$source" "$mount" --direct-io --arc-min 16M --racy-window 50ms

[ "$(find "$mount" -mindepth 1 -maxdepth 1)" = "$mount/file" ] ||
    fail 'a listing shows the control directory'
[ -d "$mount/.ogive" ] || fail 'no control directory'
# Three header lines: kstat numbers, column names, then name, type 4 (uint64), value.
awk 'NR == 1 { if (NF < 5) exit 1 }
     NR == 2 { if ($0 !~ /^name +type +data$/) exit 1 }
     NR > 2 { if (NF != 3 || $2 !~ /^[0-9]+$/ || $3 !~ /^-?[0-9]+$/) exit 1 }
     END { exit NR < 50 }' "$mount/.ogive/arcstats" || {
    head -n 5 "$mount/.ogive/arcstats"
    fail 'arcstats is not in the kstat format'
}

# counter NAME
counter() {
    awk -v name="$1" '$1 == name { print $3; found = 1 } END { exit !found }' \
        "$mount/.ogive/arcstats" || fail "arcstats has no $1"
}

for name in hits misses size c c_min c_max mru_size mfu_size mru_ghost_hits mfu_ghost_hits \
    demand_data_hits demand_data_misses prefetch_data_misses demand_metadata_hits; do
    counter "$name" >/dev/null
done
# A file that changed within the racy window is read again at each open.
sleep 0.2
cat "$mount/file" >/dev/null
misses="$(counter demand_data_misses)"
hits="$(counter demand_data_hits)"
cmp "$mount/file" "$source/file" || fail 'the bytes differ'
[ "$(counter demand_data_hits)" -gt "$hits" ] || fail 'a second read makes no hits'
[ "$(counter demand_data_misses)" -eq "$misses" ] || fail 'a second read makes misses'
[ "$(counter size)" -ge 4000000 ] || fail "4 MiB were read, but size is $(counter size)"
[ "$(counter size)" -le "$(counter c_max)" ] || fail 'size is above c_max'

# Invalid sizes are refused, and the log has the reason.
unmount_view "$mount"
mount_view "$source" "$mount" --log-file "$WORK/log"
before="$(cat "$mount/.ogive/arc_max")"
for wrong in 999T all 1M; do
    # shellcheck disable=SC2016 # the inner shell expands it
    expect_failure 'Invalid argument' env LC_ALL=C bash -c 'echo "$1" >"$2"' bash "$wrong" \
        "$mount/.ogive/arc_max"
done
[ "$(cat "$mount/.ogive/arc_max")" = "$before" ] || fail 'a refused size changed arc_max'
grep -q 'more than the memory of this machine' "$WORK/log" || fail "the log says $(cat "$WORK/log")"
grep -q 'no room for 16 records' "$WORK/log" || fail "the log says $(cat "$WORK/log")"
echo 64M >"$mount/.ogive/arc_max"
[ "$(cat "$mount/.ogive/arc_max")" -eq $((64 << 20)) ] || fail 'a new size did not change arc_max'

expect_failure '' touch "$mount/.ogive/new"
expect_failure '' rmdir "$mount/.ogive"
expect_failure '' mv "$mount/.ogive" "$mount/away"
expect_failure '' mv "$mount/file" "$mount/.ogive/file"
# With another control name, the source's own .ogive is visible.
unmount_view "$mount"
mkdir "$source/.ogive"
echo own >"$source/.ogive/file"
mount_view "$source" "$mount" --control-name .elsewhere
[ "$(cat "$mount/.ogive/file")" = own ] || fail "the source's own .ogive is hidden"
[ -r "$mount/.elsewhere/arcstats" ] || fail 'no arcstats under the other name'
unmount_view "$mount"
passed
