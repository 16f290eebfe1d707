#!/usr/bin/env bash
# File systems mounted below the source: while no program uses them through the view, they can be
# unmounted, and the view shows the next file system that is mounted there.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite submounts 'file systems mounted below the source are let go of when they are idle'
needs_ogive
need "$OGIVE" mkfs.ext4

mkdir -p "$WORK/source/a/b" "$WORK/source/file-system" "$WORK/source/plain" "$WORK/view"
echo under >"$WORK/source/a/b/under"
truncate -s 16M "$WORK/image"
mkfs.ext4 -q "$WORK/image"

# waits_of PID: the number of sleeps of its threads, without those that the kernel wakes.
waits_of() {
    local task
    for task in "/proc/$1/task"/*; do
        case "$(cat "$task/comm")" in
            origin* | fuse* | request) grep '^voluntary' "$task/status" ;;
        esac
    done
}

# shows NAME: whether it is all there is at a/b.
shows() {
    [ "$(ls "$WORK/view/a/b")" = "$1" ]
}

# try_kind KIND MOUNT-COMMAND...: with a file system of a kind at a/b.
try_kind() {
    local kind="$1" below="$WORK/source/a/b"
    shift
    "$@" "$below"
    remember_mount "$below"
    mkdir -p "$below/inner/deep"
    echo "$kind" >"$below/inner/deep/file"
    # The kernel may use the old a/b for a second.
    sleep 1.2
    [ "$(cat "$WORK/view/a/b/inner/deep/file")" = "$kind" ] ||
        fail "cannot read $kind below the source"
    echo written >"$WORK/view/a/b/inner/new"
    ls -lR "$WORK/view/a/b" >/dev/null
    # A program holds it, and then no longer.
    exec 9<"$WORK/view/a/b/inner/deep/file"
    sleep 2.5
    ! umount "$below" 2>/dev/null ||
        fail "$kind was unmounted although a program reads a file of it"
    [ "$(cat <&9)" = "$kind" ] || fail 'the open file cannot be read'
    exec 9<&-
    # The kernel's inode finds it again after the daemon has released it.
    sleep 2.5
    [ "$(cat "$WORK/view/a/b/inner/deep/file")" = "$kind" ] || fail "$kind is not found again"
    eventually 60 "$kind, which nobody uses, can be unmounted" umount "$below"
    # The view shows the file system that is there then.
    within_seconds 60 shows under || fail "the view shows $(ls "$WORK/view/a/b" 2>&1)"
    expect_failure '' cat "$WORK/view/a/b/inner/deep/file"
    [ "$(cat "$WORK/view/a/b/under")" = under ] || fail 'what is below cannot be read'
    say "$kind"
}

mount_view "$WORK/source" "$WORK/view" "$@"
daemon="$(daemon_of "$WORK/view")"
try_kind tmpfs mount -t tmpfs none
try_kind ext4 mount -o loop "$WORK/image"
try_kind 'ext4 again' mount -o loop "$WORK/image"
try_kind 'a bind mount' mount --bind "$WORK/source/plain"

# Nested mounts.
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
say 'one in the other'

# one_file_system: programs that stay on one file system are not led into another.
one_file_system() {
    local below="$WORK/source/a/b" alone="$WORK/alone"
    rm -r "$WORK/source/plain"/*
    mount -t tmpfs other "$below"
    remember_mount "$below"
    echo precious >"$below/file"
    mount_view "$WORK/source" "$alone" --one-file-system
    [ "$(find "$alone" -xdev -name file -o -name under)" = "$alone/a/b/under" ] ||
        fail "the view of one file system shows $(find "$alone" -xdev)"
    [ "$(cat "$alone/a/b/under")" = under ] || fail 'what is below the mount cannot be read'
    echo written >"$alone/a/b/new"
    # A later mount is left out, too.
    mount -t tmpfs later "$WORK/source/plain"
    remember_mount "$WORK/source/plain"
    echo precious >"$WORK/source/plain/file"
    sleep 1.2
    # What something is mounted on stays: the kernel says that it is busy.
    expect_failure 'busy' rm -r --one-file-system "$alone"/*
    [ "$(cat "$below/file")$(cat "$WORK/source/plain/file")" = preciousprecious ] ||
        fail 'what is on other file systems was removed'
    umount "$below" "$WORK/source/plain" || fail 'a file system that is left out is kept busy'
    [ -z "$(find "$WORK/source" -type f)" ] || fail "files are left: $(find "$WORK/source")"
    unmount_view "$alone"
    say 'one file system alone'
}

# Without requests, no thread wakes up.
eventually 60 'the daemon comes to rest' same_twice waits_of "$daemon"
before="$(waits_of "$daemon")"
sleep 4
[ "$before" = "$(waits_of "$daemon")" ] || fail 'an idle daemon wakes up'
unmount_view "$WORK/view"
say 'and nobody wakes up afterwards'

one_file_system
passed
