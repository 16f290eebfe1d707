#!/usr/bin/env bash
# The store that a mount serves out of a directory: what it is for, that it listens on loopback
# alone, and what every store has to stand, through its own protocol.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
bucket_suite demo 'a store of our own, out of a directory'

say 'one command, and what is written is there next time'
mkdir -p "$WORK/mount"
remember_mount "$WORK/mount"
"$OGIVE" mount --demo-bucket "$WORK/demo" "$WORK/mount"
[ "$(stat -c %a "$WORK/demo/client.env")" = 600 ] || fail 'others can read the credentials'
printf 'hello' >"$WORK/mount/file"
unmount_view "$WORK/mount"
[ ! -e "$WORK/demo/client.env" ] || fail 'the credentials are left behind'
inode=''
for _ in 1 2; do
    "$OGIVE" mount --demo-bucket "$WORK/demo" "$WORK/mount"
    [ "$(cat "$WORK/mount/file")" = hello ] || fail 'what was written is not there'
    [ "${inode:=$(stat -c %i "$WORK/mount/file")}" = "$(stat -c %i "$WORK/mount/file")" ] ||
        fail 'inode numbers change with the port'
    [ -n "${again:-}" ] || unmount_view "$WORK/mount"
    again=1
done
port="$(sed -n 's,^export AWS_ENDPOINT_URL=http://127.0.0.1:,,p' "$WORK/demo/client.env")"
listening="$(awk -v port="$(printf '%04X' "$port")" '$4 == "0A" && $2 ~ port "$" { print $2 }' \
    /proc/net/tcp /proc/net/tcp6)"
[ "$listening" = "0100007F:$(printf '%04X' "$port")" ] || fail "it listens at $listening"
answer="$(curl --silent --output /dev/null --write-out '%{http_code}' \
    "http://127.0.0.1:$port/demo/file")"
[ "$answer" = 403 ] || fail 'it answers anybody'
mkdir "$WORK/second"
expect_failure 'another mount serves it' "$OGIVE" mount --demo-bucket "$WORK/demo" "$WORK/second"
expect_failure 'it is something else' "$OGIVE" mount --demo-bucket "$HERE_BUCKET" "$WORK/second"

# Two more mounts, as clients of the store that the first one serves.
set -a
# shellcheck source=/dev/null
source "$WORK/demo/client.env"
set +a
rm "$WORK/mount/file"
export ADDRESS=s3://demo
exercise
! grep -q 'ignores' "$WORK/said-one" || fail 'it ignores a condition'
passed
