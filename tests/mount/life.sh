#!/usr/bin/env bash
# From mount to unmount: background, busy mounts, signals, crashes. Nothing is left behind.
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
[ "$(cat "$mount/file")" = bytes ] || fail 'the command returned before the mount answers'
daemon="$(daemon_of "$mount")"
[ -n "$daemon" ] || fail 'no daemon serves the mount'
[ "$(ps -o tty= -p "$daemon" | tr -d ' ')" = '?' ] || fail 'the daemon keeps the terminal'
[ "$(readlink "/proc/$daemon/cwd")" = / ] || fail 'the daemon keeps a directory busy'
say 'the daemon runs in the background'

# A second mount over a live one is refused, and the first one still works.
if "$OGIVE" mount "$source" "$mount" 2>"$WORK/message"; then
    fail 'a second mount over a live one succeeded'
fi
[ "$(cat "$mount/file")" = bytes ] || fail 'a refused mount broke the first one'
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

# In the foreground, the exit code is 0 after SIGTERM.
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

# After a crash, the next mount replaces the dead mount point.
mount_view "$source" "$mount"
daemon="$(daemon_of "$mount")"
kill -9 "$daemon"
wait_gone "$daemon" || fail 'SIGKILL does not kill'
is_mounted "$mount" || fail 'a killed daemon should leave a dead mount for this test'
# The kernel aborts requests while the daemon's last threads and rings close the device; only then
# is the mount dead. A listing always sends a request, whatever is cached.
says_dead() {
    grep -q 'Transport endpoint is not connected' <<<"$(ls "$mount" 2>&1)"
}
eventually 60 'Transport endpoint is not connected' says_dead
mount_view "$source" "$mount"
[ "$(cat "$mount/file")" = bytes ] || fail 'the new mount does not answer'
[ "$(grep -c " $mount " /proc/self/mounts)" -eq 1 ] || fail 'the dead mount is still below'
unmount_view "$mount"
# `ogive unmount` also removes a dead mount point.
mount_view "$source" "$mount"
daemon="$(daemon_of "$mount")"
kill -9 "$daemon"
wait_gone "$daemon" || fail 'SIGKILL does not kill'
unmount_view "$mount"
say 'a dead mount point is replaced and removed'

# waits_of PID NAME: the voluntary context switches of each thread whose name begins with NAME.
waits_of() {
    local task
    for task in "/proc/$1/task"/*; do
        [[ "$(cat "$task/comm")" != "$2"* ]] || grep '^voluntary' "$task/status"
    done
}

# io_uring is used where the kernel offers it, and only there. No program hangs after a kill.
switch=/sys/module/fuse/parameters/enable_uring
if [ "$(cat "$switch" 2>/dev/null)" = Y ]; then
    mount_view "$source" "$mount" --direct-io --transport auto
    grep -q '"transport": "uring"' "$mount/.ogive/mount" || fail 'auto does not use io_uring'
    daemon="$(daemon_of "$mount")"
    threads="$(cat "/proc/$daemon"/task/*/comm)"
    grep -q '^fuse_uring-0$' <<<"$threads" || fail 'no thread is named after a ring'
    # Without requests, the session threads must not wake up. (Other threads may: memory pressure on
    # this machine wakes them.)
    eventually 60 'the daemon is idle' same_twice waits_of "$daemon" fuse
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
    end_of_all 60 'the end of the jobs after the daemon died'
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
    ! is_mounted "$mount" || fail 'mounted, though this kernel has no io_uring'
    say 'no io_uring here: auto uses the device, and uring is refused'
fi

# A failed mount names the path and leaves nothing.
expect_failure "$WORK/missing" "$OGIVE" mount "$WORK/missing" "$mount"
expect_failure "$WORK/nowhere" "$OGIVE" mount "$source" "$WORK/nowhere"
expect_failure '' "$OGIVE" mount "$source" "$source/inside"
! is_mounted "$mount" || fail 'a failed mount left something'
[ -z "$(daemon_of "$mount")" ] || fail 'a failed mount left a process'
expect_failure '' "$OGIVE" unmount "$mount"
say 'failures name the path and leave nothing'
passed
