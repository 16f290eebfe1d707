#!/usr/bin/env bash
# Functions of the suites of the second level: a source with checksums, a check of the whole mount,
# and counters. Suites source this file after lib.sh and `suite`. It sets SRC and MNT.

needs_ogive
need sha256sum
has_option --l2 || skip 'this ogive has no second level'

SRC="$WORK/source"
MNT="$WORK/mount"
export STATE_DIRECTORY="$WORK/state"
# shellcheck disable=SC2034 # the suites use it
OPTIONS=(--arc-max 8M --direct-io --l2-admit all --racy-window 50ms)
mkdir -p "$SRC" "$MNT"

# fill_source FILES BYTES: makes FILES files that do not compress, of BYTES, 2 BYTES, 3 BYTES and so
# on, and FILES files of text. Writes the checksums of all to $WORK/expected.
fill_source() {
    local number
    mkdir -p "$SRC/deep"
    for number in $(seq "$1"); do
        head -c $((number * $2)) /dev/urandom >"$SRC/deep/random-$number"
        head -c $((number * 20000)) < <(yes "line $number of text that compresses") \
            >"$SRC/text-$number"
    done
    (cd "$SRC" && find . -type f -exec sha256sum {} + | sort -k2) >"$WORK/expected"
    # Files younger than the racy window are not kept from one open to the next.
    sleep 0.2
}

# statistic NAME: a counter of the mount; 0 if it does not exist.
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

# forget: evicts everything from memory, and waits until the second level has written its queue.
forget() {
    echo all >"$MNT/.ogive/reclaim"
    eventually 60 'the queue of the second level is written' statistic_is l2_queue_bytes 0
}

# recovered: waits until the second level has rebuilt its index.
recovered() {
    eventually 60 'the second level has recovered' statistic_is l2_recovering 0
}

# keep RECORDS: reads everything and evicts it, until the second level holds RECORDS records. Its
# queue drops records that arrive faster than the device writes, so one pass may not suffice.
keep() {
    local end=$((SECONDS + 180))
    check 'while the second level fills'
    forget
    until statistic_above l2_records "$(($1 - 1))"; do
        [ "$SECONDS" -lt "$end" ] ||
            fail "the second level holds $(statistic l2_records) records instead of $1"
        check 'while the second level fills'
        forget
    done
}
