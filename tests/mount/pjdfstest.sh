#!/usr/bin/env bash
# POSIX conformance: the Rust pjdfstest, with each way of caching in the kernel.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite pjdfstest \
    'POSIX conformance by default, with direct I/O, names kept for 60 s, and without handles'
need pjdfstest

pjdfstest_configuration "$HERE/pjdfstest.expected"

mount_by=(mount_view)
run_mode() {
    local mode="$1" output summary
    shift
    "${mount_by[@]}" "$WORK/$mode-source" "$WORK/$mode" --allow-other "$@"
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

run_mode default
run_mode direct --direct-io
if has_option --metadata-ttl; then
    run_mode kept --metadata-ttl 60s --negative-ttl 60s
fi
if [ -z "${OGIVE_MOUNT_COMMAND:-}" ] && command -v setpriv >/dev/null; then
    mount_by=(mount_without_handles 128)
    run_mode without-handles
fi
passed
