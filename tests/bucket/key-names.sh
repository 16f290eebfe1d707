#!/usr/bin/env bash
# Names with characters of every Unicode class, on two kinds of stores: moto for s3://, and Azurite,
# if it can be installed, for az://. The stores' own clients must see the same keys.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
bucket_suite key-names 'names that a store might change'

say 'installing the stores and their clients'
{
    python3 -m venv "$WORK/python" &&
        timeout 240 "$WORK/python/bin/pip" install --quiet --no-compile \
            --disable-pip-version-check 'moto[s3]==5.2.5' 'flask<4' 'flask-cors<7' \
            'azure-storage-blob>=12,<13'
} >"$WORK/pip.log" 2>&1 || skip 'moto and the clients cannot be installed'
export AWS_ACCESS_KEY_ID=testing AWS_SECRET_ACCESS_KEY=testing AWS_REGION=us-east-1
export AWS_DEFAULT_REGION=us-east-1

# try ADDRESS STORE...: runs key_names.py on a mount of the address.
try() {
    local address="$1" mount="$WORK/$2"
    mkdir -p "$mount"
    MOUNTED+=("$mount")
    "$OGIVE" mount --stage "$WORK/stage-$2" --metadata-ttl 0 --negative-ttl 0 "$address" "$mount"
    shift
    "$WORK/python/bin/python" "$HERE_BUCKET/key_names.py" "$mount" "$@" ||
        fail "names over $address"
    unmount_view "$mount"
}

say 's3:// over moto'
port="$(free_port)"
serve "http://127.0.0.1:$port/" "$WORK/python/bin/moto_server" -H 127.0.0.1 -p "$port"
export AWS_ENDPOINT_URL="http://127.0.0.1:$port"
curl --silent --fail -X PUT "$AWS_ENDPOINT_URL/names" >"$WORK/made" ||
    fail 'no bucket can be created'
try s3://names s3 "$AWS_ENDPOINT_URL" names

say 'az:// over Azurite'
install_azurite
serve_azurite names
try az://names azure names
passed
