#!/usr/bin/env bash
# The kernel caches directory listings and attributes, and never shows them for too long. A trace
# event of the kernel counts the requests. Changes behind the mount must be visible while many
# programs read and rewind the directory.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite requests 'requests that the kernel saves, and names that it caches'
needs_ogive
need perl

readonly DIRECTORIES=20 FILES=600 ROUNDS=60

mkdir -p "$WORK/source" "$WORK/tracing"
mount -t tracefs tracefs "$WORK/tracing" || skip 'no tracefs on this machine'
remember_mount "$WORK/tracing"
events="$WORK/tracing/instances/${WORK##*/}"
[ -d "$WORK/tracing/events/fuse/fuse_request_send" ] ||
    skip 'this kernel does not trace FUSE requests'
mkdir "$events" || skip 'no trace buffer can be made'
trap finish EXIT

finish() {
    local code=$?
    set +e
    rmdir "$events"
    (exit "$code")
    cleanup
}

# counted COMMAND...: runs a command. $WORK/requests gets the opcode of each request, one a line.
counted() {
    local event="$events/events/fuse/fuse_request_send"
    echo "connection==$(mountpoint -d "$WORK/mount" | cut -d: -f2)" >"$event/filter"
    : >"$events/trace"
    echo 1 >"$event/enable"
    "$@" >"$WORK/output"
    echo 0 >"$event/enable"
    sed -n 's/.*(FUSE_\([A-Z0-9_]*\)).*/\1/p' "$events/trace" >"$WORK/requests"
}

# requests OPCODE...: the number of requests with these opcodes.
requests() {
    local opcode count=0
    for opcode in "$@"; do
        count=$((count + $(grep -cx "$opcode" "$WORK/requests" || true)))
    done
    echo "$count"
}

# walk: prints the sizes of all files in the mount.
walk() {
    find "$WORK/mount" -type f -printf '%s\n'
}

# absent: looks a missing name up.
absent() {
    [ ! -e "$WORK/mount/missing" ] || fail 'a missing name was found'
}

# expect COUNT TEXT OPCODE...: the number of requests with these opcodes must be COUNT.
expect() {
    local count="$1" what="$2"
    shift 2
    [ "$(requests "$@")" -eq "$count" ] ||
        fail "$what: not $count, but $(sort "$WORK/requests" | uniq -c | tr -s ' \n' ' ')"
}

for ((number = 0; number < DIRECTORIES; number++)); do
    mkdir "$WORK/source/$number"
    touch "$WORK/source/$number/"{1,2,3,4,5}
done
sleep 0.2

listings() {
    mount_view "$WORK/source" "$WORK/mount" --metadata-ttl 1h --negative-ttl 1h --racy-window 50ms
    counted walk
    [ "$(wc -l <"$WORK/output")" -eq $((5 * DIRECTORIES)) ] || fail 'not all files were found'
    # A directory's second request returns its end.
    expect $((2 * (DIRECTORIES + 1))) 'a first walk' READDIR READDIRPLUS
    # The first walk has changed access times.
    walk >"$WORK/output"
    counted walk
    expect 0 'a walk of unchanged directories' READDIR READDIRPLUS LOOKUP GETATTR
    touch "$WORK/source/7/new"
    sleep 0.2
    counted walk
    [ "$(wc -l <"$WORK/output")" -eq $((5 * DIRECTORIES + 1)) ] || fail 'a new file was not found'
    expect 2 'a walk after a change in one directory' READDIR READDIRPLUS
    rm "$WORK/source/7/new"
    unmount_view "$WORK/mount"
    say 'only directories that have changed are listed again'
}

# walks_by_directory: whether a walk after the TTL sends few requests for single files.
walks_by_directory() {
    sleep 1.5
    counted walk
    [ "$(requests LOOKUP GETATTR)" -le $((DIRECTORIES + 2)) ]
}

# After the TTL, one READDIRPLUS a directory brings names with attributes. Cached names would need a
# request a file.
attributes() {
    mount_view "$WORK/source" "$WORK/mount" --racy-window 50ms
    walk >"$WORK/output"
    # A walk that takes longer than the TTL needs some attributes twice, so try again.
    within_seconds 60 walks_by_directory ||
        fail "a walk after the TTL sends a request a file: $(sort "$WORK/requests" | uniq -c)"
    unmount_view "$WORK/mount"
    mount_view "$WORK/source" "$WORK/mount" --metadata-ttl 0 --negative-ttl 0 --racy-window 50ms
    walk >"$WORK/output"
    counted walk
    [ "$(requests READDIR READDIRPLUS)" -ge $((DIRECTORIES + 1)) ] ||
        fail 'the kernel cached names with a TTL of 0'
    unmount_view "$WORK/mount"
    say 'names are cached as long as attributes'
}

# Programs read a directory in parts, rewind and close it, while it changes behind the mount. Each
# complete listing has every unchanged name once, and a listing begun after a change shows it.
changes_during_listings() {
    local directory="$WORK/source/many" reader readers=()
    mkdir "$directory"
    perl -e 'for my $n (1 .. $ARGV[1]) {
        open my $file, ">", sprintf("%s/%s.%d", $ARGV[0], "x" x 40, $n) or die "$!\n" }' \
        "$directory" "$FILES"
    mount_view "$WORK/source" "$WORK/mount" --metadata-ttl 1h --negative-ttl 0 \
        --racy-window 10ms "$@"
    for reader in 1 2 3; do
        # shellcheck disable=SC2016 # perl's variables
        perl -e '
            my ($path, $files, $stop, $seed) = @ARGV;
            srand $seed;
            until (-e $stop) {
                opendir my $open, $path or die "opendir: $!\n";
                if (rand() < 0.5) {
                    readdir $open for 1 .. rand 500;
                    rewinddir $open if rand() < 0.7;
                    closedir $open, next if rand() < 0.3;
                    rewinddir $open;
                }
                my %seen;
                while (defined(my $name = readdir $open)) { $seen{$name}++ if $name =~ /^x/ }
                closedir $open;
                my $once = grep { $_ == 1 } values %seen;
                die "$once of $files names were listed once\n" if $once != $files;
            }' "$WORK/mount/many" "$FILES" "$WORK/stop" "$reader" 2>"$WORK/reader.$reader" &
        readers+=($!)
    done
    # shellcheck disable=SC2016 # perl's variables
    perl -e '
        my ($behind, $through, $rounds) = @ARGV;
        sub listed { opendir my $open, $through or die; my @found = grep /^$_[0]$/, readdir $open;
            return scalar @found }
        for my $round (1 .. $rounds) {
            my $name = "n" x (1 + $round % 90) . $round;
            open my $file, ">", "$behind/$name" or die "$!\n";
            die "round $round: a new name is not listed\n" unless listed($name);
            select undef, undef, undef, 0.03 if $round % 3 == 0;
            die "round $round: a name is missing\n" unless listed($name) && listed($name);
            unlink "$behind/$name" or die "$!\n";
            die "round $round: a removed name is listed\n" if listed($name);
            select undef, undef, undef, 0.03 if $round % 2 == 0;
            die "round $round: a removed name is listed again\n" if listed($name);
        }' "$directory" "$WORK/mount/many" "$ROUNDS" || fail 'a listing does not show a change'
    touch "$WORK/stop"
    for reader in "${!readers[@]}"; do
        end_of 60 'the end of a reader' "${readers[reader]}" ||
            fail "a reader: $(cat "$WORK/reader.$((reader + 1))")"
    done
    rm -r "$WORK/stop" "$directory"
    unmount_view "$WORK/mount"
    say "listings showed $ROUNDS changes behind the mount at once (${*:-page cache})"
}

# A program that keeps a directory open and rewinds it sees changes.
rewinds() {
    mount_view "$WORK/source" "$WORK/mount" --racy-window 10ms
    # shellcheck disable=SC2016 # perl's variables
    perl -e '
        my ($behind, $through) = @ARGV;
        sub names { rewinddir $_[0]; return scalar(my @names = readdir $_[0]) }
        opendir my $first, $through or die; opendir my $second, $through or die;
        my $before = names($first);
        for my $round (1 .. 3) {
            open my $file, ">", "$behind/new.$round" or die;
            for my $open ($first, $second) {
                my $until = time + 60;
                until (names($open) == $before + $round) {
                    die "round $round: a new name is never listed\n" if time > $until;
                    select undef, undef, undef, 0.1;
                }
            }
        }
        unlink map "$behind/new.$_", 1 .. 3' "$WORK/source" "$WORK/mount" ||
        fail 'a rewound directory does not show changes'
    unmount_view "$WORK/mount"
    say 'a rewound directory shows changes'
}

# With --immutable, each name is requested once, and every change is refused.
immutable() {
    mount_view "$WORK/source" "$WORK/mount" --immutable --racy-window 50ms
    walk >"$WORK/output"
    absent
    walk >"$WORK/output"
    sleep 1.5
    counted walk
    expect 0 'a second walk with --immutable' READDIR READDIRPLUS LOOKUP GETATTR
    counted absent
    expect 0 'a second lookup of a missing name' LOOKUP
    expect_failure 'Read-only file system' touch "$WORK/mount/new"
    unmount_view "$WORK/mount"
    say 'with --immutable, each name is requested once'
}

listings
attributes
immutable
rewinds
changes_during_listings
changes_during_listings --direct-io
passed
