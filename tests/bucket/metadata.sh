#!/usr/bin/env bash
# Modes, owners, times and links in the metadata of objects, in the formats of s3fs and of Google's
# programs. If s3fs is installed, it reads and writes the same bucket. Other metadata of an object
# stays when its bytes change.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
bucket_suite metadata 'metadata of objects, shared with other programs'

serve_demo
# has_metadata KEY LINE: whether an object has a line of metadata.
has_metadata() {
    local metadata
    metadata="$(python3 "$HERE_BUCKET/s3_client.py" demo head "$1")"
    grep -qxF "$2" <<<"$metadata"
}

# shown FILE: the attributes that metadata can hold.
shown() {
    stat -c '%A %u %g %Y' "$1"
}

say 'metadata of other programs stays when a file is changed or renamed'
python3 - "$HERE_BUCKET" <<'PUT'
import sys
sys.path.insert(0, sys.argv[1])
from s3_client import Store
Store("demo").put("theirs", b"x" * 100, {"x-amz-meta-Note": "kept", "content-type": "text/html"})
PUT
mount_at off
printf 'more' >>"$WORK/off/theirs"
mv "$WORK/off/theirs" "$WORK/off/moved"
mkdir "$WORK/off/d"
mv "$WORK/off/moved" "$WORK/off/d/moved"
mv "$WORK/off/d" "$WORK/off/e"
has_metadata e/moved 'note: kept' || fail 'the metadata of an object is lost'
! chmod 600 "$WORK/off/e/moved" 2>/dev/null || fail 'chmod is not refused without --metadata'
unmount_view "$WORK/off"
mount_at ignored --chmod ignore
chmod 600 "$WORK/ignored/e/moved" || fail 'chmod fails in spite of --chmod ignore'
cp -p "$HERE_BUCKET/lib.sh" "$WORK/ignored/copy" || fail 'cp -p fails'
unmount_view "$WORK/ignored"

for words in s3fs gcs; do
    say "modes, owners, times and links, in the format of $words"
    mount_at one --metadata "$words" --allow-other
    mkdir "$WORK/one/$words"
    at="$words/file"
    printf 'hello' >"$WORK/one/$at"
    chmod 640 "$WORK/one/$at"
    chown 7:8 "$WORK/one/$at"
    touch -d '2001-02-03 04:05:06 UTC' "$WORK/one/$at"
    expected='-rw-r----- 7 8 981173106'
    [ "$(shown "$WORK/one/$at")" = "$expected" ] || fail "the mount shows $(shown "$WORK/one/$at")"
    ln -s ../file "$WORK/one/$words/link"
    cp -p "$HERE_BUCKET/lib.sh" "$WORK/one/$words/copy"
    mount_at two --metadata "$words"
    [ "$(shown "$WORK/two/$at")" = "$expected" ] ||
        fail "another mount shows $(shown "$WORK/two/$at")"
    [ "$(readlink "$WORK/two/$words/link")" = ../file ] || fail 'a link has another target'
    [ -L "$WORK/two/$words/link" ] || fail 'a link is no link'
    [ "$(shown "$WORK/two/$words/copy")" = "$(shown "$HERE_BUCKET/lib.sh")" ] ||
        fail 'cp -p loses attributes'
    find "$WORK/two/$words" -type l | grep -q link || fail 'find does not list a link'
    # A write changes only the time.
    printf ' again' >>"$WORK/one/$at"
    [ "$(shown "$WORK/two/$at" | cut -d ' ' -f 1-3)" = '-rw-r----- 7 8' ] ||
        fail 'a write changes a mode'
    [ "$(stat -c %Y "$WORK/two/$at")" -gt 1700000000 ] || fail 'a write does not change the time'
    [ "$(cat "$WORK/two/$at")" = 'hello again' ] || fail 'wrong bytes'
    mv "$WORK/one/$at" "$WORK/one/$words/renamed"
    [ "$(shown "$WORK/two/$words/renamed" | cut -d ' ' -f 1-3)" = '-rw-r----- 7 8' ] ||
        fail 'a renamed file has another mode'
    # Large enough for a multipart upload that begins before cp sets the mode.
    head -c 20000000 /dev/zero >"$WORK/large"
    chmod 600 "$WORK/large"
    touch -d '2002-02-02 02:02:02 UTC' "$WORK/large"
    cp -p "$WORK/large" "$WORK/one/$words/large"
    [ "$(shown "$WORK/two/$words/large")" = "$(shown "$WORK/large")" ] ||
        fail 'a large file loses its mode'
    unmount_view "$WORK/two"
    unmount_view "$WORK/one"
done
has_metadata s3fs/renamed 'mode: 33184' || fail 'a mode is not in the format of s3fs'
has_metadata gcs/renamed 'goog-reserved-posix-mode: 640' || fail "a mode is not in Google's format"

if command -v s3fs >/dev/null; then
    say 's3fs on the same bucket'
    printf '%s:%s' "$AWS_ACCESS_KEY_ID" "$AWS_SECRET_ACCESS_KEY" >"$WORK/passwd"
    chmod 600 "$WORK/passwd"
    mkdir -p "$WORK/s3fs"
    remember_mount "$WORK/s3fs"
    s3fs demo "$WORK/s3fs" -o "passwd_file=$WORK/passwd,url=$AWS_ENDPOINT_URL" \
        -o use_path_request_style \
        -o stat_cache_expire=0
    is_mounted "$WORK/s3fs" || fail 's3fs does not mount'
    [ "$(shown "$WORK/s3fs/s3fs/large")" = "$(shown "$WORK/large")" ] ||
        fail "s3fs shows $(shown "$WORK/s3fs/s3fs/large")"
    [ "$(readlink "$WORK/s3fs/s3fs/link")" = ../file ] || fail 's3fs does not show our link'
    printf 'by s3fs' >"$WORK/s3fs/s3fs/its"
    chmod 604 "$WORK/s3fs/s3fs/its"
    chown 5:6 "$WORK/s3fs/s3fs/its"
    touch -d '2003-03-03 03:03:03 UTC' "$WORK/s3fs/s3fs/its"
    ln -s its "$WORK/s3fs/s3fs/itslink"
    mount_at three --metadata s3fs
    [ "$(shown "$WORK/three/s3fs/its")" = '-rw----r-- 5 6 1046660583' ] ||
        fail "a file of s3fs shows $(shown "$WORK/three/s3fs/its")"
    [ "$(readlink "$WORK/three/s3fs/itslink")" = its ] || fail 'a link of s3fs is no link'
    [ "$(cat "$WORK/three/s3fs/itslink")" = 'by s3fs' ] || fail 'a link of s3fs has no target'
    unmount_view "$WORK/three"
    umount "$WORK/s3fs" || fail 's3fs cannot be unmounted'
fi

say 'keys that cannot be shown are listed with reasons'
for key in a//b d/../e ' lead' shadow shadow/below; do
    python3 - "$HERE_BUCKET" "$key" <<'PUT'
import sys
sys.path.insert(0, sys.argv[1])
from s3_client import Store
try:
    Store("demo").put(sys.argv[2], b"hidden")
except Exception as error:
    print(f"{sys.argv[2]!r} is refused by the store: {error}")
PUT
done
mount_at four
ls "$WORK/four" "$WORK/four/a" "$WORK/four/d" >/dev/null
hidden="$(cat "$WORK/four/.ogive/hidden")"
for line in $'a//\tit has an empty part' $'d/../\tit has a part . or ..' \
    $' lead\tit begins or ends with white space' $'shadow\ta directory has the same name'; do
    grep -qxF "$line" <<<"$hidden" || fail "not listed: $line; listed: $hidden"
done
unmount_view "$WORK/four"
unmount_view "$WORK/server"
passed
