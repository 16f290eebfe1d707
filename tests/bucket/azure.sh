#!/usr/bin/env bash
# az:// over Azurite, which is Microsoft's own emulator, installed by npm into a directory of this
# run.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
bucket_suite azure 'a container of Azure Blob Storage behind the mount'

install_azurite
serve_azurite bench
export ADDRESS=az://bench/prefix
exercise
! grep -q 'ignores' "$WORK/said-one" || fail "it ignores a condition: $(cat "$WORK/said-one")"

say 'what cannot be had is said'
mkdir -p "$WORK/none"
expect_failure 'AZURE_STORAGE_ACCOUNT' env -u AZURE_STORAGE_CONNECTION_STRING \
    "$OGIVE" mount az://bench "$WORK/none"
expect_failure 'cannot mount az://missing' "$OGIVE" mount az://missing "$WORK/none"
passed
