#!/usr/bin/env bash
# A source that does not answer: two hundred programs wait for it. Cached bytes can be read
# meanwhile on their processor, both while they arrive and when all of them wait. When the source
# answers again, all of them continue.
#
# The source is a view itself, whose daemon is stopped.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite hang 'hits beside two hundred requests that wait for a source that hangs'
needs_ogive
need taskset perl

readonly WAITING=200

mkdir "$WORK/below"
head -c 1M /dev/urandom >"$WORK/below/cached"
mount_view "$WORK/below" "$WORK/source"
below="$(daemon_of "$WORK/source")"
mount_view "$WORK/source" "$WORK/mount" --direct-io --metadata-ttl 1h
cmp "$WORK/mount/cached" "$WORK/below/cached" || fail 'the view differs from what is below it'
# The number of waiting requests.
mkdir "$WORK/connections"
mount -t fusectl fusectl "$WORK/connections" || skip 'no fusectl on this machine'
remember_mount "$WORK/connections"
connection="$WORK/connections/$(mountpoint -d "$WORK/mount" | cut -d: -f2)"
[ -r "$connection/waiting" ] || fail 'fusectl does not know the mount'

continue_at_exit "$below"

# reads_cached: a program reads cached bytes through an open descriptor, on the first processor.
reads_cached() {
    # shellcheck disable=SC2016 # perl's variables
    timeout 120 taskset -c "$processor" perl -e '
        sysseek(STDIN, 65536 * int(rand(15)), 0);
        sysread(STDIN, my $bytes, 8192) == 8192 or die "short read: $!\n"' <&9
}

processor="$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')"
exec 9<"$WORK/mount/cached"
# All of it by this descriptor: what was changed a moment ago is not kept from one open to the next.
cat <&9 >"$WORK/copy"
cmp "$WORK/copy" "$WORK/below/cached" || fail 'the view differs from what is below it'
reads_cached || fail 'cached bytes cannot be read at all'
stop_process "$below"
for ((number = 0; number < WAITING; number++)); do
    taskset -c "$processor" stat "$WORK/mount/missing.$number" >/dev/null 2>&1 9<&- &
    # The next thread to wait is just being started.
    ((number % 10 != 9)) || reads_cached || fail "a cached read waits while requests come"
done
# all_wait: whether all expected requests wait.
all_wait() {
    [ "$(cat "$connection/waiting")" -ge "$WAITING" ]
}
eventually 120 "$WAITING requests wait for a source that hangs" all_wait
waiting="$(cat "$connection/waiting")"
for _ in 1 2 3 4 5 6 7 8; do
    reads_cached || fail "a cached read waits beside $waiting requests"
done
all_wait || fail 'the source did not hang all the time'
say "cached reads are answered beside $waiting requests that wait"

exec 9<&-
kill -CONT "$below"
end_of_all 120 'an answer to all who waited'
cmp "$WORK/mount/cached" "$WORK/below/cached" || fail 'the view differs afterwards'
[ ! -e "$WORK/mount/missing.0" ] || fail 'a name that is missing was found'
say 'and all of them, when the source answers again'

stop_process "$below"
# A program that creates a name in a directory blocks all lookups there.
mkdir "$WORK/mount/made" &
one_waits() {
    [ "$(cat "$connection/waiting")" -ge 1 ]
}
eventually 60 'a request waits for a source that hangs' one_waits
timeout 60 grep -q '"source"' "$WORK/mount/.ogive/mount" || fail 'the control directory waits'
timeout 60 "$OGIVE" stat "$WORK/mount" 1 1 >"$WORK/said" || fail 'ogive stat waits'
say 'the control directory is found beside a request that makes a name'
kill -CONT "$below"
end_of_all 120 'an answer to whoever made a name'
[ -d "$WORK/below/made" ] || fail 'the name was not made'
trap cleanup EXIT
unmount_view "$WORK/mount"
unmount_view "$WORK/source"
passed
