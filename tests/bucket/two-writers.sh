#!/usr/bin/env bash
# Two mounts write to one object of the demo store, and no acknowledged write is lost. It runs for
# twenty seconds, with OGIVE_ALL=1 for two minutes, or for OGIVE_TWO_WRITERS_SECONDS.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
bucket_suite two-writers 'two mounts that change one object'

serve_demo
mount_at one
mount_at two
seconds=20
[ "${OGIVE_ALL:-0}" != 1 ] || seconds=120
seconds="${OGIVE_TWO_WRITERS_SECONDS:-$seconds}"
summary="$(python3 "$HERE_BUCKET/two_writers.py" "$seconds" "$WORK/one/count" "$WORK/two/count")" ||
    fail "an update was lost: $summary"
say "$summary"
unmount_view "$WORK/two"
unmount_view "$WORK/one"
unmount_view "$WORK/server"
passed
