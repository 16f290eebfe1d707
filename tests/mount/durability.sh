#!/usr/bin/env bash
# Kill -9 under write load: acknowledged writes are in the source, and the view mounts again.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite durability 'the daemon is killed in the middle of writes, again and again'
needs_ogive
need "$OGIVE_TORTURE" "$OGIVE"

for mode in default direct; do
    options=()
    [ "$mode" = default ] || options=(--direct-io)
    mkdir -p "$WORK/$mode-source" "$WORK/$mode"
    remember_mount "$WORK/$mode"
    "$OGIVE_TORTURE" durability --mount "$WORK/$mode" --source "$WORK/$mode-source" \
        --rounds "${OGIVE_DURABILITY_ROUNDS:-6}" -- \
        "$OGIVE" mount -f "${options[@]}" "$WORK/$mode-source" "$WORK/$mode" ||
        fail "durability $mode"
    force_unmount "$WORK/$mode"
done

# A killed daemon cannot show that fsync reaches the disk, because the source's page cache
# survives it. So the daemon's system calls are counted.
if command -v strace >/dev/null; then
    mount_view "$WORK/traced-source" "$WORK/traced"
    daemon="$(daemon_of "$WORK/traced")"
    [ -n "$daemon" ] || fail 'no daemon serves the mount'
    strace -f -q -e trace=fsync,fdatasync -o "$WORK/trace" -p "$daemon" &
    tracer=$!
    # is_traced: whether strace has attached to all threads.
    is_traced() {
        ! grep -h '^TracerPid:' "/proc/$daemon/task/"*/status | grep -q '[[:space:]]0$'
    }
    eventually 60 'strace has attached to the daemon' is_traced
    dd if=/dev/zero of="$WORK/traced/file" bs=4096 count=1 conv=fsync status=none
    dd if=/dev/zero of="$WORK/traced/data" bs=4096 count=1 conv=fdatasync status=none
    # strace writes the rest of the trace when it ends.
    kill -INT "$tracer"
    end_of 60 'the end of strace' "$tracer" || true
    grep -q 'fsync(' "$WORK/trace" || fail 'fsync did not reach the source'
    grep -q 'fdatasync(' "$WORK/trace" || fail 'fdatasync did not reach the source'
    unmount_view "$WORK/traced"
    say 'fsync and fdatasync reach the source'
else
    say 'no strace: it was not tested that fsync reaches the source'
fi
passed
