#!/usr/bin/env bash
# s3:// over MinIO, which is built from the Go module proxy.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
bucket_suite minio 'a bucket of MinIO behind the mount'
go_tool minio github.com/minio/minio@latest

port="$(free_port)"
export AWS_ACCESS_KEY_ID=testtest AWS_SECRET_ACCESS_KEY=testtest12 AWS_REGION=us-east-1
export MINIO_ROOT_USER="$AWS_ACCESS_KEY_ID" MINIO_ROOT_PASSWORD="$AWS_SECRET_ACCESS_KEY"
export AWS_ENDPOINT_URL="http://127.0.0.1:$port"
# Each subdirectory of MinIO's directory is a bucket.
mkdir -p "$WORK/minio/bench"
serve "$AWS_ENDPOINT_URL/minio/health/ready" minio server --quiet \
    --address "127.0.0.1:$port" "$WORK/minio"
export ADDRESS=s3://bench/prefix
exercise
# MinIO ignores the condition of a DELETE, and the mount must report that.
grep -q 'If-Match of DELETE' "$WORK/messages-one" || fail 'an ignored condition is not reported'
passed
