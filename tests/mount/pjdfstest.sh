#!/usr/bin/env bash
# POSIX conformance: the Rust pjdfstest on the mount, in each way the kernel may cache it.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite pjdfstest \
    'POSIX conformance by default, with direct I/O, names kept for 60 s, and without handles'
need pjdfstest

# An empty list is the aim.
pjdfstest_configuration "$HERE/pjdfstest.expected"

run_mode() {
    local mode="$1" output summary
    shift
    "${mount_by:-mount_view}" "$WORK/$mode-source" "$WORK/$mode" --allow-other "$@"
    output="$WORK/$mode.log"
    local code=0
    NO_COLOR=1 pjdfstest -c "$WORK/pjdfstest.toml" -p "$WORK/$mode" >"$output" 2>&1 || code=$?
    summary="$(sed 's/\x1b\[[0-9;]*m//g' "$output" | grep '^Summary' || true)"
    say "$mode: ${summary:-no summary}"
    if [ "$code" -ne 0 ]; then
        sed 's/\x1b\[[0-9;]*m//g' "$output" | grep -A 3 -E 'FAILED|UNEXPECTEDLY' |
            head -n 60 || true
        fail "pjdfstest $mode"
    fi
    # A run that found no cases proves nothing.
    [[ "$summary" =~ ([0-9]+)\ passed ]] || fail "$mode: no number of passed cases"
    [ "${BASH_REMATCH[1]}" -ge 370 ] || fail "$mode: fewer than 370 cases passed"
    unmount_view "$WORK/$mode"
}

# mount_by_place SRC MNT [OPTION...]: without the right to open by handle, and with few descriptors.
mount_by_place() {
    local source="$1" mount="$2"
    shift 2
    mkdir -p "$source" "$mount"
    remember_mount "$mount"
    (
        ulimit -n 128
        exec setpriv --bounding-set=-dac_read_search --inh-caps=-dac_read_search \
            "$OGIVE" mount "$@" "$source" "$mount"
    )
    is_mounted "$mount" || fail "the mount command returned, but $mount is not mounted"
}

run_mode default
run_mode direct --direct-io
if has_option --metadata-ttl; then
    run_mode kept --metadata-ttl 60s --negative-ttl 60s
fi
if [ -z "${OGIVE_MOUNT_COMMAND:-}" ] && command -v setpriv >/dev/null; then
    mount_by=mount_by_place
    run_mode places
fi
passed
