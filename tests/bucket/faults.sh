#!/usr/bin/env bash
# A link to the demo store that fails at random: latency, resets, stalls, half bodies. No byte may
# be wrong, and nothing may hang. It runs for twenty seconds, with OGIVE_ALL=1 for an hour, or for
# OGIVE_FAULT_SECONDS.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
bucket_suite faults 'a store over a link that fails at random'

serve_demo
between="$(free_port)"
serve "http://127.0.0.1:$between" python3 "$HERE_BUCKET/faulty_link.py" "$between" \
    "${AWS_ENDPOINT_URL#http://}"
AWS_ENDPOINT_URL="http://127.0.0.1:$between" mount_at one --origin-timeout 5 --arc-max 16M
seconds=20
[ "${OGIVE_ALL:-0}" != 1 ] || seconds=3600
seconds="${OGIVE_FAULT_SECONDS:-$seconds}"
summary="$(timeout $((seconds + 600)) python3 "$HERE_BUCKET/faults.py" "$seconds" \
    "${SERVERS[-1]}" "$WORK/one" "$WORK/server")" || fail "wrong bytes, or a hang: $summary"
say "$summary"
unmount_view "$WORK/one"
unmount_view "$WORK/server"
passed
