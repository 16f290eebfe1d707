#!/usr/bin/env bash
# Memory that other programs need: a daemon in a memory cgroup that is much smaller than its largest
# ARC, and a neighbour in the same group that takes half of it. The kernel kills no process, no byte
# is wrong, the cache shrinks while the neighbour is there, and grows again afterwards.
#
# Works with a writable memory controller of cgroup v2 or v1.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite pressure 'a daemon in a memory cgroup, and a neighbour that wants half of it'
needs_ogive
need perl cmp

readonly MIB=$((1 << 20))
readonly LIMIT=$((224 * MIB))
readonly NEIGHBOUR=$((112 * MIB))
# In addition to the ARC: the process itself, and the kernel's charge for the pages it reads.
readonly ASIDE=$((24 * MIB))
readonly FILES=24
readonly FILE=$((16 * MIB))

# make_group: makes the cgroup $GROUP with the limit, of whichever version is there.
make_group() {
    local name="${WORK##*/}"
    if [ -w /sys/fs/cgroup/cgroup.subtree_control ] &&
        grep -qw memory /sys/fs/cgroup/cgroup.controllers; then
        grep -qw memory /sys/fs/cgroup/cgroup.subtree_control ||
            echo +memory >/sys/fs/cgroup/cgroup.subtree_control 2>/dev/null ||
            skip 'the memory controller cannot be handed to a new cgroup here'
        GROUP="/sys/fs/cgroup/$name"
        mkdir "$GROUP" || skip 'no cgroup can be made here'
        echo "$LIMIT" >"$GROUP/memory.max"
        [ ! -e "$GROUP/memory.swap.max" ] || echo 0 >"$GROUP/memory.swap.max"
    elif [ -w /sys/fs/cgroup/memory ]; then
        GROUP="/sys/fs/cgroup/memory/$name"
        mkdir "$GROUP" || skip 'no cgroup can be made here'
        echo "$LIMIT" >"$GROUP/memory.limit_in_bytes"
    else
        skip 'no memory controller of cgroups that this may write to'
    fi
}

# killed: how many processes of the group the kernel has killed for want of memory.
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

# is_below BYTES: whether the ARC's size is.
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

# A group can be removed once it has no process; the daemon leaves it at the unmount.
remove_group() {
    local code=$?
    set +e
    trap - EXIT
    # cleanup ends its shell, and the group has to be looked after once the mount is gone.
    (
        (exit "$code")
        cleanup
    )
    code=$?
    # A suite that failed may have left the neighbour.
    xargs -r kill <"$GROUP/cgroup.procs" 2>/dev/null
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
[ "$full" -gt $((LIMIT / 4)) ] || fail "the ARC holds $full bytes only; the group has room"
[ "$full" -le "$LIMIT" ] || fail "the ARC holds $full bytes in a group of $LIMIT"
[ "$(killed)" -eq 0 ] || fail 'the kernel had to kill'

say "$((full / MIB)) MiB in the ARC; a neighbour takes $((NEIGHBOUR / MIB)) MiB"
mkfifo "$WORK/until"
exec 8<>"$WORK/until"
# As fast as it can: in a group with a hard limit, the kernel kills when it finds nothing to reclaim.
# shellcheck disable=SC2016 # perl's variables
within perl -e '
    my @x;
    push @x, "x" x $ARGV[1] for 1 .. $ARGV[0] / $ARGV[1];
    $| = 1; print "$$\n"; <STDIN>' "$NEIGHBOUR" $((4 * MIB)) \
    <"$WORK/until" 8>&- >"$WORK/neighbour" &
neighbour_job=$!
within_seconds 60 is_below $((LIMIT - NEIGHBOUR - ASIDE / 4)) ||
    fail "the ARC keeps $(size) bytes beside a neighbour with $NEIGHBOUR of $LIMIT"
eventually 60 'the neighbour gets its memory' test -s "$WORK/neighbour"
neighbour="$(cat "$WORK/neighbour")"
[ -n "$neighbour" ] || fail 'the neighbour did not get its memory'
small="$(size)"
say "$((small / MIB)) MiB in the ARC beside it"
read_all
[ "$(size)" -le $((LIMIT - NEIGHBOUR)) ] || fail "the ARC grew to $(size) beside the neighbour"
kill -0 "$neighbour" || fail 'the neighbour is gone'
[ "$(killed)" -eq 0 ] || fail 'the kernel had to kill'

# It has its memory as long as its standard input is open.
exec 8>&-
end_of 60 'the end of the neighbour' "$neighbour_job" || fail 'the neighbour was killed'
# The cache grows with reads, and slowly for a while after a shrink.
end=$((SECONDS + 120))
read_all
until [ "$(size)" -gt $((small + ASIDE)) ]; do
    [ "$SECONDS" -lt "$end" ] ||
        fail "the ARC stays at $(size) bytes after the neighbour has gone"
    sleep 1
    read_all
done
say "$(($(size) / MIB)) MiB in the ARC after it has gone"
[ "$(killed)" -eq 0 ] || fail 'the kernel had to kill'
kill -0 "$daemon" || fail 'the daemon is gone'

# told EVENT: the number of lines of the log with this event and its figures.
told() {
    perl -MJSON::PP -ne '
        BEGIN { $event = shift; $count = 0 }
        $line = decode_json($_);
        next unless ($line->{event} // "") eq $event;
        $count++;
        $line->{target_bytes} =~ /^\d+$/ && $line->{level} eq "notice" or die "$_\n";
        END { print "$count\n" }' "$1" "$WORK/log"
}
# The log reports its beginning and, a minute after, its end: at most two lines a minute.
end=$((SECONDS + 180))
until [ "$(told memory_ample)" -ge 1 ] || [ "$SECONDS" -gt "$end" ]; do
    read_all
    sleep 1
done
[ "$(told memory_short)" -ge 1 ] || fail "not told that memory is short: $(cat "$WORK/log")"
[ "$(told memory_ample)" -ge 1 ] || fail "not told that it is not any more: $(cat "$WORK/log")"
minutes=$(((SECONDS - mounted_at) / 60 + 1))
[ "$(told memory_short)" -le "$minutes" ] || fail "told more than once a minute: $(cat "$WORK/log")"
say "told in $(told memory_short) + $(told memory_ample) lines"

# A limit of cgroup v1 below what is used is refused at once; the cache gives way, and whoever tries
# again soon gets it.
if [ -e "$GROUP/memory.limit_in_bytes" ]; then
    lower=$(($(size) / 2 + ASIDE))
    takes_limit() {
        echo once >>"$WORK/tries"
        echo "$lower" >"$GROUP/memory.limit_in_bytes"
    }
    within_seconds 60 takes_limit || fail "a limit of $lower is refused still, the ARC has $(size)"
    [ "$(size)" -lt "$lower" ] || fail "the ARC holds $(size) in a group of $lower"
    [ "$(killed)" -eq 0 ] || fail 'the kernel had to kill'
    tries="$(wc -l <"$WORK/tries")"
    say "a limit of $((lower / MIB)) MiB was taken when it was written for the ${tries}th time"
fi
passed
