#!/usr/bin/env bash
# A source that does not answer. A hundred programs that wait in operations of every kind die of
# kill -9. Meanwhile, cached bytes and the control directory stay readable. --origin-timeout ends
# waiting with EIO, unmounting works, and all is well once the source answers again.
#
# The source is itself a view, and the suite stops its daemon.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite hanging-source 'a source that hangs: killed waiters, timeouts, the end of the mount'
needs_ogive
need perl timeout

readonly WAITERS=100

mkdir -p "$WORK/below/directory" "$WORK/below/full"
head -c 1M /dev/urandom >"$WORK/below/cached"
head -c 1M /dev/urandom >"$WORK/below/uncached"
for ((number = 0; number < WAITERS; number++)); do
    echo "$number" >"$WORK/below/full/$number"
done
# Without TTLs, each lookup goes to the daemon below.
mount_view "$WORK/below" "$WORK/source" --metadata-ttl 0 --negative-ttl 0
below="$(daemon_of "$WORK/source")"
continue_at_exit "$below"

# hang: stops the source's daemon.
hang() {
    stop_process "$below"
}

# operation NUMBER: one of ten operations that need the source.
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

# reads_control TEXT: the counters must be readable; otherwise the suite fails with the text.
reads_control() {
    timeout 60 cat "$WORK/mount/.ogive/arcstats" | grep -q '^hits ' || fail "$1"
}

# tools_answer: `ogive stat` works without the source.
tools_answer() {
    local path
    for path in "$WORK/mount" "$WORK/mount/directory/below"; do
        timeout 60 "$OGIVE" stat "$path" 1 1 >"$WORK/output" 2>&1 ||
            fail "ogive stat of a source that hangs: $(cat "$WORK/output")"
    done
}

killed_waiters() {
    local options=("$@") number pid pids=() left
    mount_view "$WORK/source" "$WORK/mount" "${options[@]}"
    find_connection "$WORK/mount"
    exec 9<"$WORK/mount/cached"
    cat <&9 >"$WORK/copy"
    cmp "$WORK/copy" "$WORK/below/cached" || fail 'the view differs from its source'
    hang
    for ((number = 0; number < WAITERS; number++)); do
        operation "$number" >/dev/null 2>&1 9<&- &
        pids+=($!)
        # bash would print a line for each killed job.
        disown "$!"
    done
    # Most wait in the kernel for another program's lookup or directory lock, not for the daemon.
    wait_for_waiting 10
    # shellcheck disable=SC2016 # a variable of Perl
    timeout 60 \
        perl -e 'sysseek(STDIN, 65536, 0); sysread(STDIN, $bytes, 8192) == 8192 or die' <&9 ||
        fail 'cached bytes cannot be read while other programs wait'
    reads_control 'the control directory does not answer while programs wait'
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
    end_of_all 60 'an answer to every program that waited'
    exec 9<&-
    cmp "$WORK/mount/uncached" "$WORK/below/uncached" || fail 'the view differs afterwards'
    echo new >"$WORK/mount/after" || fail 'nothing can be written afterwards'
    [ "$(cat "$WORK/below/after")" = new ] || fail 'a write afterwards did not reach the source'
    # Operations of killed programs may still be running.
    within_seconds 60 diff -r "$WORK/mount/full" "$WORK/below/full" ||
        fail "the view differs: $(diff -r "$WORK/mount/full" "$WORK/below/full" | head -n 5)"
    # A file that a killed program left open would keep the mount busy.
    unmount_view "$WORK/mount"
    say "$WAITERS of $WAITERS waiters died, and the mount healed (${options[*]:-page cache})"
}

# is_uninterruptible PID: whether it sleeps so that only a fatal signal wakes it.
is_uninterruptible() {
    grep -q '^State:.D' "/proc/$1/status"
}

signals_that_do_not_kill() {
    mount_view "$WORK/source" "$WORK/mount" --metadata-ttl 0
    find_connection "$WORK/mount"
    hang
    # shellcheck disable=SC2016 # perl's variables
    perl -e '
        $SIG{ALRM} = sub { $rung++ };
        use Time::HiRes qw(setitimer ITIMER_REAL);
        setitimer(ITIMER_REAL, 0.05, 0.05);
        my @found = stat("$ARGV[0]/uncached") or die "stat: $!\n";
        die "no signal came\n" unless $rung;' "$WORK/mount" 2>"$WORK/output" &
    local pid=$!
    wait_for_waiting 1
    sleep 1.5
    [ -d "/proc/$pid" ] || fail "a timer's signal ended an operation: $(cat "$WORK/output")"
    kill -CONT "$below"
    end_of 60 'an answer to a program with a timer' "$pid" ||
        fail "a timer's signal ended an operation: $(cat "$WORK/output")"
    # Now a program that gets a harmless signal before it is killed.
    hang
    # shellcheck disable=SC2016 # perl's variables
    perl -e '$SIG{USR1} = sub {}; stat("$ARGV[0]/directory")' "$WORK/mount" &
    pid=$!
    wait_for_waiting 1
    kill -USR1 "$pid"
    # After the first signal, the kernel lets only a fatal one end the wait.
    eventually 60 'the signal has come' is_uninterruptible "$pid"
    kill -9 "$pid"
    wait_gone "$pid" || fail 'a program with an earlier signal survived kill -9'
    kill -CONT "$below"
    end_of_all 60 'an answer to every program that waited'
    unmount_view "$WORK/mount"
    say 'harmless signals fail no operation'
}

timeouts() {
    mount_view "$WORK/source" "$WORK/mount" --origin-timeout 1s --metadata-ttl 0 "$@"
    find_connection "$WORK/mount"
    [ "$(cat "$WORK/mount/full/1")" = 1 ] || fail 'nothing can be read before'
    hang
    local pids=() pid number
    for number in 1 2 3 4 5; do
        timeout 60 cat "$WORK/mount/full/1$number" >/dev/null 2>"$WORK/error.$number" &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do
        ! end_of 120 'the end of a read' "$pid" || fail 'a read from a source that hangs succeeded'
    done
    for number in 1 2 3 4 5; do
        grep -q 'Input/output error' "$WORK/error.$number" ||
            fail "not EIO: $(cat "$WORK/error.$number")"
    done
    kill -CONT "$below"
    for number in 1 2 3 4 5; do
        eventually 60 'the mount heals' grep -qx "1$number" "$WORK/mount/full/1$number"
    done
    unmount_view "$WORK/mount"
    say 'operations end with EIO after the timeout, until the source answers again'
}

# asks_source PID: whether a daemon waits for an answer of its source. Some kernels show 0 as every
# thread's wait channel, also for this shell; there it returns true at once.
asks_source() {
    grep -l request_wait_answer "/proc/$1/task/"*/wchan || [ "$(cat "/proc/$$/wchan")" = 0 ]
}

unmounts() {
    local daemon pid
    mount_view "$WORK/source" "$WORK/mount" --metadata-ttl 0 "$@"
    find_connection "$WORK/mount"
    daemon="$(daemon_of "$WORK/mount")"
    hang
    stat "$WORK/mount/uncached" >/dev/null 2>&1 &
    pid=$!
    wait_for_waiting 1
    eventually 60 'the daemon waits for its source' asks_source "$daemon"
    kill -TERM "$daemon"
    eventually 60 'SIGTERM ends a mount whose source hangs' is_not_mounted "$WORK/mount"
    wait_gone "$pid" || fail 'a program waits for a mount that is gone'
    kill -CONT "$below"
    wait_gone "$daemon" || fail 'the daemon does not end though its source answers again'
    end_of_all 60 'the end of every program that waited'
    mount_view "$WORK/source" "$WORK/mount" --metadata-ttl 0 "$@"
    find_connection "$WORK/mount"
    hang
    stat "$WORK/mount/uncached" >/dev/null 2>&1 &
    pid=$!
    wait_for_waiting 1
    kill -9 "$pid"
    wait_gone "$pid" || fail 'a program survived kill -9'
    wait "$pid" 2>/dev/null || :
    # The daemon still waits for the source, and the command reports that as a failure.
    timeout 60 "$OGIVE" unmount --wait 2s "$WORK/mount" 2>/dev/null || :
    ! is_mounted "$WORK/mount" || fail 'it cannot be unmounted while its source hangs'
    kill -CONT "$below"
    end_of_all 60 'the end of every program that waited'
    say 'a mount ends though its source hangs'
}

killed_waiters
killed_waiters --direct-io --metadata-ttl 0
signals_that_do_not_kill
timeouts
timeouts --direct-io
unmounts
unmounts --direct-io
trap cleanup EXIT
unmount_view "$WORK/source"
passed
