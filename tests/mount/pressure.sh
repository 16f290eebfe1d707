#!/usr/bin/env bash
# Memory pressure: a daemon runs in a memory cgroup that is much smaller than its --arc-max, and a
# neighbour allocates half of the group. No process is killed, and every byte is right. The cache
# shrinks while the neighbour runs, and grows again afterwards.
#
# Works with a writable memory controller of cgroup v2 or v1.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite pressure 'a daemon in a memory cgroup, and a neighbour that allocates half of it'
needs_ogive
need perl cmp

readonly MIB=$((1 << 20))
readonly LIMIT=$((224 * MIB))
readonly NEIGHBOUR=$((112 * MIB))
# Memory outside the ARC: the process itself, and page cache that the kernel charges to the group.
readonly OVERHEAD=$((24 * MIB))
readonly FILES=24
readonly FILE=$((16 * MIB))

# make_group: makes the cgroup $GROUP with the limit, in v2 or v1.
make_group() {
    local name="${WORK##*/}"
    if [ -w /sys/fs/cgroup/cgroup.subtree_control ] &&
        grep -qw memory /sys/fs/cgroup/cgroup.controllers; then
        grep -qw memory /sys/fs/cgroup/cgroup.subtree_control ||
            echo +memory >/sys/fs/cgroup/cgroup.subtree_control 2>/dev/null ||
            skip 'the memory controller cannot be enabled for a new cgroup here'
        GROUP="/sys/fs/cgroup/$name"
        mkdir "$GROUP" || skip 'no cgroup can be made here'
        echo "$LIMIT" >"$GROUP/memory.max"
        [ ! -e "$GROUP/memory.swap.max" ] || echo 0 >"$GROUP/memory.swap.max"
    elif [ -w /sys/fs/cgroup/memory ]; then
        GROUP="/sys/fs/cgroup/memory/$name"
        mkdir "$GROUP" || skip 'no cgroup can be made here'
        echo "$LIMIT" >"$GROUP/memory.limit_in_bytes"
    else
        skip 'no writable memory controller of cgroups'
    fi
}

# killed: the number of processes of the group that the OOM killer has killed.
killed() {
    if [ -e "$GROUP/memory.events" ]; then
        awk '$1 == "oom_kill" { print $2 }' "$GROUP/memory.events"
    else
        awk '$1 == "oom_kill" { print $2 }' "$GROUP/memory.oom_control"
    fi
}

# within COMMAND...: runs a command as a member of the group.
within() {
    bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$GROUP" "$@"
}

# size: bytes in the ARC.
size() {
    awk '$1 == "size" { print $3 }' "$WORK/mnt/.ogive/arcstats"
}

# is_below BYTES: whether the ARC is smaller than BYTES.
is_below() {
    [ "$(size)" -lt "$1" ]
}

# read_all: reads every file through the view and compares it with the origin.
read_all() {
    local file
    for ((file = 0; file < FILES; file++)); do
        cmp "$WORK/src/$file" "$WORK/mnt/$file" || fail "file $file differs"
    done
}

# Removes the group once it has no processes; the daemon ends with its mount.
remove_group() {
    local code=$?
    set +e
    trap - EXIT
    # In a subshell, because cleanup exits, and the group can go only after the mount.
    (
        (exit "$code")
        cleanup
    )
    code=$?
    # A failed suite may leave the neighbour running.
    xargs -r kill <"$GROUP/cgroup.procs" 2>/dev/null
    # The directory of the output is gone.
    LAST_OUTPUT=/dev/null
    within_seconds 60 rmdir "$GROUP"
    exit "$code"
}

make_group
trap remove_group EXIT
mkdir "$WORK/src" "$WORK/mnt"
for ((file = 0; file < FILES; file++)); do
    head -c "$FILE" /dev/urandom >"$WORK/src/$file"
done

remember_mount "$WORK/mnt"
within "$OGIVE" mount --direct-io --arc-max 1G --log-file "$WORK/log" --log-format json \
    "$WORK/src" "$WORK/mnt"
mounted_at="$SECONDS"
daemon="$(daemon_of "$WORK/mnt")"
grep -q "$(basename "$GROUP")" "/proc/$daemon/cgroup" || fail 'the daemon is not in the group'

say "reads $((FILES * FILE / MIB)) MiB through a group of $((LIMIT / MIB)) MiB"
read_all
read_all
full="$(size)"
[ "$full" -gt $((LIMIT / 4)) ] || fail "the ARC has only $full bytes, though the group has room"
[ "$full" -le "$LIMIT" ] || fail "the ARC holds $full bytes in a group of $LIMIT"
[ "$(killed)" -eq 0 ] || fail 'the kernel had to kill'

say "$((full / MIB)) MiB in the ARC; a neighbour takes $((NEIGHBOUR / MIB)) MiB"
mkfifo "$WORK/until"
exec 8<>"$WORK/until"
# It allocates without pauses: if the cache shrinks too slowly, the kernel kills a process.
# shellcheck disable=SC2016 # perl's variables
within perl -e '
    my @x;
    push @x, "x" x $ARGV[1] for 1 .. $ARGV[0] / $ARGV[1];
    $| = 1; print "$$\n"; <STDIN>' "$NEIGHBOUR" $((4 * MIB)) \
    <"$WORK/until" 8>&- >"$WORK/neighbour" &
neighbour_job=$!
within_seconds 60 is_below $((LIMIT - NEIGHBOUR - OVERHEAD / 4)) ||
    fail "the ARC keeps $(size) bytes next to a neighbour with $NEIGHBOUR of $LIMIT"
eventually 60 'the neighbour gets its memory' test -s "$WORK/neighbour"
neighbour="$(cat "$WORK/neighbour")"
[ -n "$neighbour" ] || fail 'the neighbour did not get its memory'
small="$(size)"
say "$((small / MIB)) MiB in the ARC next to it"
read_all
[ "$(size)" -le $((LIMIT - NEIGHBOUR)) ] || fail "the ARC grew to $(size) next to the neighbour"
kill -0 "$neighbour" || fail 'the neighbour is gone'
[ "$(killed)" -eq 0 ] || fail 'the kernel had to kill'

# The neighbour ends when its standard input is closed.
exec 8>&-
end_of 60 'the end of the neighbour' "$neighbour_job" || fail 'the neighbour was killed'
# The cache grows only with reads, and slowly for a while after it has shrunk.
end=$((SECONDS + 120))
read_all
until [ "$(size)" -gt $((small + OVERHEAD)) ]; do
    [ "$SECONDS" -lt "$end" ] ||
        fail "the ARC stays at $(size) bytes after the neighbour has gone"
    sleep 1
    read_all
done
say "$(($(size) / MIB)) MiB in the ARC after it has gone"
[ "$(killed)" -eq 0 ] || fail 'the kernel had to kill'
kill -0 "$daemon" || fail 'the daemon is gone'

# logged EVENT: the number of log lines with this event. Each must have its figures.
logged() {
    perl -MJSON::PP -ne '
        BEGIN { $event = shift; $count = 0 }
        $line = decode_json($_);
        next unless ($line->{event} // "") eq $event;
        $count++;
        $line->{target_bytes} =~ /^\d+$/ && $line->{level} eq "notice" or die "$_\n";
        END { print "$count\n" }' "$1" "$WORK/log"
}
# The daemon logs the start of a shortage, and its end a minute later: two lines a minute at most.
end=$((SECONDS + 180))
until [ "$(logged memory_ample)" -ge 1 ] || [ "$SECONDS" -gt "$end" ]; do
    read_all
    sleep 1
done
[ "$(logged memory_short)" -ge 1 ] || fail "no line about a shortage: $(cat "$WORK/log")"
[ "$(logged memory_ample)" -ge 1 ] || fail "no line about its end: $(cat "$WORK/log")"
minutes=$(((SECONDS - mounted_at) / 60 + 1))
[ "$(logged memory_short)" -le "$minutes" ] || fail "more than a line a minute: $(cat "$WORK/log")"
say "$(logged memory_short) + $(logged memory_ample) lines in the log"

# cgroup v1 refuses a limit below the current use. The attempt shrinks the cache, so that a later
# attempt succeeds.
if [ -e "$GROUP/memory.limit_in_bytes" ]; then
    lower=$(($(size) / 2 + OVERHEAD))
    lower_limit() {
        echo once >>"$WORK/tries"
        echo "$lower" >"$GROUP/memory.limit_in_bytes"
    }
    within_seconds 60 lower_limit || fail "a limit of $lower stays refused, the ARC has $(size)"
    [ "$(size)" -lt "$lower" ] || fail "the ARC holds $(size) in a group of $lower"
    [ "$(killed)" -eq 0 ] || fail 'the kernel had to kill'
    tries="$(wc -l <"$WORK/tries")"
    say "a limit of $((lower / MIB)) MiB was accepted at attempt $tries"
fi
passed
