#!/usr/bin/env bash
# A bucket behind a mount, on a real HTTP store: moto, which accepts every key. It tests bytes,
# names, counts of requests, changes by another client, errors, and kill -9.
#
# pip installs moto into a directory of this run. Exit code 77: moto cannot be installed, or this
# machine cannot mount. OGIVE and other variables: see tests/mount/lib.sh.
HERE_BUCKET="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
source "$HERE_BUCKET/../mount/lib.sh"
suite bucket 'a bucket of a real store behind the mount'
needs_ogive
need python3 sha256sum curl
has_option --endpoint-url || skip 'this ogive has no buckets'

STORE=''
MNT="$WORK/mount"
L2="$WORK/cache.ogl2"
mkdir -p "$MNT"
export STATE_DIRECTORY="$WORK/state"
export AWS_ACCESS_KEY_ID=testing AWS_SECRET_ACCESS_KEY=testing AWS_REGION=us-east-1
export AWS_DEFAULT_REGION=us-east-1 AWS_EC2_METADATA_DISABLED=true
unset AWS_PROFILE AWS_SESSION_TOKEN AWS_ENDPOINT_URL AWS_ENDPOINT_URL_S3

stop_store() {
    local code=$?
    set +e
    if [ -n "$STORE" ]; then
        kill "$STORE" 2>/dev/null || true
        wait "$STORE" 2>/dev/null || true
    fi
    (exit "$code")
    cleanup
}
trap stop_store EXIT

say 'installing and starting the store'
{
    python3 -m venv "$WORK/python" &&
        timeout 120 "$WORK/python/bin/pip" install --quiet --no-compile \
            --disable-pip-version-check 'moto[s3]==5.2.5' 'flask<4' 'flask-cors<7'
} >"$WORK/pip.log" 2>&1 || skip 'moto cannot be installed'
port="$(free_port)"
ENDPOINT="http://127.0.0.1:$port"
"$WORK/python/bin/moto_server" -H 127.0.0.1 -p "$port" >"$WORK/moto.log" 2>&1 &
STORE=$!
for _ in $(seq 600); do
    ! curl --noproxy '*' --silent --output /dev/null "$ENDPOINT/" || break
    kill -0 "$STORE" 2>/dev/null || fail 'the store does not start'
    sleep 0.1
done
store() {
    "$WORK/python/bin/python" "$HERE_BUCKET/moto_bucket.py" "$ENDPOINT" "$@"
}
store seed | sort -k2 >"$WORK/expected"

# mount_bucket [OPTION...]: mounts the bucket at $MNT.
mount_bucket() {
    MOUNTED+=("$MNT")
    "$OGIVE" mount --endpoint-url "$ENDPOINT" "$@" s3://bench "$MNT"
}

# statistic NAME: a counter of the mount; 0 if it does not exist.
statistic() {
    cat "$MNT/.ogive/arcstats" "$MNT/.ogive/ogivestats" |
        awk -v name="$1" '$1 == name { value = $3 } END { print value + 0 }'
}

# expect_requests EXPECTED COMMAND...: runs a command, and checks the requests that it caused.
expect_requests() {
    local expected="$1" get head list
    shift
    get="$(statistic origin_get)" head="$(statistic origin_head)" list="$(statistic origin_list)"
    "$@" >"$WORK/output" || fail "$* fails"
    get=$(($(statistic origin_get) - get)) head=$(($(statistic origin_head) - head))
    list=$(($(statistic origin_list) - list))
    [ "$get get $head head $list list" = "$expected" ] ||
        fail "$* caused $get get $head head $list list, and not $expected"
}

# check WHEN: reads every file, and compares names and checksums.
check() {
    (cd "$MNT" && find . -type f -not -path './many/*' -exec sha256sum {} + | sort -k2) \
        >"$WORK/read"
    cmp -s "$WORK/expected" "$WORK/read" || {
        diff "$WORK/expected" "$WORK/read" | head -n 5
        fail "wrong names or bytes $1"
    }
}

say 'every name and every byte'
mount_bucket
check 'at first'
check 'from the cache'
for name in a marker; do
    [ -d "$MNT/$name" ] || fail "the directory $name is missing"
done
for name in 'trail ' ' lead' x/y d/e; do
    [ ! -e "$MNT/$name" ] || fail "$name is shown"
done
[ "$(statistic keys_hidden)" -gt 0 ] || fail 'no hidden key is counted'
! grep -q origin_microdollars "$MNT/.ogive/ogivestats" ||
    fail 'a price appears without a list of prices'
inode="$(stat -c %i "$MNT/deep/er/file")"
if touch "$MNT/new" 2>/dev/null || rm "$MNT/big" 2>/dev/null; then
    fail 'a change was not refused'
fi
unmount_view "$MNT"

say 'counts of requests'
# Long TTLs, so that the counts do not depend on the machine's speed.
mount_bucket --metadata-ttl 600 --negative-ttl 600
[ "$(stat -c %i "$MNT/deep/er/file")" = "$inode" ] || fail 'inode numbers change'
expect_requests '0 get 0 head 3 list' ls -l "$MNT/many"
[ "$(wc -l <"$WORK/output")" -eq 2501 ] || fail 'names are missing'
expect_requests '0 get 0 head 0 list' stat "$MNT/many/00007" "$MNT/many/02499" "$MNT/big"
expect_requests '0 get 0 head 0 list' bash -c "! stat '$MNT/none' '$MNT/many/none' 2>/dev/null"
expect_requests '1 get 0 head 0 list' cat "$MNT/many/00007"
expect_requests '0 get 1 head 0 list' cat "$MNT/many/00007"
# 5 MB are 39 records, and a request must load several.
before="$(statistic origin_get)"
cat "$MNT/big" >/dev/null
runs=$(($(statistic origin_get) - before))
[ "$runs" -le 16 ] || fail "5 MB in order took $runs GETs"
[ "$(statistic origin_received_bytes)" -lt 8000000 ] || fail 'much more was fetched than read'
[ "$(statistic origin_checksum_mismatches)" -eq 0 ] || fail 'a checksum does not match'
unmount_view "$MNT"
# Without a budget, nothing is prefetched, and requests are long instead of many.
expect_failure 'is not known' "$OGIVE" mount --endpoint-url "$ENDPOINT" \
    --origin-budget 0.000001 s3://bench "$MNT"
printf 'get = 0.40\nhead = 0.40\nlist = 5\n' >"$WORK/prices"
mount_bucket --metadata-ttl 600 --origin-budget 0.000001 --origin-prices "$WORK/prices"
cat "$MNT/big" >/dev/null
[ "$(statistic origin_held_back_by_budget)" -gt 0 ] || fail 'the budget holds no prefetch back'
[ "$(statistic origin_get)" -le 16 ] || fail "with a budget, 5 MB took $(statistic origin_get) GETs"
[ "$("$OGIVE" stat -f '$/h' "$MNT" | tail -n 1 | tr -d ' ')" != - ] || fail 'stat shows no costs'
unmount_view "$MNT"

say 'changes by another client'
mount_bucket --metadata-ttl 0 --negative-ttl 0 --direct-io --prefetch-max 0 --arc-max 64M
store put changing A 2000000
exec {old}<"$MNT/changing"
[ "$(head -c 1000 <&"$old" | tr -d A | wc -c)" -eq 0 ] || fail 'wrong bytes'
store put changing B 3000000
# An open file gives cached bytes of the old object, or ESTALE; never bytes of the new object.
cat <&"$old" >"$WORK/rest" 2>"$WORK/error" || grep -qi 'stale' "$WORK/error" || fail 'no ESTALE'
[ -s "$WORK/error" ] || fail 'a replaced object was read to its end'
[ "$(tr -d A <"$WORK/rest" | wc -c)" -eq 0 ] || fail 'an open file mixes two objects'
exec {old}<&-
[ "$(tr -d B <"$MNT/changing" | wc -c)" -eq 0 ] || fail 'opening again gives old bytes'
[ "$(wc -c <"$MNT/changing")" -eq 3000000 ] || fail 'opening again gives the old size'
store delete changing
[ ! -e "$MNT/changing" ] || fail 'a deleted object is still there'
store put changing C 10
[ "$(cat "$MNT/changing")" = CCCCCCCCCC ] || fail 'a new object is not visible'
store delete changing
unmount_view "$MNT"

say 'a second level, and kill -9'
mount_bucket --arc-max 2M --direct-io --l2 "$L2" --l2-size 96M --l2-admit all
check 'before the kill'
# Memory holds 16 records, so most records are evicted to the second level.
l2_is_filled() {
    [ "$(statistic l2_size)" -ge 2000000 ]
}
eventually 60 'the second level holds 2 MB' l2_is_filled
daemon="$(daemon_of "$MNT")"
kill -9 "$daemon"
wait_gone "$daemon" || fail 'the daemon survives SIGKILL'
force_unmount "$MNT"
mount_bucket --arc-max 2M --direct-io --l2 "$L2" --l2-size 96M --l2-admit all
check 'after kill -9'
[ "$(statistic l2_hits)" -gt 0 ] || fail 'the second level is empty after kill -9'
unmount_view "$MNT"

say 'errors name the cause'
expect_failure 'there is no such bucket' "$OGIVE" mount --endpoint-url "$ENDPOINT" s3://none "$MNT"
expect_failure 'check the prefix' "$OGIVE" mount --endpoint-url "$ENDPOINT" s3://bench/none "$MNT"
expect_failure 'check that there are credentials' env -u AWS_ACCESS_KEY_ID \
    -u AWS_SECRET_ACCESS_KEY HOME="$WORK" "$OGIVE" mount --endpoint-url "$ENDPOINT" \
    --origin-timeout 20 s3://bench "$MNT"
is_mounted "$MNT" && fail 'a failed mount leaves a mount'

say 'a store that does not answer for a while'
mount_bucket --origin-timeout 12 --metadata-ttl 0 --negative-ttl 0 --offline stale
ls -l "$MNT/deep/er" >/dev/null
cat "$MNT/deep/er/file" >/dev/null
kill -STOP "$STORE"
[ "$(cat "$MNT/deep/er/file")" = deep ] || fail 'cached bytes are not served'
[ "$(ls "$MNT/deep/er")" = file ] || fail 'cached names are not served'
grep -q '"shows_stale": true' "$MNT/.ogive/mount" || fail 'the mount does not report stale data'
if cat "$MNT/records" >/dev/null 2>&1; then fail 'uncached bytes came from a stopped store'; fi
kill -CONT "$STORE"
eventually 60 'the mount uses the store again' cat "$MNT/records"
unmount_view "$MNT"

say 'a store that is gone'
mount_bucket --origin-timeout 2 --metadata-ttl 0
cat "$MNT/deep/er/file" >/dev/null
kill "$STORE"
wait "$STORE" 2>/dev/null || true
STORE=''
if cat "$MNT/empty" 2>/dev/null; then fail 'uncached bytes came from a dead store'; fi
[ -n "$(cat "$MNT/.ogive/ogivestats")" ] || fail 'the control directory hangs with the store'
unmount_view "$MNT"
expect_failure 'check that the store can be reached' "$OGIVE" mount --endpoint-url "$ENDPOINT" \
    --origin-timeout 20 s3://bench "$MNT"
passed
