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

say 'directories that other programs mark without a slash'
for folder in photos photos/summer empty; do
    "${AZURITE_CLIENT[@]}" "$folder" hdi_isfolder=true
done
"${AZURITE_CLIENT[@]}" Upper Hdi_isfolder=true
"${AZURITE_CLIENT[@]}" plain
"${AZURITE_CLIENT[@]}" photos/summer/picture
folders="$WORK/folders"
mkdir -p "$folders"
MOUNTED+=("$folders")
for ttl in 0 600; do
    "$OGIVE" mount --stage "$WORK/stage-folders" --metadata-ttl "$ttl" --negative-ttl "$ttl" \
        az://bench "$folders"
    for name in photos photos/summer empty Upper; do
        [ -d "$folders/$name" ] || fail "$name is no directory, with names believed for $ttl s"
    done
    [ -f "$folders/plain" ] || fail 'an empty blob is no file'
    [ "$(find "$folders/empty" "$folders/Upper" -mindepth 1)" = '' ] || fail 'they are not empty'
    ls -F "$folders" >"$WORK/listed"
    grep -qx 'empty/' "$WORK/listed" || fail 'it is not listed as a directory'
    [ "$ttl" -eq 0 ] || break
    [ ! -s "$folders/.ogive/hidden" ] || fail "hidden: $(cat "$folders/.ogive/hidden")"
    unmount_view "$folders"
done
! mkdir "$folders/empty" 2>"$WORK/refused" || fail 'a directory is made where there is one'
mkdir "$folders/empty/below"
echo new >"$folders/empty/file"
[ "$(cat "$folders/empty/file")" = new ] || fail 'no file can be made in it'
mv "$folders/photos" "$folders/pictures"
[ -d "$folders/pictures/summer" ] || fail 'it is not renamed'
rm -r "$folders/empty" "$folders/pictures" "$folders/Upper"
unmount_view "$folders"
"${AZURITE_CLIENT[@]}" --list >"$WORK/left"
! grep -E '^(photos|pictures|empty|Upper)' "$WORK/left" || fail 'they are left in the container'
grep -qx plain "$WORK/left" || fail 'a file has gone with them'

say 'blobs that others add to, hold or have snapshots of'
"${AZURITE_CLIENT[@]}" kept/log x-ms-blob-type=AppendBlob
"${AZURITE_CLIENT[@]}" kept/disk x-ms-blob-type=PageBlob x-ms-blob-content-length=512
"${AZURITE_CLIENT[@]}" held
"${AZURITE_CLIENT[@]}" 'held?comp=lease' x-ms-lease-action=acquire x-ms-lease-duration=-1
"${AZURITE_CLIENT[@]}" pictured
"${AZURITE_CLIENT[@]}" 'pictured?comp=snapshot'
export ADDRESS=az://bench
mount_at blobs
before="$("${AZURITE_CLIENT[@]}" --listing)"
for name in log disk; do
    cat "$WORK/blobs/kept/$name" >"$WORK/read"
    ! (echo more >>"$WORK/blobs/kept/$name") 2>"$WORK/refused" || fail "$name is added to"
    ! (: >"$WORK/blobs/kept/$name") 2>"$WORK/refused" || fail "$name is replaced"
    ! mv "$WORK/blobs/kept/$name" "$WORK/blobs/moved" 2>"$WORK/refused" || fail "$name is renamed"
    grep -q 'not permitted' "$WORK/refused" || fail "it is told otherwise: $(cat "$WORK/refused")"
    grep -q "kept/$name is a blob of type" "$WORK/log-blobs" || fail "the log does not name $name"
    # Said once a second at most.
    sleep 1.1
done
! mv "$WORK/blobs/kept" "$WORK/blobs/moved" 2>"$WORK/refused" || fail 'a directory is renamed'
for name in held pictured; do
    ! mv "$WORK/blobs/$name" "$WORK/blobs/moved" 2>"$WORK/refused" || fail "$name is renamed"
    grep -q 'busy' "$WORK/refused" || fail "it is told otherwise: $(cat "$WORK/refused")"
done
[ "$("${AZURITE_CLIENT[@]}" --listing)" = "$before" ] || fail 'something has changed'
rm "$WORK/blobs/kept/log" "$WORK/blobs/kept/disk"
unmount_view "$WORK/blobs"

say 'what cannot be had is said'
mkdir -p "$WORK/none"
expect_failure 'AZURE_STORAGE_ACCOUNT' env -u AZURE_STORAGE_CONNECTION_STRING \
    "$OGIVE" mount az://bench "$WORK/none"
expect_failure 'cannot mount az://missing' "$OGIVE" mount az://missing "$WORK/none"
passed
