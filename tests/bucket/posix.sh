#!/usr/bin/env bash
# Exercisers of file systems on a bucket: fsx on one file, and with OGIVE_ALL=1 also pjdfstest.
# pjdfstest.expected lists the cases that a bucket cannot pass.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
bucket_suite posix 'fsx and pjdfstest on a bucket'
need fsx

serve_demo

# Buckets support neither allocation nor holes.
fsx_configuration 0 0
mkdir "$WORK/artifacts"
operations="${OGIVE_FSX_OPERATIONS:-500}"
for mode in default direct; do
    options=()
    [ "$mode" = default ] || options=(--direct-io)
    mount_at "$mode" --metadata-ttl 1 --negative-ttl 1 "${options[@]}"
    for seed in 1 "$RANDOM"; do
        fsx -q -f "$WORK/fsx.toml" -N "$operations" -S "$seed" -P "$WORK/artifacts" \
            "$WORK/$mode/file" >"$WORK/fsx.log" 2>&1 || {
            tail -n 30 "$WORK/fsx.log"
            fail "fsx $mode, seed $seed"
        }
        cmp "$WORK/$mode/file" "$WORK/server/file" || fail "$mode: the store differs"
        say "$mode, seed $seed: $operations operations"
    done
    unmount_view "$WORK/$mode"
done

if [ "${OGIVE_ALL:-0}" = 1 ] && command -v pjdfstest >/dev/null; then
    say 'POSIX conformance, with expected failures'
    pjdfstest_configuration "$HERE_BUCKET/pjdfstest.expected"
    mount_at posix --allow-other
    code=0
    NO_COLOR=1 pjdfstest -c "$WORK/pjdfstest.toml" -p "$WORK/posix" >"$WORK/pjdfstest.log" 2>&1 ||
        code=$?
    plain="$(sed 's/\x1b\[[0-9;]*m//g' "$WORK/pjdfstest.log")"
    say "$(grep '^Summary' <<<"$plain" || echo 'no summary')"
    if [ "$code" -ne 0 ]; then
        grep -A 2 -E 'FAILED|UNEXPECTEDLY' <<<"$plain" | head -n 60 || true
        fail 'a case passes or fails unexpectedly'
    fi
    unmount_view "$WORK/posix"
fi
unmount_view "$WORK/server"
passed
