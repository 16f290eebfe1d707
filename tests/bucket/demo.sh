#!/usr/bin/env bash
# The demo store: objects stay over restarts, it listens on loopback alone, it refuses requests
# without its credentials, and it passes what every store has to stand.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
bucket_suite demo 'the demo store, out of a directory'

# end_demo: ends the store as a user does.
end_demo() {
    kill "${SERVERS[-1]}"
    wait "${SERVERS[-1]}" || fail 'it does not end well'
    unset 'SERVERS[-1]'
    [ ! -e "$WORK/demo/client.env" ] || fail 'the credentials are left behind'
}

say 'what is written is there after a restart'
mkdir -p "$WORK/mount"
remember_mount "$WORK/mount"
start_demo
[ "$(head -n 1 "$WORK/demo.log")" = "$AWS_ENDPOINT_URL" ] || fail 'its first line is no address'
[ "$(stat -c %a "$WORK/demo/client.env")" = 600 ] || fail 'others can read the credentials'
"$OGIVE" mount --stage "$WORK/demo/stage" "$ADDRESS" "$WORK/mount"
printf 'hello' >"$WORK/mount/file"
inode="$(stat -c %i "$WORK/mount/file")"
unmount_view "$WORK/mount"
end_demo
start_demo
"$OGIVE" mount --stage "$WORK/demo/stage" "$ADDRESS" "$WORK/mount"
[ "$(cat "$WORK/mount/file")" = hello ] || fail 'what was written is not there'
[ "$(stat -c %i "$WORK/mount/file")" = "$inode" ] || fail 'inode numbers change with a restart'
port="${AWS_ENDPOINT_URL##*:}"
listening="$(awk -v port="$(printf '%04X' "$port")" '$4 == "0A" && $2 ~ port "$" { print $2 }' \
    /proc/net/tcp /proc/net/tcp6)"
[ "$listening" = "0100007F:$(printf '%04X' "$port")" ] || fail "it listens at $listening"
answer="$(curl --silent --output /dev/null --write-out '%{http_code}' \
    "http://127.0.0.1:$port/demo/file")"
[ "$answer" = 403 ] || fail 'it answers anybody'
expect_failure 'another store serves it' "$OGIVE_DEMO_STORE" "$WORK/demo"
expect_failure 'it is not a store' "$OGIVE_DEMO_STORE" "$HERE_BUCKET"

rm "$WORK/mount/file"
export ADDRESS=s3://demo
exercise
! grep -q 'ignores' "$WORK/said-one" || fail 'it ignores a condition'
passed
