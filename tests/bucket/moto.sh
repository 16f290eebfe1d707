#!/usr/bin/env bash
# A bucket behind a mount, on a real HTTP store (moto, which takes every key): bytes, names, what is
# asked of the store and what is not, changes by another client, errors, and kill -9.
#
# moto is installed from the Python registry into a directory of this run. Exit code 77: it cannot
# be had, or this machine cannot mount. OGIVE and the rest as in tests/mount/lib.sh.
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
    "$WORK/python/bin/python" "$HERE_BUCKET/store.py" "$ENDPOINT" "$@"
}
store seed | sort -k2 >"$WORK/expected"

# mount_bucket [OPTION...]
mount_bucket() {
    MOUNTED+=("$MNT")
    "$OGIVE" mount --endpoint-url "$ENDPOINT" "$@" s3://bench "$MNT"
}

# statistic NAME: a counter of the mount, 0 if there is none.
statistic() {
    cat "$MNT/.ogive/arcstats" "$MNT/.ogive/ogivestats" |
        awk -v name="$1" '$1 == name { value = $3 } END { print value + 0 }'
}

requests() {
    printf '%s get, %s head, %s list' "$(statistic origin_get)" "$(statistic origin_head)" \
        "$(statistic origin_list)"
}

# asked EXPECTED COMMAND...: runs a command and checks which requests it made.
asked() {
    local expected="$1" get head list
    shift
    get="$(statistic origin_get)" head="$(statistic origin_head)" list="$(statistic origin_list)"
    "$@" >"$WORK/output" || fail "$* fails"
    get=$(($(statistic origin_get) - get)) head=$(($(statistic origin_head) - head))
    list=$(($(statistic origin_list) - list))
    [ "$get get $head head $list list" = "$expected" ] ||
        fail "$* asked $get get $head head $list list, and not $expected"
}

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
! grep -q origin_microdollars "$MNT/.ogive/ogivestats" || fail 'a price was made up'
inode="$(stat -c %i "$MNT/deep/er/file")"
if touch "$MNT/new" 2>/dev/null || rm "$MNT/big" 2>/dev/null; then
    fail 'a change was not refused'
fi
unmount_view "$MNT"

say 'what is asked'
# Nothing of this may go by how fast the machine is.
mount_bucket --metadata-ttl 600 --negative-ttl 600
[ "$(stat -c %i "$MNT/deep/er/file")" = "$inode" ] || fail 'inode numbers change'
asked '0 get 0 head 3 list' ls -l "$MNT/many"
[ "$(wc -l <"$WORK/output")" -eq 2501 ] || fail 'names are missing'
asked '0 get 0 head 0 list' stat "$MNT/many/00007" "$MNT/many/02499" "$MNT/big"
asked '0 get 0 head 0 list' bash -c "! stat '$MNT/none' '$MNT/many/none' 2>/dev/null"
asked '1 get 0 head 0 list' cat "$MNT/many/00007"
asked '0 get 1 head 0 list' cat "$MNT/many/00007"
# 5 MB are 39 records; where each was a request of its own there were as many.
before="$(statistic origin_get)"
cat "$MNT/big" >/dev/null
runs=$(($(statistic origin_get) - before))
[ "$runs" -le 16 ] || fail "5 MB read one after the other took $runs GETs"
[ "$(statistic origin_received_bytes)" -lt 8000000 ] || fail 'more was fetched than there is'
[ "$(statistic origin_checksum_mismatches)" -eq 0 ] || fail 'a checksum does not match'
unmount_view "$MNT"
# With no budget nothing is read ahead, and requests are not more but longer.
expect_failure 'is not known' "$OGIVE" mount --endpoint-url "$ENDPOINT" \
    --origin-budget 0.000001 s3://bench "$MNT"
printf 'get = 0.40\nhead = 0.40\nlist = 5\n' >"$WORK/prices"
mount_bucket --metadata-ttl 600 --origin-budget 0.000001 --origin-prices "$WORK/prices"
cat "$MNT/big" >/dev/null
[ "$(statistic origin_held_back_by_budget)" -gt 0 ] || fail 'the budget holds nothing back'
[ "$(statistic origin_get)" -le 16 ] || fail "a budget made $(statistic origin_get) GETs of 5 MB"
[ "$("$OGIVE" stat -f '$/h' "$MNT" | tail -n 1 | tr -d ' ')" != - ] || fail 'nothing costs anything'
unmount_view "$MNT"

say 'changes by another client'
mount_bucket --metadata-ttl 0 --negative-ttl 0 --direct-io --prefetch-max 0 --arc-max 64M
store put changing A 2000000
exec {old}<"$MNT/changing"
[ "$(head -c 1000 <&"$old" | tr -d A | wc -c)" -eq 0 ] || fail 'not what was put'
store put changing B 3000000
# Either the rest of the old object, as far as it is cached, or ESTALE: never the new one.
cat <&"$old" >"$WORK/rest" 2>"$WORK/error" || grep -qi 'stale' "$WORK/error" || fail 'no ESTALE'
[ -s "$WORK/error" ] || fail 'an object that is gone was read to its end'
[ "$(tr -d A <"$WORK/rest" | wc -c)" -eq 0 ] || fail 'an open file mixes two objects'
exec {old}<&-
[ "$(tr -d B <"$MNT/changing" | wc -c)" -eq 0 ] || fail 'opening again gives old bytes'
[ "$(wc -c <"$MNT/changing")" -eq 3000000 ] || fail 'opening again gives the old size'
store delete changing
[ ! -e "$MNT/changing" ] || fail 'a deleted object is still there'
store put changing C 10
[ "$(cat "$MNT/changing")" = CCCCCCCCCC ] || fail 'a new object is not seen'
store delete changing
unmount_view "$MNT"

say 'a second level, and kill -9'
mount_bucket --arc-max 2M --direct-io --l2 "$L2" --l2-size 96M --l2-admit all
check 'before the kill'
# Memory has room for 16 records, so most of the files have gone to the second level.
for _ in $(seq 600); do
    [ "$(statistic l2_size)" -lt 2000000 ] || break
    sleep 0.1
done
daemon="$(daemon_of "$MNT")"
kill -9 "$daemon"
wait_gone "$daemon" || fail 'the daemon does not die'
unmount_at_any_price "$MNT"
mount_bucket --arc-max 2M --direct-io --l2 "$L2" --l2-size 96M --l2-admit all
check 'after kill -9'
[ "$(statistic l2_hits)" -gt 0 ] || fail 'the second level has forgotten everything'
unmount_view "$MNT"

say 'what cannot be had is said'
expect_failure 'there is no such bucket' "$OGIVE" mount --endpoint-url "$ENDPOINT" s3://none "$MNT"
expect_failure 'check the prefix' "$OGIVE" mount --endpoint-url "$ENDPOINT" s3://bench/none "$MNT"
expect_failure 'check that there are credentials' env -u AWS_ACCESS_KEY_ID \
    -u AWS_SECRET_ACCESS_KEY HOME="$WORK" "$OGIVE" mount --endpoint-url "$ENDPOINT" \
    --origin-timeout 20 s3://bench "$MNT"
is_mounted "$MNT" && fail 'something is mounted after a refusal'

say 'a store that does not answer for a while'
mount_bucket --origin-timeout 12 --metadata-ttl 0 --negative-ttl 0 --offline stale
ls -l "$MNT/deep/er" >/dev/null
cat "$MNT/deep/er/file" >/dev/null
kill -STOP "$STORE"
[ "$(cat "$MNT/deep/er/file")" = deep ] || fail 'what is cached is not there'
[ "$(ls "$MNT/deep/er")" = file ] || fail 'names that are known are not there'
grep -q '"shows_stale": true' "$MNT/.ogive/mount" || fail 'the mount does not tell of it'
if cat "$MNT/records" >/dev/null 2>&1; then fail 'bytes came from nowhere'; fi
kill -CONT "$STORE"
for _ in $(seq 600); do
    ! cat "$MNT/records" >/dev/null 2>&1 || break
    sleep 0.1
done
cat "$MNT/records" >/dev/null || fail 'the store answers again, and is not asked'
unmount_view "$MNT"

say 'a store that has gone'
mount_bucket --origin-timeout 2 --metadata-ttl 0
cat "$MNT/deep/er/file" >/dev/null
kill "$STORE"
wait "$STORE" 2>/dev/null || true
STORE=''
if cat "$MNT/empty" 2>/dev/null; then fail 'a store that has gone answers'; fi
[ -n "$(cat "$MNT/.ogive/ogivestats")" ] || fail 'the control directory hangs with the store'
unmount_view "$MNT"
expect_failure 'check that the store can be reached' "$OGIVE" mount --endpoint-url "$ENDPOINT" \
    --origin-timeout 20 s3://bench "$MNT"
passed
