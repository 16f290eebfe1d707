#!/usr/bin/env bash
# File systems mounted below the source. While no program uses them through the view, they can be
# unmounted. The view shows what is mounted there next.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite submounts 'idle file systems below the source can be unmounted'
needs_ogive
need "$OGIVE" mkfs.ext4

mkdir -p "$WORK/source/a/b" "$WORK/source/file-system" "$WORK/source/plain" "$WORK/view"
echo under >"$WORK/source/a/b/under"
truncate -s 16M "$WORK/image"
mkfs.ext4 -q "$WORK/image"

# waits_of PID: the voluntary context switches of the threads that serve requests.
waits_of() {
    local task
    for task in "/proc/$1/task"/*; do
        case "$(cat "$task/comm")" in
            origin* | fuse* | request) grep '^voluntary' "$task/status" ;;
        esac
    done
}

# shows NAME: whether NAME is the only name in a/b.
shows() {
    [ "$(ls "$WORK/view/a/b")" = "$1" ]
}

# try_kind KIND MOUNT-COMMAND...: mounts a file system at a/b, uses it, and unmounts it.
try_kind() {
    local kind="$1" below="$WORK/source/a/b"
    shift
    "$@" "$below"
    remember_mount "$below"
    mkdir -p "$below/inner/deep"
    echo "$kind" >"$below/inner/deep/file"
    # The kernel may cache the old a/b for a second.
    sleep 1.2
    [ "$(cat "$WORK/view/a/b/inner/deep/file")" = "$kind" ] ||
        fail "cannot read $kind below the source"
    echo written >"$WORK/view/a/b/inner/new"
    ls -lR "$WORK/view/a/b" >/dev/null
    # An open file keeps the file system busy until it is closed.
    exec 9<"$WORK/view/a/b/inner/deep/file"
    sleep 2.5
    ! umount "$below" 2>/dev/null ||
        fail "$kind was unmounted with an open file"
    [ "$(cat <&9)" = "$kind" ] || fail 'the open file cannot be read'
    exec 9<&-
    # The daemon has closed its descriptors by now, and finds the file again by the kernel's inodes.
    sleep 2.5
    [ "$(cat "$WORK/view/a/b/inner/deep/file")" = "$kind" ] || fail "$kind is not found again"
    eventually 60 "an idle $kind can be unmounted" umount "$below"
    within_seconds 60 shows under || fail "the view shows $(ls "$WORK/view/a/b" 2>&1)"
    expect_failure '' cat "$WORK/view/a/b/inner/deep/file"
    [ "$(cat "$WORK/view/a/b/under")" = under ] || fail 'the directory below cannot be read'
    say "$kind"
}

mount_view "$WORK/source" "$WORK/view" "$@"
daemon="$(daemon_of "$WORK/view")"
try_kind tmpfs mount -t tmpfs none
try_kind ext4 mount -o loop "$WORK/image"
try_kind 'ext4 again' mount -o loop "$WORK/image"
try_kind 'a bind mount' mount --bind "$WORK/source/plain"

# A mount within a mount.
mount -t tmpfs outer "$WORK/source/file-system"
remember_mount "$WORK/source/file-system"
mkdir "$WORK/source/file-system/nested"
mount -t tmpfs inner "$WORK/source/file-system/nested"
remember_mount "$WORK/source/file-system/nested"
echo nested >"$WORK/source/file-system/nested/file"
[ "$(cat "$WORK/view/file-system/nested/file")" = nested ] || fail 'cannot read a nested mount'
sleep 3
[ "$(cat "$WORK/view/file-system/nested/file")" = nested ] || fail 'not found again'
eventually 60 'the inner one can be unmounted' umount "$WORK/source/file-system/nested"
eventually 60 'the outer one can be unmounted' umount "$WORK/source/file-system"
say 'nested mounts'

# one_file_system: with --one-file-system, the view shows no file of other file systems.
one_file_system() {
    local below="$WORK/source/a/b" alone="$WORK/alone"
    rm -r "$WORK/source/plain"/*
    mount -t tmpfs other "$below"
    remember_mount "$below"
    echo precious >"$below/file"
    mount_view "$WORK/source" "$alone" --one-file-system
    [ "$(find "$alone" -xdev -name file -o -name under)" = "$alone/a/b/under" ] ||
        fail "the view of one file system shows $(find "$alone" -xdev)"
    [ "$(cat "$alone/a/b/under")" = under ] || fail 'the directory below the mount cannot be read'
    echo written >"$alone/a/b/new"
    # A later mount is left out as well.
    mount -t tmpfs later "$WORK/source/plain"
    remember_mount "$WORK/source/plain"
    echo precious >"$WORK/source/plain/file"
    sleep 1.2
    # Mount points cannot be removed: the kernel returns EBUSY.
    expect_failure 'busy' rm -r --one-file-system "$alone"/*
    [ "$(cat "$below/file")$(cat "$WORK/source/plain/file")" = preciousprecious ] ||
        fail 'files of other file systems were removed'
    umount "$below" "$WORK/source/plain" || fail 'the view keeps a hidden file system busy'
    [ -z "$(find "$WORK/source" -type f)" ] || fail "files are left: $(find "$WORK/source")"
    unmount_view "$alone"
    say 'with --one-file-system'
}

# Without requests, no thread wakes up.
eventually 60 'the daemon is idle' same_twice waits_of "$daemon"
before="$(waits_of "$daemon")"
sleep 4
[ "$before" = "$(waits_of "$daemon")" ] || fail 'an idle daemon wakes up'
unmount_view "$WORK/view"
say 'an idle daemon does not wake up'

one_file_system
passed
