#!/usr/bin/env bash
# How far the view trusts a source's times. It must not trust a change time that programs can set,
# or a time that does not change with the object. The suite uses every file system that it can
# mount.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite times 'sources whose times programs can set, or that do not change'
needs_ogive

view="$WORK/view"
stamp="$WORK/stamp"
window=(--racy-window 20ms)
touch -d '2024-03-01 10:00:00 UTC' "$stamp"

# below MNT OPTION...: mounts a view of MNT without TTLs, so that only times can cause stale data.
below() {
    local source="$1"
    shift
    mount_view "$source" "$view" --metadata-ttl 0 --negative-ttl 0 "${window[@]}" "$@"
}

# doubts TYPE: whether the mount and `ogive stat` report that they do not trust a file system's
# times.
doubts() {
    grep -q "\"file_system\": \"$1 at " "$view/.ogive/mount" &&
        "$OGIVE" stat "$view" 1 1 2>&1 | grep -q "^ogive: .*$1 at .*--trust-times"
}

# change_and_put_back DIRECTORY: writes other bytes of the same length, and restores the old time.
change_and_put_back() {
    printf 'second version\n' >"$1/file"
    touch -r "$stamp" "$1/file"
}

# a_hidden_change REAL NAME OPTION...: bytes change in REAL with a restored time; the next open must
# see them.
a_hidden_change() {
    local real="$1" name="$2"
    shift 2
    printf 'first  version\n' >"$real/file"
    touch -r "$stamp" "$real/file"
    sleep 0.05
    for _ in 1 2 3; do cat "$view/file" >/dev/null; done
    change_and_put_back "$real"
    [ "$(cat "$view/file")" = 'second version' ] ||
        fail "$name $*: after a change with a restored time: $(cat "$view/file")"
}

# names_are_listed REAL NAME OPTION...: listings show names created behind the mount and through it.
names_are_listed() {
    local real="$1" name="$2" number
    mkdir -p "$real/d"
    sleep 0.05
    for _ in 1 2 3; do ls "$view/d" >/dev/null; done
    for number in 1 2 3; do
        echo x >"$real/d/behind-$number"
        echo x >"$view/d/through-$number"
        [ "$(find "$view/d" -type f | wc -l)" -eq $((2 * number)) ] ||
            fail "$name: not all of $((2 * number)) names are listed: $(ls "$view/d")"
    done
    cp -r "$view/d" "$WORK/copy"
    [ "$(find "$WORK/copy" -type f | wc -l)" -eq 6 ] || fail "$name: cp -r leaves some out"
    rm -r "$WORK/copy"
    rm -r "$view/d" || fail "$name: rm -r does not find all"
    [ ! -e "$real/d" ] || fail "$name: rm -r left the directory"
}

# misses: the number of records read from the source so far.
misses() {
    awk '$1 == "origin_reads" { print $3 }' "$view/.ogive/ogivestats"
}

# reads_of_two_openings: the number of records that two opens of a cached file read.
reads_of_two_openings() {
    local before
    cat "$view/kept" >/dev/null
    before="$(misses)"
    cat "$view/kept" "$view/kept" >/dev/null
    echo $(($(misses) - before))
}

# doubted SOURCE REAL TYPE: the view must not trust the times, with page cache and with direct I/O,
# but for --trust-times.
doubted() {
    local options
    echo kept >"$2/kept"
    touch -r "$stamp" "$2/kept"
    for options in '' --direct-io; do
        # shellcheck disable=SC2086 # no option, or one
        below "$1" $options
        doubts "$3" || fail "$3 $options: the mount does not report that it doubts its times"
        a_hidden_change "$2" "$3" "$options"
        names_are_listed "$2" "$3"
        [ "$(reads_of_two_openings)" -eq 2 ] || fail "$3 $options: a cached file is not read again"
        unmount_view "$view"
    done
    below "$1" --direct-io --trust-times always
    ! grep -q file_system "$view/.ogive/mount" || fail "$3: doubted in spite of --trust-times"
    [ "$(reads_of_two_openings)" -eq 0 ] || fail "$3: read again in spite of --trust-times"
    names_are_listed "$2" "$3, trusted"
    unmount_view "$view"
}

# trusted SOURCE REAL NAME: the view trusts the times, so it reads an unchanged file once, and it
# sees every change.
trusted() {
    echo kept >"$2/kept"
    touch -r "$stamp" "$2/kept"
    below "$1" --direct-io
    ! grep -q file_system "$view/.ogive/mount" || fail "$3: its times are doubted"
    sleep 0.05
    [ "$(reads_of_two_openings)" -eq 0 ] || fail "$3: a file is read again"
    a_hidden_change "$2" "$3"
    names_are_listed "$2" "$3"
    unmount_view "$view"
    say "$3: trusted"
}

# Good times are trusted, but not with --trust-times never.
mkdir "$WORK/plain"
trusted "$WORK/plain" "$WORK/plain" 'the file system of the suite'
below "$WORK/plain" --direct-io --trust-times never
[ "$(reads_of_two_openings)" -eq 2 ] || fail '--trust-times never: a cached file is not read again'
unmount_view "$view"
mkdir "$WORK/tmpfs"
if mount -t tmpfs times-test "$WORK/tmpfs" 2>/dev/null; then
    remember_mount "$WORK/tmpfs"
    trusted "$WORK/tmpfs" "$WORK/tmpfs" tmpfs
    mkdir "$WORK/tmpfs/upper" "$WORK/tmpfs/work" "$WORK/merged"
    if mount -t overlay times-test "$WORK/merged" -o \
        "lowerdir=$WORK/plain,upperdir=$WORK/tmpfs/upper,workdir=$WORK/tmpfs/work" 2>/dev/null; then
        remember_mount "$WORK/merged"
        trusted "$WORK/merged" "$WORK/merged" 'overlayfs over local ones'
    fi
fi
for type in xfs btrfs; do
    mkdir "$WORK/$type"
    if command -v "mkfs.$type" >/dev/null && truncate -s 320M "$WORK/$type.image" &&
        "mkfs.$type" -q "$WORK/$type.image" >/dev/null &&
        mount -o loop "$WORK/$type.image" "$WORK/$type" 2>/dev/null; then
        remember_mount "$WORK/$type"
        trusted "$WORK/$type" "$WORK/$type" "$type"
    else
        say "$type: cannot be made and mounted here"
    fi
done

# A view of a view is trusted as its source is. With another name, as of a bucket, it is doubted.
mkdir "$WORK/inner" "$WORK/inner-source"
inner() {
    mount_view "$WORK/inner-source" "$WORK/inner" --metadata-ttl 0 --negative-ttl 0 "${window[@]}" \
        "$@"
}
inner
trusted "$WORK/inner" "$WORK/inner-source" 'a view of a view'
unmount_view "$WORK/inner"
inner --name something
doubted "$WORK/inner" "$WORK/inner-source" fuse.ogive
unmount_view "$WORK/inner"
say 'a view under another name: doubted'

# other NAME REAL COMMAND...: another file system, if it is installed.
other() {
    local name="$1" real="$2"
    shift 2
    if ! command -v "$1" >/dev/null; then
        say "$name: no $1 on this machine"
        return
    fi
    mkdir -p "$WORK/$name" "$real"
    if ! "$@"; then
        say "$name: cannot be mounted here"
        return
    fi
    remember_mount "$WORK/$name"
    doubted "$WORK/$name" "$real" "fuse[.a-z]*"
    force_unmount "$WORK/$name"
    say "$name: doubted"
}
mkdir -p "$WORK/real-bindfs"
other bindfs "$WORK/real-bindfs" bindfs -o attr_timeout=0,entry_timeout=0 --ctime-from-mtime \
    "$WORK/real-bindfs" "$WORK/bindfs"

# A type that is trusted, but whose change time can be set: here bindfs under the name juicefs. The
# view detects it when a program sets an old time.
mkdir "$WORK/real-found-out" "$WORK/found-out"
if command -v bindfs >/dev/null && bindfs --ctime-from-mtime -o attr_timeout=0,entry_timeout=0 \
    -o subtype=juicefs "$WORK/real-found-out" "$WORK/found-out"; then
    remember_mount "$WORK/found-out"
    below "$WORK/found-out" --direct-io
    ! grep -q file_system "$view/.ogive/mount" || fail 'fuse.juicefs: doubted too early'
    echo kept >"$view/kept"
    touch -r "$stamp" "$view/kept"
    doubts fuse.juicefs || fail 'the mount does not report that a change time was set'
    a_hidden_change "$WORK/real-found-out" 'found out'
    [ "$(reads_of_two_openings)" -eq 2 ] || fail 'found out: a cached file is not read again'
    unmount_view "$view"
    force_unmount "$WORK/found-out"
    say 'a trusted type: doubted after a time was set'
fi

# An overlay is trusted only if all of its layers are.
if command -v bindfs >/dev/null && mkdir "$WORK/over-bindfs" "$WORK/lower-bindfs" &&
    bindfs --ctime-from-mtime "$WORK/real-bindfs" "$WORK/lower-bindfs"; then
    remember_mount "$WORK/lower-bindfs"
    if mount -t overlay times-test "$WORK/over-bindfs" -o \
        "lowerdir=$WORK/lower-bindfs:$WORK/plain" 2>/dev/null; then
        remember_mount "$WORK/over-bindfs"
        below "$WORK/over-bindfs"
        doubts overlay || fail 'an overlay over bindfs: the mount does not report its doubt'
        unmount_view "$view"
        say 'an overlay over bindfs: doubted'
    fi
fi

# sshfs without a network, through a pair of pipes.
sftp_server=/usr/lib/openssh/sftp-server
sshfs_by_pipe() {
    coproc SFTP { exec "$sftp_server"; }
    # Background commands do not inherit a coprocess's descriptors, only copies of them.
    exec 7<&"${SFTP[0]}" 8>&"${SFTP[1]}"
    sshfs -f -o passive,dir_cache=no,attr_timeout=0,entry_timeout=0 ":$WORK/real-sshfs" \
        "$WORK/sshfs" <&7 >&8 &
    within_seconds 20 is_mounted "$WORK/sshfs"
}
if [ -x "$sftp_server" ] && command -v sshfs >/dev/null; then
    mkdir -p "$WORK/real-sshfs"
    other sshfs "$WORK/real-sshfs" sshfs_by_pipe
else
    say 'sshfs: not on this machine, or no server'
fi

# mergerfs: a directory's time comes from the first disk, and new names go to the second.
union() {
    mkdir -p "$WORK/disk-1/d" "$WORK/disk-2/d" "$WORK/mergerfs"
    mergerfs -o cache.files=off,cache.attr=0,cache.entry=0,category.create=lfs \
        "$WORK/disk-1:$WORK/disk-2" "$WORK/mergerfs"
}
if command -v mergerfs >/dev/null && union; then
    remember_mount "$WORK/mergerfs"
    below "$WORK/mergerfs"
    names_are_listed "$WORK/disk-2" mergerfs
    unmount_view "$view"
    force_unmount "$WORK/mergerfs"
    say 'mergerfs: new names are listed, though directory times do not change'
else
    say 'mergerfs: cannot be mounted here'
fi

# An image replaces another one with the same sizes, times and inode numbers. The view must not mix
# them up, also with a second level that has records of the first.
image() {
    rm -rf "$WORK/tree" && mkdir "$WORK/tree"
    yes "$1" | head -c 300000 >"$WORK/tree/kept" || true
    mksquashfs "$WORK/tree" "$WORK/$1" -quiet -no-progress -all-time 0 -mkfs-time 0 >/dev/null
}
mount_image() {
    mount -t squashfs -o loop,ro "$WORK/$1" "$WORK/image" 2>/dev/null
}
mkdir "$WORK/image"
if command -v mksquashfs >/dev/null && image one && image two && mount_image one; then
    remember_mount "$WORK/image"
    second=(--direct-io --l2 "$WORK/l2" --l2-size 64M --l2-admit all --arc-max 8M)
    for which in one two one; do
        below "$WORK/image" "${second[@]}"
        cmp <(yes "$which" | head -c 300000) "$view/kept" ||
            fail "squashfs: the bytes are not those of image $which"
        [ "$(reads_of_two_openings)" -eq 0 ] || fail 'squashfs: an image is read again'
        unmount_view "$view"
        umount "$WORK/image"
        mount_image "$([ "$which" = one ] && echo two || echo one)"
    done
    say 'squashfs: each image has its own bytes'
else
    say 'squashfs: no image can be made and mounted here'
fi
passed
