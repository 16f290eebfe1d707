#!/usr/bin/env bash
# A source that does not answer, and its waiting programs. A hundred programs in the middle of
# operations of every kind die of kill -9. Cached bytes and the control directory can be read
# meanwhile. --origin-timeout turns waiting into EIO, an unmount ends, and everything works when the
# source answers again.
#
# The source is a view itself, whose daemon is stopped.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite hung 'a source that hangs: killed waiters, timeouts, the end of the mount'
needs_ogive
need perl timeout

readonly WAITERS=100

mkdir -p "$WORK/below/directory" "$WORK/below/full" "$WORK/connections"
head -c 1M /dev/urandom >"$WORK/below/cached"
head -c 1M /dev/urandom >"$WORK/below/uncached"
for ((number = 0; number < WAITERS; number++)); do
    echo "$number" >"$WORK/below/full/$number"
done
# Nothing of it is cached.
mount_view "$WORK/below" "$WORK/source" --metadata-ttl 0 --negative-ttl 0
below="$(daemon_of "$WORK/source")"
mount -t fusectl fusectl "$WORK/connections" || skip 'no fusectl on this machine'
remember_mount "$WORK/connections"

continue_at_exit "$below"

# hang: when this returns, the source does not answer any more.
hang() {
    stop_process "$below"
}

# waiting: the number of waiting requests of the mount.
waiting() {
    cat "$connection/waiting"
}

# wait_until COUNT: until so many requests wait.
wait_until() {
    eventually 60 "$1 requests wait for a source that hangs" waiting_is "$1"
}

waiting_is() {
    [ "$(waiting)" -ge "$1" ]
}

# look: the number of the mount's connection.
look() {
    connection="$WORK/connections/$(mountpoint -d "$WORK/mount" | cut -d: -f2)"
    [ -r "$connection/waiting" ] || fail 'fusectl does not know the mount'
}

# operation NUMBER: one that asks the source; after the last kind, the first follows again.
operation() {
    local mount="$WORK/mount" number="$1"
    case $((number % 10)) in
        0) exec stat "$mount/missing.$number" ;;
        1) exec cat "$mount/full/$number" ;;
        2) exec ls -l "$mount/directory" ;;
        3) exec touch "$mount/full/new.$number" ;;
        4) exec rm "$mount/full/$number" ;;
        5) exec mkdir "$mount/full/made.$number" ;;
        6) exec mv "$mount/full/$number" "$mount/full/moved.$number" ;;
        7) exec ln -s target "$mount/full/link.$number" ;;
        8) exec df "$mount" ;;
        9) exec dd if=/dev/zero of="$mount/full/$number" bs=4k count=1 conv=notrunc status=none ;;
    esac
}

# reads_control: a separate program reads the counters.
reads_control() {
    timeout 60 cat "$WORK/mount/.ogive/arcstats" | grep -q '^hits ' || fail "$1"
}

# tools_answer: statistics come from the mount, without its source.
tools_answer() {
    local path
    for path in "$WORK/mount" "$WORK/mount/directory/below"; do
        timeout 60 "$OGIVE" stat "$path" 1 1 >"$WORK/said" 2>&1 ||
            fail "ogive stat of a source that hangs: $(cat "$WORK/said")"
    done
}

killed_waiters() {
    local options=("$@") number pid pids=() left
    mount_view "$WORK/source" "$WORK/mount" "${options[@]}"
    look
    exec 9<"$WORK/mount/cached"
    cat <&9 >"$WORK/copy"
    cmp "$WORK/copy" "$WORK/below/cached" || fail 'the view differs from what is below it'
    hang
    for ((number = 0; number < WAITERS; number++)); do
        operation "$number" >/dev/null 2>&1 9<&- &
        pids+=($!)
        # Without a line about each kill.
        disown "$!"
    done
    # Most wait for each other in the kernel: for a lookup in progress, for a directory.
    wait_until 10
    # shellcheck disable=SC2016 # a variable of Perl
    timeout 60 \
        perl -e 'sysseek(STDIN, 65536, 0); sysread(STDIN, $bytes, 8192) == 8192 or die' <&9 ||
        fail 'cached bytes cannot be read beside those that wait'
    reads_control 'the control directory does not answer beside those that wait'
    tools_answer
    for pid in "${pids[@]}"; do
        [ -d "/proc/$pid" ] || fail 'a program did not wait for the source'
    done
    kill -9 "${pids[@]}"
    left=0
    for pid in "${pids[@]}"; do
        wait_gone "$pid" || left=$((left + 1))
    done
    [ "$left" -eq 0 ] || fail "$left of $WAITERS programs survived kill -9 (${options[*]})"
    reads_control 'the control directory does not answer afterwards'
    kill -CONT "$below"
    end_of_all 60 'an answer to all who waited'
    exec 9<&-
    cmp "$WORK/mount/uncached" "$WORK/below/uncached" || fail 'the view differs afterwards'
    echo new >"$WORK/mount/after" || fail 'nothing can be written afterwards'
    [ "$(cat "$WORK/below/after")" = new ] || fail 'what was written afterwards is not there'
    # Requests of killed programs may still be in progress.
    within_seconds 60 diff -r "$WORK/mount/full" "$WORK/below/full" ||
        fail "the view differs: $(diff -r "$WORK/mount/full" "$WORK/below/full" | head -n 5)"
    # No file opened for a killed program is still open.
    unmount_view "$WORK/mount"
    say "$WAITERS of $WAITERS waiters died, and the mount healed (${options[*]:-page cache})"
}

# waits_to_be_killed PID: whether it sleeps where no other signal wakes it.
waits_to_be_killed() {
    grep -q '^State:.D' "/proc/$1/status"
}

signals_that_do_not_kill() {
    mount_view "$WORK/source" "$WORK/mount" --metadata-ttl 0
    look
    hang
    # shellcheck disable=SC2016 # perl's variables
    perl -e '
        $SIG{ALRM} = sub { $rung++ };
        use Time::HiRes qw(setitimer ITIMER_REAL);
        setitimer(ITIMER_REAL, 0.05, 0.05);
        my @found = stat("$ARGV[0]/uncached") or die "stat: $!\n";
        die "no signal came\n" unless $rung;' "$WORK/mount" 2>"$WORK/said" &
    local pid=$!
    wait_until 1
    sleep 1.5
    [ -d "/proc/$pid" ] || fail "a program was failed by a timer: $(cat "$WORK/said")"
    kill -CONT "$below"
    end_of 60 'an answer to a program with a timer' "$pid" ||
        fail "a program was failed by a timer: $(cat "$WORK/said")"
    # Now one that was interrupted before it is killed.
    hang
    # shellcheck disable=SC2016 # perl's variables
    perl -e '$SIG{USR1} = sub {}; stat("$ARGV[0]/directory")' "$WORK/mount" &
    pid=$!
    wait_until 1
    kill -USR1 "$pid"
    # After an interrupt, only a kill ends its wait.
    eventually 60 'the signal has come' waits_to_be_killed "$pid"
    kill -9 "$pid"
    wait_gone "$pid" || fail 'a program that had got a signal before survived kill -9'
    kill -CONT "$below"
    end_of_all 60 'an answer to all who waited'
    unmount_view "$WORK/mount"
    say 'signals that do not kill fail nobody'
}

timeouts() {
    mount_view "$WORK/source" "$WORK/mount" --origin-timeout 1s --metadata-ttl 0 "$@"
    look
    [ "$(cat "$WORK/mount/full/1")" = 1 ] || fail 'nothing can be read before'
    hang
    local pids=() pid number
    for number in 1 2 3 4 5; do
        timeout 60 cat "$WORK/mount/full/1$number" >/dev/null 2>"$WORK/said.$number" &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do
        ! end_of 120 'the end of a read' "$pid" || fail 'bytes came from a source that hangs'
    done
    for number in 1 2 3 4 5; do
        grep -q 'Input/output error' "$WORK/said.$number" ||
            fail "not EIO: $(cat "$WORK/said.$number")"
    done
    kill -CONT "$below"
    for number in 1 2 3 4 5; do
        eventually 60 'the mount heals' grep -qx "1$number" "$WORK/mount/full/1$number"
    done
    unmount_view "$WORK/mount"
    say 'what waits for too long is EIO, until the source answers again'
}

# asks_source PID: whether a daemon has asked its source and waits for the answer. Not every kernel
# shows where a thread waits; this shell's own entry tells whether this one does.
asks_source() {
    grep -l request_wait_answer "/proc/$1/task/"*/wchan || [ "$(cat "/proc/$$/wchan")" = 0 ]
}

the_end() {
    local daemon pid
    mount_view "$WORK/source" "$WORK/mount" --metadata-ttl 0 "$@"
    look
    daemon="$(daemon_of "$WORK/mount")"
    hang
    stat "$WORK/mount/uncached" >/dev/null 2>&1 &
    pid=$!
    wait_until 1
    eventually 60 'the daemon waits for its source' asks_source "$daemon"
    kill -TERM "$daemon"
    eventually 60 'SIGTERM ends a mount whose source hangs' is_not_mounted "$WORK/mount"
    wait_gone "$pid" || fail 'a program waits for a mount that is gone'
    kill -CONT "$below"
    wait_gone "$daemon" || fail 'the daemon does not end though its source answers again'
    end_of_all 60 'the end of who waited'
    mount_view "$WORK/source" "$WORK/mount" --metadata-ttl 0 "$@"
    look
    hang
    stat "$WORK/mount/uncached" >/dev/null 2>&1 &
    pid=$!
    wait_until 1
    kill -9 "$pid"
    wait_gone "$pid" || fail 'a program survived kill -9'
    wait "$pid" 2>/dev/null || :
    # Its process hangs in the source, and the command reports that.
    timeout 60 "$OGIVE" unmount --wait 2s "$WORK/mount" 2>/dev/null || :
    ! is_mounted "$WORK/mount" || fail 'it cannot be unmounted while its source hangs'
    kill -CONT "$below"
    end_of_all 60 'the end of who waited'
    say 'a mount ends though its source hangs'
}

killed_waiters
killed_waiters --direct-io --metadata-ttl 0
signals_that_do_not_kill
timeouts
timeouts --direct-io
the_end
the_end --direct-io
trap cleanup EXIT
unmount_view "$WORK/source"
passed
