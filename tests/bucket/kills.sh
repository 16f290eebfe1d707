#!/usr/bin/env bash
# kill -9 of a mount at moments of no choice, in all states of a file that is written: what fsync or
# close acknowledged is there, the old object is whole otherwise, and no upload in parts is left.
#
# 30 kills; with OGIVE_ALL=1 a thousand, and two hundred more over MinIO. OGIVE_KILLS and OGIVE_SEED
# say how many and which. The store is the demo store.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
bucket_suite kills 'kill -9 at any moment of writing'

kills="${OGIVE_KILLS:-30}"
[ "${OGIVE_ALL:-0}" != 1 ] || kills="${OGIVE_KILLS:-1000}"
seed="${OGIVE_SEED:-$RANDOM}"

# killed_at_random STORE KILLS
killed_at_random() {
    mkdir -p "$WORK/at-$1/mnt"
    remember_mount "$WORK/at-$1/mnt"
    say "$2 kills, over $1, seed $seed"
    python3 "$HERE_BUCKET/kills.py" "$2" "$seed" "$OGIVE" "$BUCKET" prefix "$WORK/at-$1" ||
        fail "something that was acknowledged is not there, or something is left (seed $seed)"
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
