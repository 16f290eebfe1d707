#!/usr/bin/env bash
# az:// over Azurite, Microsoft's emulator, which npm installs into a directory of this run.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
bucket_suite azure 'a container of Azure Blob Storage behind the mount'

install_azurite
serve_azurite bench
export ADDRESS=az://bench/prefix
exercise
! grep -q 'ignores' "$WORK/messages-one" ||
    fail "the store ignores a condition: $(cat "$WORK/messages-one")"

say 'directory markers of other programs, without a slash'
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
        [ -d "$folders/$name" ] || fail "$name is no directory, with a TTL of $ttl s"
    done
    [ -f "$folders/plain" ] || fail 'an empty blob is no file'
    [ "$(find "$folders/empty" "$folders/Upper" -mindepth 1)" = '' ] ||
        fail 'the marked directories are not empty'
    ls -F "$folders" >"$WORK/listed"
    grep -qx 'empty/' "$WORK/listed" || fail 'a marked directory is not listed as one'
    [ "$ttl" -eq 0 ] || break
    [ ! -s "$folders/.ogive/hidden" ] || fail "hidden: $(cat "$folders/.ogive/hidden")"
    unmount_view "$folders"
done
! mkdir "$folders/empty" 2>"$WORK/refused" || fail 'mkdir succeeds on an existing directory'
mkdir "$folders/empty/below"
echo new >"$folders/empty/file"
[ "$(cat "$folders/empty/file")" = new ] || fail 'no file can be created in a marked directory'
mv "$folders/photos" "$folders/pictures"
[ -d "$folders/pictures/summer" ] || fail 'a marked directory is not renamed'
rm -r "$folders/empty" "$folders/pictures" "$folders/Upper"
unmount_view "$folders"
"${AZURITE_CLIENT[@]}" --list >"$WORK/left"
! grep -E '^(photos|pictures|empty|Upper)' "$WORK/left" || fail 'markers are left in the container'
grep -qx plain "$WORK/left" || fail 'a file was removed with the markers'

say 'append blobs, page blobs, leased blobs, blobs with snapshots'
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
    ! (echo more >>"$WORK/blobs/kept/$name") 2>"$WORK/refused" || fail "$name can be appended to"
    ! (: >"$WORK/blobs/kept/$name") 2>"$WORK/refused" || fail "$name can be replaced"
    ! mv "$WORK/blobs/kept/$name" "$WORK/blobs/moved" 2>"$WORK/refused" ||
        fail "$name can be renamed"
    grep -q 'not permitted' "$WORK/refused" || fail "not EPERM: $(cat "$WORK/refused")"
    grep -q "kept/$name is a blob of type" "$WORK/log-blobs" || fail "the log does not name $name"
    # The log has at most one such line a second.
    sleep 1.1
done
! mv "$WORK/blobs/kept" "$WORK/blobs/moved" 2>"$WORK/refused" ||
    fail 'a directory with such blobs can be renamed'
for name in held pictured; do
    ! mv "$WORK/blobs/$name" "$WORK/blobs/moved" 2>"$WORK/refused" || fail "$name can be renamed"
    grep -q 'busy' "$WORK/refused" || fail "not EBUSY: $(cat "$WORK/refused")"
done
[ "$("${AZURITE_CLIENT[@]}" --listing)" = "$before" ] ||
    fail 'a refused operation changed the container'
rm "$WORK/blobs/kept/log" "$WORK/blobs/kept/disk"
unmount_view "$WORK/blobs"

say 'errors name the cause'
mkdir -p "$WORK/none"
expect_failure 'AZURE_STORAGE_ACCOUNT' env -u AZURE_STORAGE_CONNECTION_STRING \
    "$OGIVE" mount az://bench "$WORK/none"
expect_failure 'cannot mount az://missing' "$OGIVE" mount az://missing "$WORK/none"
passed
