#!/usr/bin/env bash
# Two mounts that fight over one object: no addition that was acknowledged is lost. Twenty seconds;
# with OGIVE_ALL=1 two minutes. The store is the demo store.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
bucket_suite fight 'two mounts that change one object'

serve_demo
mount_at one
mount_at two
seconds="${OGIVE_FIGHT_SECONDS:-20}"
[ "${OGIVE_ALL:-0}" != 1 ] || seconds="${OGIVE_FIGHT_SECONDS:-120}"
said="$(python3 "$HERE_BUCKET/fight.py" "$seconds" "$WORK/one/count" "$WORK/two/count")" ||
    fail "an update was lost: $said"
say "$said"
unmount_view "$WORK/two"
unmount_view "$WORK/one"
unmount_view "$WORK/server"
passed
