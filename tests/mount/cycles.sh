#!/usr/bin/env bash
# Mounts that would read from each other in a circle would wait for ever, so they are refused. This
# holds for two and three mounts, through bind mounts, through mounts below a source, and under
# other names. If a mount below a view's source closes a circle later, the view returns ELOOP.
#
# Every command has a time limit, and connections that hang are aborted at the end: a bug must not
# hang the machine.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite cycles 'mounts in a circle'
needs_ogive
need "$OGIVE" timeout

cd "$WORK"
mkdir a b c d other other/in bound

# abort_connections: after a failure, aborts the connections of this suite's mounts, so that no
# program waits for them.
abort_connections() {
    local code=$?
    mkdir -p "$WORK/connections"
    if mount -t fusectl fusectl "$WORK/connections" 2>/dev/null; then
        awk -v work="$WORK/" 'index($5, work) == 1 && / - fuse.ogive / {
            split($3, device, ":"); print device[2] }' /proc/self/mountinfo | sort -u |
            while read -r number; do
                [ "$code" -eq 0 ] || echo 1 >"$WORK/connections/$number/abort"
            done
        umount "$WORK/connections"
    fi
    (exit "$code")
    cleanup
}
trap abort_connections EXIT

# refused SRC MNT THROUGH [OPTION...]: the mount must be refused, and the message must name THROUGH.
refused() {
    local source="$1" mount="$2" through="$3"
    shift 3
    expect_failure "the source comes from there, through $through" \
        timeout 60 "$OGIVE" mount "$@" "$source" "$mount"
    ! is_mounted "$mount" || fail "$mount was mounted although it was refused"
}

mount_view "$WORK/a" "$WORK/b"
refused "$WORK/b" "$WORK/a" "$WORK/b"
mkdir "$WORK/a/inner" "$WORK/a/point"
refused "$WORK/b" "$WORK/a/point" "$WORK/b"
refused "$WORK/b/inner" "$WORK/a/point" "$WORK/b"
say 'two mounts'
mount_view "$WORK/b" "$WORK/c"
refused "$WORK/c" "$WORK/a" "$WORK/c and $WORK/b"
say 'three mounts'
mount --bind "$WORK/c" "$WORK/bound"
remember_mount "$WORK/bound"
refused "$WORK/bound" "$WORK/a" "$WORK/bound and $WORK/b"
say 'through a bind mount'
mount --bind "$WORK/b" "$WORK/other/in"
remember_mount "$WORK/other/in"
refused "$WORK/other" "$WORK/a" "$WORK/other/in"
umount "$WORK/other/in"
say 'through a mount below the source'
umount "$WORK/bound"
unmount_view "$WORK/c"
unmount_view "$WORK/b"

# loops PATH...: a listing of each path must fail with ELOOP, twice.
loops() {
    local path
    for path in "$@" "$@"; do
        expect_failure 'Too many levels of symbolic links' timeout 60 ls "$path"
    done
}

# The view itself is bound into its source while it is mounted.
for options in '' --direct-io '--metadata-ttl 0'; do
    # shellcheck disable=SC2086 # several options
    mount_view "$WORK/a" "$WORK/b" $options
    mkdir -p "$WORK/a/self"
    mount --bind "$WORK/b" "$WORK/a/self"
    remember_mount "$WORK/a/self"
    loops "$WORK/b/self" "$WORK/b/self/inner"
    expect_failure 'Too many levels' timeout 60 stat "$WORK/b/self"
    timeout 60 ls "$WORK/b" | grep -q inner || fail 'its parent cannot be listed'
    timeout 60 ls -l "$WORK/b" >/dev/null 2>&1 || true
    umount "$WORK/a/self"
    sleep 1.2
    timeout 60 ls "$WORK/b/self" || fail 'the directory below it cannot be listed afterwards'
    unmount_view "$WORK/b"
done
say 'the view itself, bound into its source'
# Another view reads from this one through a later bind mount.
mount_view "$WORK/a" "$WORK/b"
mount_view "$WORK/other" "$WORK/a/point"
timeout 60 ls "$WORK/b/point" >/dev/null || fail 'a view in the source of another cannot be read'
mount --bind "$WORK/b" "$WORK/other/in"
remember_mount "$WORK/other/in"
loops "$WORK/a/point/in" "$WORK/b/point/in"
umount "$WORK/other/in"
eventually 60 'the other view can be unmounted' "$OGIVE" unmount "$WORK/a/point"
unmount_view "$WORK/b"
say 'another view that reads from it through a later mount'

# Mounts without a circle are allowed.
mount_view "$WORK/a" "$WORK/b"
mount_view "$WORK/b" "$WORK/c"
mount_view "$WORK/other" "$WORK/a/point"
timeout 60 ls "$WORK/b/point" "$WORK/c/point" >/dev/null ||
    fail 'a view in the source of another cannot be read'
unmount_view "$WORK/c"
unmount_view "$WORK/b"
unmount_view "$WORK/a/point"
mount_view "$WORK/a" "$WORK/b" --name photographs
refused "$WORK/b" "$WORK/a" "$WORK/b"
mv "$WORK/a" "$WORK/moved"
refused "$WORK/b" "$WORK/moved" "$WORK/b"
mv "$WORK/moved" "$WORK/a"
unmount_view "$WORK/b"
say 'under another name, and after the source was renamed'
# With shared propagation, a mount on the bind mount appears in the source as well.
mount --bind "$WORK/a" "$WORK/a"
remember_mount "$WORK/a"
mount --make-shared "$WORK/a"
mount --bind "$WORK/a" "$WORK/bound"
remember_mount "$WORK/bound"
mount_view "$WORK/a" "$WORK/b"
expect_failure 'inside its own source' timeout 60 "$OGIVE" mount "$WORK/b" "$WORK/bound/point"
! is_mounted "$WORK/bound/point" || fail 'a refused mount stays mounted'
unmount_view "$WORK/b"
umount "$WORK/bound"
umount "$WORK/a"
say 'through mount propagation'
passed
