#!/usr/bin/env bash
# gs:// over fake-gcs-server, which is built from the Go module proxy.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
bucket_suite google 'a bucket of Google Cloud Storage behind the mount'
go_tool fake-gcs-server github.com/fsouza/fake-gcs-server@v1.52.3

port="$(free_port)"
export STORAGE_EMULATOR_HOST="http://127.0.0.1:$port"
serve "$STORAGE_EMULATOR_HOST/storage/v1/b" fake-gcs-server -scheme http -host 127.0.0.1 \
    -port "$port" -backend memory -public-host "127.0.0.1:$port" \
    -external-url "$STORAGE_EMULATOR_HOST"
curl --silent --fail --output /dev/null --header 'content-type: application/json' \
    --data '{"name":"bench"}' "$STORAGE_EMULATOR_HOST/storage/v1/b" ||
    fail 'the bucket cannot be created'
head -c 3000000 /dev/urandom >"$WORK/big"
put() {
    curl --silent --fail --output /dev/null --request POST --data-binary @"$1" \
        "$STORAGE_EMULATOR_HOST/upload/storage/v1/b/bench/o?uploadType=media&name=$2" ||
        fail "$2 cannot be uploaded"
}
printf 'hello' >"$WORK/small"
put "$WORK/big" prefix/d/big
put "$WORK/small" 'prefix/%C3%BC%20%26%20x'

say 'bytes and names'
mkdir -p "$WORK/mount"
remember_mount "$WORK/mount"
"$OGIVE" mount --metadata-ttl 0 --negative-ttl 0 gs://bench/prefix "$WORK/mount"
cmp "$WORK/big" "$WORK/mount/d/big" || fail 'wrong bytes'
[ "$(ls "$WORK/mount")" = $'d\nü & x' ] || fail "wrong names: $(ls "$WORK/mount")"
[ "$(cat "$WORK/mount/ü & x")" = hello ] || fail 'wrong bytes'
received="$(statistic "$WORK/mount" origin_received_bytes)"
cmp "$WORK/big" "$WORK/mount/d/big"
[ $(($(statistic "$WORK/mount" origin_received_bytes) - received)) -lt 1000000 ] ||
    fail 'an unchanged object is fetched again'
printf 'other' >"$WORK/small"
put "$WORK/small" 'prefix/%C3%BC%20%26%20x'
[ "$(cat "$WORK/mount/ü & x")" = other ] || fail 'a change is not visible'
if rm "$WORK/mount/d/big" 2>/dev/null; then fail 'a change was not refused'; fi
unmount_view "$WORK/mount"

# Google checks generations for every way of writing. This emulator checks them only for a way that
# ogive does not use. So it acts as a store that ignores conditions, and ogive must refuse to write.
say 'a store that ignores conditions is refused for writing'
expect_failure 'cannot be written to safely' "$OGIVE" mount --stage "$WORK/stage" \
    gs://bench/prefix "$WORK/mount"
curl --silent --fail "$STORAGE_EMULATOR_HOST/storage/v1/b/bench/o" >"$WORK/left"
! grep -q ogive-probe "$WORK/left" || fail 'the probe left objects behind'
passed
