#!/usr/bin/env bash
# The demo store. It keeps objects over restarts, listens only on loopback, and refuses requests
# without its credentials. It passes the tests of every writable store.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
bucket_suite demo 'the demo store, in a directory'

# end_demo: ends the store with SIGTERM.
end_demo() {
    kill "${SERVERS[-1]}"
    wait "${SERVERS[-1]}" || fail 'the store ends with an error'
    unset 'SERVERS[-1]'
    [ ! -e "$WORK/demo/client.env" ] || fail 'the credentials are left behind'
}

say 'files are there after a restart'
mkdir -p "$WORK/mount"
remember_mount "$WORK/mount"
start_demo
[ "$(head -n 1 "$WORK/demo.log")" = "$AWS_ENDPOINT_URL" ] ||
    fail 'its first line is not its address'
[ "$(stat -c %a "$WORK/demo/client.env")" = 600 ] || fail 'other users can read the credentials'
"$OGIVE" mount --stage "$WORK/demo/stage" "$ADDRESS" "$WORK/mount"
printf 'hello' >"$WORK/mount/file"
inode="$(stat -c %i "$WORK/mount/file")"
unmount_view "$WORK/mount"
end_demo
start_demo
"$OGIVE" mount --stage "$WORK/demo/stage" "$ADDRESS" "$WORK/mount"
[ "$(cat "$WORK/mount/file")" = hello ] || fail 'a file is lost'
[ "$(stat -c %i "$WORK/mount/file")" = "$inode" ] || fail 'inode numbers change with a restart'
port="${AWS_ENDPOINT_URL##*:}"
listening="$(awk -v port="$(printf '%04X' "$port")" '$4 == "0A" && $2 ~ port "$" { print $2 }' \
    /proc/net/tcp /proc/net/tcp6)"
[ "$listening" = "0100007F:$(printf '%04X' "$port")" ] || fail "the store listens at $listening"
answer="$(curl --silent --output /dev/null --write-out '%{http_code}' \
    "http://127.0.0.1:$port/demo/file")"
[ "$answer" = 403 ] || fail "a request without credentials gives $answer"
expect_failure 'another store serves it' "$OGIVE_DEMO_STORE" "$WORK/demo"
expect_failure 'it is not a store' "$OGIVE_DEMO_STORE" "$HERE_BUCKET"

rm "$WORK/mount/file"
export ADDRESS=s3://demo
exercise
! grep -q 'ignores' "$WORK/messages-one" || fail 'the store ignores a condition'
passed
