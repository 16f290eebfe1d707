#!/usr/bin/env bash
# az:// over Azurite, which is Microsoft's own emulator, installed by npm into a directory of this
# run.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
bucket_suite azure 'a container of Azure Blob Storage behind the mount'

azurite="${AZURITE:-}"
if [ -z "$azurite" ]; then
    need npm node
    say 'installing Azurite'
    mkdir "$WORK/npm"
    (cd "$WORK/npm" && timeout 240 npm install --no-audit --no-fund --silent azurite@3) \
        >"$WORK/npm.log" 2>&1 || skip 'Azurite cannot be installed'
    azurite="$WORK/npm/node_modules/.bin/azurite-blob"
fi
port="$(free_port)"
serve "http://127.0.0.1:$port/" "$azurite" --silent --location "$WORK/azurite" \
    --blobHost 127.0.0.1 --blobPort "$port" --skipApiVersionCheck
# The account and key of every emulator, as Microsoft's documentation has them.
account=devstoreaccount1
key='Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=='
export AZURE_STORAGE_CONNECTION_STRING="DefaultEndpointsProtocol=http;AccountName=$account;\
AccountKey=$key;BlobEndpoint=http://127.0.0.1:$port/$account;"
python3 "$HERE_BUCKET/container.py" "http://127.0.0.1:$port/$account/bench" "$account" "$key" ||
    fail 'the container cannot be made'
export ADDRESS=az://bench/prefix
exercise
! grep -q 'ignores' "$WORK/said-one" || fail "it ignores a condition: $(cat "$WORK/said-one")"

say 'what cannot be had is said'
mkdir -p "$WORK/none"
expect_failure 'AZURE_STORAGE_ACCOUNT' env -u AZURE_STORAGE_CONNECTION_STRING \
    "$OGIVE" mount az://bench "$WORK/none"
expect_failure 'cannot mount az://missing' "$OGIVE" mount az://missing "$WORK/none"
passed
