#!/usr/bin/env bash
# The kernel's caches of directories, and that they never show old contents for too long. The
# kernel's own trace event counts requests, and many programs read and rewind the directory while it
# changes behind the mount.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite requests 'requests that need not be made, and names that the kernel keeps'
needs_ogive
need perl

readonly DIRECTORIES=20 FILES=600 ROUNDS=60

mkdir -p "$WORK/source" "$WORK/tracing"
mount -t tracefs tracefs "$WORK/tracing" || skip 'no tracefs on this machine'
remember_mount "$WORK/tracing"
events="$WORK/tracing/instances/${WORK##*/}"
[ -d "$WORK/tracing/events/fuse/fuse_request_send" ] ||
    skip 'this kernel does not trace FUSE requests'
mkdir "$events" || skip 'no buffer for traces can be made'
trap finish EXIT

finish() {
    local code=$?
    set +e
    rmdir "$events"
    (exit "$code")
    cleanup
}

# counted COMMAND...: runs a command; $WORK/asked gets its requests, one kind a line.
counted() {
    local event="$events/events/fuse/fuse_request_send"
    echo "connection==$(mountpoint -d "$WORK/mount" | cut -d: -f2)" >"$event/filter"
    : >"$events/trace"
    echo 1 >"$event/enable"
    "$@" >"$WORK/said"
    echo 0 >"$event/enable"
    sed -n 's/.*(FUSE_\([A-Z0-9_]*\)).*/\1/p' "$events/trace" >"$WORK/asked"
}

# asked KIND...: the number of requests of these kinds.
asked() {
    local kind count=0
    for kind in "$@"; do
        count=$((count + $(grep -cx "$kind" "$WORK/asked" || true)))
    done
    echo "$count"
}

# walk: the sizes of all files below the mount.
walk() {
    find "$WORK/mount" -type f -printf '%s\n'
}

# absent: looks for a name that is missing.
absent() {
    [ ! -e "$WORK/mount/missing" ] || fail 'a name that is missing was found'
}

# expect COUNT WHAT KIND...: the number of requests must be COUNT.
expect() {
    local count="$1" what="$2"
    shift 2
    [ "$(asked "$@")" -eq "$count" ] ||
        fail "$what: not $count, but $(sort "$WORK/asked" | uniq -c | tr -s ' \n' ' ')"
}

for ((number = 0; number < DIRECTORIES; number++)); do
    mkdir "$WORK/source/$number"
    touch "$WORK/source/$number/"{1,2,3,4,5}
done
sleep 0.2

listings() {
    mount_view "$WORK/source" "$WORK/mount" --metadata-ttl 1h --negative-ttl 1h --racy-window 50ms
    counted walk
    [ "$(wc -l <"$WORK/said")" -eq $((5 * DIRECTORIES)) ] || fail 'not all files were found'
    # A directory's second request finds that it has ended.
    expect $((2 * (DIRECTORIES + 1))) 'a first walk' READDIR READDIRPLUS
    # Reading has changed their access times.
    walk >"$WORK/said"
    counted walk
    expect 0 'a walk of directories that have not changed' READDIR READDIRPLUS LOOKUP GETATTR
    touch "$WORK/source/7/new"
    sleep 0.2
    counted walk
    [ "$(wc -l <"$WORK/said")" -eq $((5 * DIRECTORIES + 1)) ] || fail 'a new file was not found'
    expect 2 'a walk after a change in one directory' READDIR READDIRPLUS
    rm "$WORK/source/7/new"
    unmount_view "$WORK/mount"
    say 'names are asked for again where a directory has changed, and nowhere else'
}

# asks_by_directory: whether a walk of names whose attributes have expired does.
asks_by_directory() {
    sleep 1.5
    counted walk
    [ "$(asked LOOKUP GETATTR)" -le $((DIRECTORIES + 2)) ]
}

# Attributes come with names: once they expire, one request for each directory fetches all of them.
# Kept names would cost a request for each file.
attributes() {
    mount_view "$WORK/source" "$WORK/mount" --racy-window 50ms
    walk >"$WORK/said"
    # A walk that takes longer than the TTL asks once more.
    within_seconds 60 asks_by_directory ||
        fail "a walk of names known for long asks file by file: $(sort "$WORK/asked" | uniq -c)"
    unmount_view "$WORK/mount"
    mount_view "$WORK/source" "$WORK/mount" --metadata-ttl 0 --negative-ttl 0 --racy-window 50ms
    walk >"$WORK/said"
    counted walk
    [ "$(asked READDIR READDIRPLUS)" -ge $((DIRECTORIES + 1)) ] ||
        fail 'names were kept, though nothing is to be believed'
    unmount_view "$WORK/mount"
    say 'names are kept as long as what is known of their files'
}

# Programs that read a directory in parts, rewind and close it while it changes behind the mount:
# each whole listing has every name that never changes once, and one begun after a change shows it.
beside_changes() {
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
            die "round $round: a name has gone\n" unless listed($name) && listed($name);
            unlink "$behind/$name" or die "$!\n";
            die "round $round: a name that was removed is listed\n" if listed($name);
            select undef, undef, undef, 0.03 if $round % 2 == 0;
            die "round $round: a name that was removed came back\n" if listed($name);
        }' "$directory" "$WORK/mount/many" "$ROUNDS" || fail 'a listing was of before a change'
    touch "$WORK/stop"
    for reader in "${!readers[@]}"; do
        end_of 60 'the end of a reader' "${readers[reader]}" ||
            fail "a reader: $(cat "$WORK/reader.$((reader + 1))")"
    done
    rm -r "$WORK/stop" "$directory"
    unmount_view "$WORK/mount"
    say "$ROUNDS changes behind the mount were listed at once (${*:-page cache})"
}

# A program that keeps a directory open and rewinds it now and then sees it change.
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
        fail 'a directory that is kept open does not change'
    unmount_view "$WORK/mount"
    say 'a directory that is kept open and rewound is seen to change'
}

# A source that promises never to change is asked once, and nothing can be changed.
never() {
    mount_view "$WORK/source" "$WORK/mount" --immutable --racy-window 50ms
    walk >"$WORK/said"
    absent
    walk >"$WORK/said"
    sleep 1.5
    counted walk
    expect 0 'a walk of what never changes' READDIR READDIRPLUS LOOKUP GETATTR
    counted absent
    expect 0 'a name that is known to be missing' LOOKUP
    expect_failure 'Read-only file system' touch "$WORK/mount/new"
    unmount_view "$WORK/mount"
    say 'what never changes is asked for once'
}

listings
attributes
never
rewinds
beside_changes
beside_changes --direct-io
passed
