#!/usr/bin/env bash
# A source that does not answer while two hundred requests wait for it. Cached bytes stay readable,
# on the processor of these requests, while the requests arrive and while all of them wait. When the
# source answers again, all requests are answered.
#
# The source is itself a view, and the suite stops its daemon.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite hits-during-hang 'hits while two hundred requests wait for a source that hangs'
needs_ogive
need taskset perl

readonly WAITING=200

mkdir "$WORK/below"
head -c 1M /dev/urandom >"$WORK/below/cached"
mount_view "$WORK/below" "$WORK/source"
below="$(daemon_of "$WORK/source")"
mount_view "$WORK/source" "$WORK/mount" --direct-io --metadata-ttl 1h
cmp "$WORK/mount/cached" "$WORK/below/cached" || fail 'the view differs from what is below it'
find_connection "$WORK/mount"
continue_at_exit "$below"

# reads_cached: a program on the first processor reads cached bytes through an open descriptor.
reads_cached() {
    # shellcheck disable=SC2016 # perl's variables
    timeout 120 taskset -c "$processor" perl -e '
        sysseek(STDIN, 65536 * int(rand(15)), 0);
        sysread(STDIN, my $bytes, 8192) == 8192 or die "short read: $!\n"' <&9
}

processor="$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')"
exec 9<"$WORK/mount/cached"
# Through the same descriptor, because a new open drops records of a file that has just changed.
cat <&9 >"$WORK/copy"
cmp "$WORK/copy" "$WORK/below/cached" || fail 'the view differs from what is below it'
reads_cached || fail 'cached bytes cannot be read at all'
stop_process "$below"
for ((number = 0; number < WAITING; number++)); do
    taskset -c "$processor" stat "$WORK/mount/missing.$number" >/dev/null 2>&1 9<&- &
    # The daemon may be starting a thread for the next request just now.
    ((number % 10 != 9)) || reads_cached || fail 'a cached read waits while requests arrive'
done
wait_for_waiting "$WAITING"
waiting="$(cat "$connection/waiting")"
for _ in 1 2 3 4 5 6 7 8; do
    reads_cached || fail "a cached read waits while $waiting requests wait"
done
is_waiting "$WAITING" || fail 'the source did not hang all the time'
say "cached reads are answered while $waiting requests wait"

exec 9<&-
kill -CONT "$below"
end_of_all 120 'an answer to every request that waited'
cmp "$WORK/mount/cached" "$WORK/below/cached" || fail 'the view differs afterwards'
[ ! -e "$WORK/mount/missing.0" ] || fail 'a missing name was found'
say 'all requests are answered when the source answers again'

stop_process "$below"
# A program that creates a name holds the directory's lock in the kernel, so lookups there wait.
mkdir "$WORK/mount/made" &
wait_for_waiting 1
timeout 60 grep -q '"source"' "$WORK/mount/.ogive/mount" || fail 'the control directory waits'
timeout 60 "$OGIVE" stat "$WORK/mount" 1 1 >"$WORK/output" || fail 'ogive stat waits'
say 'the control directory answers while a request creates a name'
kill -CONT "$below"
end_of_all 120 'an answer to the request that creates a name'
[ -d "$WORK/below/made" ] || fail 'the name was not created'
trap cleanup EXIT
unmount_view "$WORK/mount"
unmount_view "$WORK/source"
passed
