#!/usr/bin/env bash
# Shared by the suites of the second level: a source with known contents, a check of all of it
# through the mount, and its counters. Read after lib.sh and `suite`; sets SRC and MNT.

needs_ogive
need sha256sum
has_option --l2 || skip 'this ogive has no second level'

SRC="$WORK/source"
MNT="$WORK/mount"
export STATE_DIRECTORY="$WORK/state"
# shellcheck disable=SC2034 # for the suites
OPTIONS=(--arc-max 8M --direct-io --l2-admit all --racy-window 50ms)
mkdir -p "$SRC" "$MNT"

# fill_source FILES BYTES: as many files that do not compress, the first of so many bytes, each
# larger by as much, and as many of text; then notes what all hold.
fill_source() {
    local number
    mkdir -p "$SRC/deep"
    for number in $(seq "$1"); do
        head -c $((number * $2)) /dev/urandom >"$SRC/deep/random-$number"
        head -c $((number * 20000)) < <(yes "line $number of text that compresses") \
            >"$SRC/text-$number"
    done
    (cd "$SRC" && find . -type f -exec sha256sum {} + | sort -k2) >"$WORK/expected"
    # Older than the racy window of the options; otherwise no record would stay valid.
    sleep 0.2
}

# statistic NAME: a counter of the mount, 0 if there is none.
statistic() {
    cat "$MNT/.ogive/arcstats" "$MNT/.ogive/ogivestats" |
        awk -v name="$1" '$1 == name { value = $3 } END { print value + 0 }'
}

# check WHEN: reads everything and compares it with the origin.
check() {
    (cd "$MNT" && find . -type f -not -path './.ogive/*' -exec sha256sum {} + | sort -k2) \
        >"$WORK/read"
    cmp -s "$WORK/expected" "$WORK/read" || {
        diff "$WORK/expected" "$WORK/read" | head -n 5
        fail "wrong bytes $1"
    }
}

# statistic_is NAME VALUE, statistic_above NAME VALUE: for `eventually`.
statistic_is() {
    [ "$(statistic "$1")" -eq "$2" ]
}
statistic_above() {
    [ "$(statistic "$1")" -gt "$2" ]
}

# forget: empties memory, and waits until the second level has written its queue.
forget() {
    echo all >"$MNT/.ogive/reclaim"
    eventually 60 'what the second level took is written' statistic_is l2_queue_bytes 0
}

# recovered: whether the second level has read the index of its devices.
recovered() {
    eventually 60 'the second level knows its devices' statistic_is l2_recovering 0
}

# keep RECORDS: reads everything and empties memory until the second level holds so many records. Its
# queue drops records that come too fast for the device, so once may not be enough.
keep() {
    local end=$((SECONDS + 180))
    check 'while the second level fills'
    forget
    until statistic_above l2_records "$(($1 - 1))"; do
        [ "$SECONDS" -lt "$end" ] ||
            fail "the second level holds $(statistic l2_records) records, and $1 were to come"
        check 'while the second level fills'
        forget
    done
}
