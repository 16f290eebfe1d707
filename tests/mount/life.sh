#!/usr/bin/env bash
# From mount to unmount: background, busy mounts, signals, crashes, and nothing left behind.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite life 'start, busy unmount, SIGTERM, a crash, mounting over a dead mount, nothing left'
needs_ogive
need "$OGIVE"

source="$WORK/source"
mount="$WORK/mount"
mkdir -p "$source"
echo bytes >"$source/file"

# The command returns as soon as the mount answers.
mount_view "$source" "$mount"
[ "$(cat "$mount/file")" = bytes ] || fail 'the mount does not answer when the command returned'
daemon="$(daemon_of "$mount")"
[ -n "$daemon" ] || fail 'no daemon serves the mount'
[ "$(ps -o tty= -p "$daemon" | tr -d ' ')" = '?' ] || fail 'the daemon keeps the terminal'
[ "$(readlink "/proc/$daemon/cwd")" = / ] || fail 'the daemon keeps a directory busy'
say 'the daemon runs in the background'

# A second mount is refused and does no harm.
if "$OGIVE" mount "$source" "$mount" 2>"$WORK/message"; then
    fail 'a second mount over a living one succeeded'
fi
[ "$(cat "$mount/file")" = bytes ] || fail 'a refused mount hurt the first one'
say "a second mount is refused: $(head -n 1 "$WORK/message")"

# An open file keeps the mount busy until it is closed.
exec 9<"$mount/file"
if "$OGIVE" unmount "$mount" 2>"$WORK/message"; then
    fail 'a busy mount was unmounted'
fi
exec 9<&-
say "busy: $(head -n 1 "$WORK/message")"
unmount_view "$mount"
wait_gone "$daemon" || fail 'the daemon lives on after unmount'
say 'unmount ends the daemon'

# SIGTERM and SIGINT end cleanly.
for signal in TERM INT; do
    mount_view "$source" "$mount"
    daemon="$(daemon_of "$mount")"
    echo "$signal" >"$mount/written"
    kill "-$signal" "$daemon"
    wait_gone "$daemon" || fail "the daemon survives SIG$signal"
    ! is_mounted "$mount" || fail "SIG$signal leaves a dead mount"
    [ "$(cat "$source/written")" = "$signal" ] || fail "SIG$signal lost a write"
done
say 'SIGTERM and SIGINT end cleanly'

# In the foreground, the exit code is the result.
"$OGIVE" mount -f "$source" "$mount" >"$WORK/foreground" 2>&1 &
daemon=$!
eventually 60 'a mount in the foreground' is_mounted "$mount"
[ "$(cat "$mount/file")" = bytes ] || fail 'the foreground mount does not answer'
kill -TERM "$daemon"
code=0
end_of 60 'the end of the daemon in the foreground' "$daemon" || code=$?
[ "$code" -eq 0 ] || fail "the foreground daemon ended with $code: $(cat "$WORK/foreground")"
! is_mounted "$mount" || fail 'the foreground daemon left a dead mount'
say 'the foreground ends with exit code 0'

# After a crash the next mount mends the dead mount point.
mount_view "$source" "$mount"
daemon="$(daemon_of "$mount")"
kill -9 "$daemon"
wait_gone "$daemon" || fail 'SIGKILL does not kill'
is_mounted "$mount" || fail 'a killed daemon should leave a dead mount for this test'
# While the last threads of the daemon, and its rings, let go of the device, requests are aborted;
# then it is dead. A listing asks every time, whatever is cached.
says_dead() {
    grep -q 'Transport endpoint is not connected' <<<"$(ls "$mount" 2>&1)"
}
eventually 60 'Transport endpoint is not connected' says_dead
mount_view "$source" "$mount"
[ "$(cat "$mount/file")" = bytes ] || fail 'the mended mount does not answer'
[ "$(grep -c " $mount " /proc/self/mounts)" -eq 1 ] || fail 'the dead mount is still below'
unmount_view "$mount"
# `ogive unmount` also clears a dead mount point.
mount_view "$source" "$mount"
daemon="$(daemon_of "$mount")"
kill -9 "$daemon"
wait_gone "$daemon" || fail 'SIGKILL does not kill'
unmount_view "$mount"
say 'a dead mount point is mended and cleared'

# waits_of PID NAME: the number of sleeps of each thread with this prefix of a name.
waits_of() {
    local task
    for task in "/proc/$1/task"/*; do
        [[ "$(cat "$task/comm")" != "$2"* ]] || grep '^voluntary' "$task/status"
    done
}

# Through io_uring where the kernel offers it, and only then; killed, it leaves nothing stuck.
switch=/sys/module/fuse/parameters/enable_uring
if [ "$(cat "$switch" 2>/dev/null)" = Y ]; then
    mount_view "$source" "$mount" --direct-io --transport auto
    grep -q '"transport": "uring"' "$mount/.ogive/mount" || fail 'auto does not use io_uring'
    daemon="$(daemon_of "$mount")"
    threads="$(cat "/proc/$daemon"/task/*/comm)"
    grep -q '^fuse_uring-0$' <<<"$threads" || fail 'no thread is named after a ring'
    # Without requests, the threads that wait for them sleep on. (Other threads may wake up for memory
    # pressure on this machine.)
    eventually 60 'the daemon comes to rest' same_twice waits_of "$daemon" fuse
    before="$(waits_of "$daemon" fuse)"
    sleep 5
    [ "$before" = "$(waits_of "$daemon" fuse)" ] || fail 'an idle daemon wakes up'
    # Readers and writers are in the middle of operations when the daemon is killed.
    for number in 1 2 3 4; do
        while dd if=/dev/zero of="$mount/busy.$number" bs=64k count=20 && cat "$mount/busy.$number"
        do :; done >"$WORK/busy.$number" 2>&1 &
    done
    for number in 1 2 3 4; do
        eventually 60 "writer $number writes" test -s "$source/busy.$number"
    done
    kill -9 "$daemon"
    wait_gone "$daemon" || fail 'SIGKILL does not kill a daemon with rings'
    # All of them end with an error.
    end_of_all 60 'the end of who used a mount that is dead'
    unmount_view "$mount"
    rm -f "$source"/busy.*
    mount_view "$source" "$mount" --direct-io --transport device
    grep -q '"transport": "device"' "$mount/.ogive/mount" || fail 'device does not mean the device'
    unmount_view "$mount"
    say 'through io_uring: idle, killed in the middle of work, and switched off by an option'
else
    mount_view "$source" "$mount" --direct-io --transport auto
    grep -q '"transport": "device"' "$mount/.ogive/mount" || fail 'auto insists on io_uring'
    unmount_view "$mount"
    expect_failure "${switch##*/}" "$OGIVE" mount --transport uring "$source" "$mount"
    ! is_mounted "$mount" || fail 'io_uring is not to be had, but something is mounted'
    say 'no io_uring here: by the device, and refused where it was asked for'
fi

# A failed mount reports its error and leaves nothing.
expect_failure "$WORK/missing" "$OGIVE" mount "$WORK/missing" "$mount"
expect_failure "$WORK/nowhere" "$OGIVE" mount "$source" "$WORK/nowhere"
expect_failure '' "$OGIVE" mount "$source" "$source/inside"
! is_mounted "$mount" || fail 'a failed mount left something'
[ -z "$(daemon_of "$mount")" ] || fail 'a failed mount left a process'
expect_failure '' "$OGIVE" unmount "$mount"
say 'failures say what and leave nothing'
passed
