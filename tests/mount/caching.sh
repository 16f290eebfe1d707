#!/usr/bin/env bash
# The cache caches, also with default options. The suite counts reads of the source over five passes
# over a set, and drops the set's page cache before each pass. A set that fits is read from the
# source once, or twice if no memory was free for copies, and then never again. This must hold for
# every way of reading.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite caching 'reads of the source in repeated passes without the page cache'
needs_ogive
need "$OGIVE" perl

readonly RECORD=$((128 << 10)) RECORDS=256
readonly SET=$((RECORD * RECORDS))

mkdir "$WORK/source" "$WORK/mount"
head -c "$SET" /dev/urandom >"$WORK/source/set"
sum="$(sha256sum <"$WORK/source/set")"
# The file must be older than `--racy-window`, or each open would drop its records.
touch -d '1 hour ago' "$WORK/source/set"
while [ $(($(date +%s) - $(stat -c %Z "$WORK/source/set"))) -le 3 ]; do sleep 0.2; done

# drop: drops the set from the page cache, in the mount and in the source.
drop() {
    dd if="$WORK/mount/set" iflag=nocache count=0 status=none
    dd if="$WORK/source/set" iflag=nocache count=0 status=none
}

# random BYTES: reads BYTES at the beginning of each record, in a scattered order that is the same
# each time.
random() {
    perl -e 'use Fcntl "SEEK_SET";
        my ($path, $records, $record, $bytes) = @ARGV;
        open(my $file, "<:raw", $path) or die "$path: $!\n";
        for my $number (0 .. $records - 1) {
            my $index = ($number * 97 + 31) % $records;
            sysseek($file, $index * $record, SEEK_SET) or die "$path: $!\n";
            my $read = sysread($file, my $piece, $bytes);
            defined($read) && $read == $bytes or die "$path: read $read of $bytes bytes\n";
        }' "$WORK/mount/set" "$RECORDS" "$RECORD" "$1"
}

# mapped: reads through mmap.
mapped() {
    perl -e 'open(my $file, "<:mmap", $ARGV[0]) or die "$ARGV[0]: $!\n";
        local $/ = \65536; 1 while <$file>;' "$WORK/mount/set"
}

# whole: reads in order, and compares the bytes.
whole() {
    [ "$(sha256sum <"$WORK/mount/set")" = "$sum" ] || fail 'the view has other bytes'
}

# pieces: reads in order in small pieces, and compares the bytes.
pieces() {
    dd if="$WORK/mount/set" bs=12345 status=none | sha256sum >"$WORK/sum"
    [ "$(cat "$WORK/sum")" = "$sum" ] || fail 'the view has other bytes'
}

origin_reads() {
    awk '$1 == "origin_reads" { print $3 }' "$WORK/mount/.ogive/ogivestats"
}

# passes READER...: makes five passes; `reads` gets the reads of the source in each.
passes() {
    local pass before
    reads=()
    for pass in 1 2 3 4 5; do
        drop
        before="$(origin_reads)"
        "$@"
        reads[pass]=$(($(origin_reads) - before))
    done
}

# fits TEXT READER...: makes five passes over a set that fits into the cache.
fits() {
    local what="$1"
    shift
    passes "$@"
    say "$what: ${reads[*]}"
    [ "${reads[1]}" -ge 1 ] || fail "$what: no read of the source was counted"
    # Requests may split within a record, and then two requests may load it.
    [ $((reads[1] + reads[2])) -le $((2 * RECORDS + 8)) ] || fail "$what: read more than twice"
    [ $((reads[3] + reads[4] + reads[5])) -eq 0 ] || fail "$what: read again and again"
}

for options in '' '--direct-io' '--caching inclusive'; do
    for size in 'all of' 'a quarter of'; do
        [ "$size" = 'all of' ] || [ -z "$options" ] || continue
        case "$size" in
            all*) bytes=$((SET + SET / 8)) ;;
            *) bytes=$((4 * SET)) ;;
        esac
        for reader in whole pieces "random $RECORD" 'random 8192' mapped; do
            # With --arc-min equal to --arc-max, memory pressure of other programs takes nothing.
            # shellcheck disable=SC2086 # several options
            mount_view "$WORK/source" "$WORK/mount" --arc-max "$bytes" --arc-min "$bytes" $options
            # shellcheck disable=SC2086 # a reader and its argument
            fits "${options:-default}, a set of $size the cache, $reader" $reader
            unmount_view "$WORK/mount"
        done
    done
done

# A set of twice the cache is not read more often than without a cache. Prefetch is off, because a
# prefetched record that is evicted before its read would count twice. The share of hits depends on
# random names of each mount; tests of the view cover it.
for reader in whole "random $RECORD" 'random 8192'; do
    mount_view "$WORK/source" "$WORK/mount" --prefetch-max 0 \
        --arc-max $((SET / 2)) --arc-min $((SET / 2))
    # shellcheck disable=SC2086 # a reader and its argument
    passes $reader
    say "a set of twice the cache, $reader: ${reads[*]}"
    for pass in 1 2 3 4 5; do
        [ "${reads[pass]}" -le $((RECORDS + 8)) ] ||
            fail "$reader: pass $pass read more than once"
    done
    unmount_view "$WORK/mount"
done

passed
