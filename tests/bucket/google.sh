#!/usr/bin/env bash
# gs:// over fake-gcs-server, of the Go module proxy.
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
    fail 'the bucket cannot be made'
head -c 3000000 /dev/urandom >"$WORK/big"
put() {
    curl --silent --fail --output /dev/null --request POST --data-binary @"$1" \
        "$STORAGE_EMULATOR_HOST/upload/storage/v1/b/bench/o?uploadType=media&name=$2" ||
        fail "$2 cannot be put"
}
printf 'hello' >"$WORK/small"
put "$WORK/big" prefix/d/big
put "$WORK/small" 'prefix/%C3%BC%20%26%20x'

say 'bytes and names'
mkdir -p "$WORK/mount"
remember_mount "$WORK/mount"
"$OGIVE" mount --metadata-ttl 0 --negative-ttl 0 gs://bench/prefix "$WORK/mount"
cmp "$WORK/big" "$WORK/mount/d/big" || fail 'other bytes come back'
[ "$(ls "$WORK/mount")" = $'d\nü & x' ] || fail "wrong names: $(ls "$WORK/mount")"
[ "$(cat "$WORK/mount/ü & x")" = hello ] || fail 'other bytes come back'
received="$(statistic "$WORK/mount" origin_received_bytes)"
cmp "$WORK/big" "$WORK/mount/d/big"
[ $(($(statistic "$WORK/mount" origin_received_bytes) - received)) -lt 1000000 ] ||
    fail 'an object that has not changed is fetched again'
printf 'other' >"$WORK/small"
put "$WORK/small" 'prefix/%C3%BC%20%26%20x'
[ "$(cat "$WORK/mount/ü & x")" = other ] || fail 'a change is not seen'
if rm "$WORK/mount/d/big" 2>/dev/null; then fail 'a change was not refused'; fi
unmount_view "$WORK/mount"

# Google honours generations in all ways of writing; this emulator does in one alone, which is not
# the one that is used. So it stands for a store that ignores conditions, and writing has to be
# refused.
say 'a store that ignores conditions is not written to'
expect_failure 'cannot be written to safely' "$OGIVE" mount --stage "$WORK/stage" \
    gs://bench/prefix "$WORK/mount"
curl --silent --fail "$STORAGE_EMULATOR_HOST/storage/v1/b/bench/o" >"$WORK/left"
! grep -q ogive-probe "$WORK/left" || fail 'the probe left something behind'
passed
