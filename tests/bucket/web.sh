#!/usr/bin/env bash
# http://, read-only: a file, a directory as WebDAV and as HTML, changes behind the mount, links to
# other places.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
bucket_suite web 'a web server behind the mount'

mkdir -p "$WORK/site/sub/deep" "$WORK/mount"
head -c 3000000 /dev/urandom >"$WORK/site/big"
printf 'hello' >"$WORK/site/sub/ü & <x> %25"
: >"$WORK/site/sub/deep/empty"
touch -d '1 hour ago' "$WORK/site/big" "$WORK/site/sub/"*
(cd "$WORK/site" && find . -type f -exec sha256sum {} + | sort -k2) >"$WORK/expected"
remember_mount "$WORK/mount"

# check WHEN: reads every file, and compares names and checksums.
check() {
    (cd "$WORK/mount" && find . -type f -exec sha256sum {} + | sort -k2) >"$WORK/read"
    cmp "$WORK/expected" "$WORK/read" || fail "wrong names or bytes $1"
}

for kind in webdav html weak nothing whole; do
    port="$(free_port)"
    url="http://127.0.0.1:$port"
    serve "$url/" python3 "$HERE_BUCKET/web_server.py" "$port" "$WORK/site" "$kind"
    say "a directory, $kind"
    "$OGIVE" mount --metadata-ttl 0 --negative-ttl 0 "$url/" "$WORK/mount"
    check "over $kind"
    check "over $kind, from the cache"
    [ ! -e "$WORK/mount/passwd" ] || fail 'a link to another place is shown as a file'
    if touch "$WORK/mount/new" 2>/dev/null; then fail 'a change was not refused'; fi
    received="$(statistic "$WORK/mount" origin_received_bytes)"
    cat "$WORK/mount/big" >/dev/null
    again=$(($(statistic "$WORK/mount" origin_received_bytes) - received))
    case "$kind" in
        nothing) ;; # Without a validator, each open fetches the file again.
        *) [ "$again" -lt 1000000 ] || fail "$again bytes were fetched again" ;;
    esac
    printf 'changed' >"$WORK/site/sub/changing"
    [ "$(cat "$WORK/mount/sub/changing")" = changed ] || fail 'a new file is not visible'
    printf 'CHANGED' >"$WORK/site/sub/changing"
    [ "$(cat "$WORK/mount/sub/changing")" = CHANGED ] ||
        fail 'a change within a second is not visible'
    rm "$WORK/site/sub/changing"
    unmount_view "$WORK/mount"
done

say 'a file by its address'
"$OGIVE" mount "$url/big" "$WORK/mount"
[ "$(ls "$WORK/mount")" = big ] || fail "the mount shows $(ls "$WORK/mount")"
cmp "$WORK/site/big" "$WORK/mount/big" || fail 'wrong bytes'
unmount_view "$WORK/mount"

say 'errors name the cause'
expect_failure 'check the address' "$OGIVE" mount "$url/none/" "$WORK/mount"
expect_failure 'read-only' "$OGIVE" mount --stage "$WORK/stage" "$url/" "$WORK/mount"
expect_failure 'must not contain a password' \
    "$OGIVE" mount "http://a:b@127.0.0.1:$port/" "$WORK/mount"
passed
