#!/usr/bin/env bash
# kill -9 of a mount at random moments, in all states of a file that is written. The store has the
# bytes that fsync or close acknowledged, or the whole old object. No multipart upload is left.
#
# 30 kills over the demo store; with OGIVE_ALL=1 a thousand, and two hundred more over MinIO.
# OGIVE_KILLS sets the number, and OGIVE_SEED the seed.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
bucket_suite kills 'kill -9 at any moment of writing'

kills="${OGIVE_KILLS:-30}"
[ "${OGIVE_ALL:-0}" != 1 ] || kills="${OGIVE_KILLS:-1000}"
seed="${OGIVE_SEED:-$RANDOM}"

# killed_at_random STORE KILLS: runs kills.py over a store.
killed_at_random() {
    mkdir -p "$WORK/at-$1/mnt"
    remember_mount "$WORK/at-$1/mnt"
    say "$2 kills, over $1, seed $seed"
    python3 "$HERE_BUCKET/kills.py" "$2" "$seed" "$OGIVE" "$BUCKET" prefix "$WORK/at-$1" ||
        fail "an acknowledged write is lost, or something is left (seed $seed)"
}

serve_demo
BUCKET=demo
killed_at_random demo "$kills"
unmount_view "$WORK/server"

if [ "${OGIVE_ALL:-0}" = 1 ] && command -v minio >/dev/null; then
    port="$(free_port)"
    export AWS_ACCESS_KEY_ID=testtest AWS_SECRET_ACCESS_KEY=testtest12 AWS_REGION=us-east-1
    export MINIO_ROOT_USER="$AWS_ACCESS_KEY_ID" MINIO_ROOT_PASSWORD="$AWS_SECRET_ACCESS_KEY"
    export AWS_ENDPOINT_URL="http://127.0.0.1:$port"
    mkdir -p "$WORK/objects/bench"
    serve "$AWS_ENDPOINT_URL/minio/health/ready" minio server --quiet --address "127.0.0.1:$port" \
        "$WORK/objects"
    BUCKET=bench
    killed_at_random minio $((kills / 5))
fi
passed
