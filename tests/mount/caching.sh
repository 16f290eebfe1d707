#!/usr/bin/env bash
# The cache works with its default options too. Reads of the source are counted over five passes
# over a set, with the kernel's page cache dropped before each. For each way of reading, a set that
# fits is read from the source once, or once more if no memory was free for copies.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite caching 'reads of the source over passes between which the page cache is dropped'
needs_ogive
need "$OGIVE" perl

readonly RECORD=$((128 << 10)) RECORDS=256
readonly SET=$((RECORD * RECORDS))

mkdir "$WORK/source" "$WORK/mount"
head -c "$SET" /dev/urandom >"$WORK/source/set"
sum="$(sha256sum <"$WORK/source/set")"
# Old enough that records stay valid from one open to the next (`--racy-window`).
touch -d '1 hour ago' "$WORK/source/set"
while [ $(($(date +%s) - $(stat -c %Z "$WORK/source/set"))) -le 3 ]; do sleep 0.2; done

# drop: the page cache of the set, through the mount and below it.
drop() {
    dd if="$WORK/mount/set" iflag=nocache count=0 status=none
    dd if="$WORK/source/set" iflag=nocache count=0 status=none
}

# random BYTES: reads so many at the beginning of each record, or the whole record, in random order,
# the same each time.
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

# mapped: reads by a map.
mapped() {
    perl -e 'open(my $file, "<:mmap", $ARGV[0]) or die "$ARGV[0]: $!\n";
        local $/ = \65536; 1 while <$file>;' "$WORK/mount/set"
}

# whole: reads in order, and looks at the bytes.
whole() {
    [ "$(sha256sum <"$WORK/mount/set")" = "$sum" ] || fail 'the view has other bytes'
}

# pieces: the same in small pieces, like a program that reads ahead by itself.
pieces() {
    dd if="$WORK/mount/set" bs=12345 status=none | sha256sum >"$WORK/said"
    [ "$(cat "$WORK/said")" = "$sum" ] || fail 'the view has other bytes'
}

origin_reads() {
    awk '$1 == "origin_reads" { print $3 }' "$WORK/mount/.ogive/ogivestats"
}

# passes READER...: five, each with its reads of the source in `reads`.
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

# fits WHAT READER...: a set that fits into the cache.
fits() {
    local what="$1"
    shift
    passes "$@"
    say "$what: ${reads[*]}"
    [ "${reads[1]}" -ge 1 ] || fail "$what: nothing was read of the source, or it is not counted"
    # If a read ends within a record, two requests may read a part of it.
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
            # The floor is as high as the cache, so other load of the machine takes none of it.
            # shellcheck disable=SC2086 # several options
            mount_view "$WORK/source" "$WORK/mount" --arc-max "$bytes" --arc-min "$bytes" $options
            # shellcheck disable=SC2086 # a reader and its argument
            fits "${options:-default}, a set of $size the cache, $reader" $reader
            unmount_view "$WORK/mount"
        done
    done
done

# A set of twice the cache causes at most as many reads as without a cache. (Prefetched records that
# are evicted before their use would count twice. How much stays depends on random names of each
# mount; the tests of the view check that some does.)
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
