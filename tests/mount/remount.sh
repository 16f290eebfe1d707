#!/usr/bin/env bash
# Common options of mount(8): each has its effect or is refused with a reason, for mounting and
# remounting, through ogive and through mount(8).
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite remount 'options of mount(8), and remounting'
needs_ogive
need "$OGIVE" mkfs.ext4

view="$WORK/view"
disk="$WORK/disk"
mkdir "$view" "$disk"
# A disk with strictatime, where every read changes the access time.
truncate -s 16M "$WORK/image"
mkfs.ext4 -q "$WORK/image"
mount -o loop,strictatime "$WORK/image" "$disk" || skip 'no loop device on this machine'
remember_mount "$disk"
printf '#!/bin/sh\necho ran\n' >"$disk/program"
chmod 755 "$disk/program"
mkdir "$disk/directory"

# flags: the kernel's flags of the mount.
flags() {
    awk -v at="$view" '$5 == at { print $6 }' /proc/self/mountinfo
}

# has FLAG: whether the mount has a flag.
has() {
    grep -qw "$1" <<<"$(flags)"
}

# remount OPTIONS: as mount(8) calls its helper.
remount() {
    "$OGIVE" mount -o "remount,$1" "$disk" "$view"
}

# old PATH...: sets an old access time.
old() {
    touch -a -d 2001-01-01 "$@"
}

# is_old PATH: whether the access time is still the old one.
is_old() {
    [ "$(stat -c %X "$1")" -eq "$(date -d 2001-01-01 +%s)" ]
}

for option in ro noexec nodev nosuid noatime nodiratime; do
    mount_view "$disk" "$view" -o "$option"
    has "$option" || fail "mounted with $option, the kernel has $(flags)"
    case "$option" in
        ro) expect_failure 'Read-only file system' touch "$view/new" ;;
        noexec) expect_failure 'Permission denied' "$view/program" ;;
    esac
    old "$disk/program" "$disk/directory"
    cat "$view/program" >/dev/null
    ls "$view/directory"
    case "$option" in
        noatime)
            is_old "$disk/program" || fail 'noatime: a read changed the access time of a file'
            is_old "$disk/directory" || fail 'noatime: a listing changed that of a directory'
            ;;
        nodiratime)
            is_old "$disk/directory" || fail 'nodiratime: a listing changed the access time'
            ! is_old "$disk/program" || fail 'nodiratime: a read changed no access time of a file'
            ;;
        *) ! is_old "$disk/program" || fail "$option: a read changed no access time" ;;
    esac
    unmount_view "$view"
done
for option in sync dirsync lazytime strictatime iversion mand; do
    expect_failure "cannot mount with \"$option\"" "$OGIVE" mount -o "$option" "$disk" "$view"
done
for option in relatime async defaults,nofail,_netdev,x-systemd.automount atime,diratime; do
    mount_view "$disk" "$view" -o "$option"
    unmount_view "$view"
done
expect_failure 'memory of this machine' "$OGIVE" mount --arc-max 999T "$disk" "$view"
say 'each option has an effect, describes the default, or is refused'

mount_view "$disk" "$view"
remount ro
has ro || fail 'remount,ro: the kernel says rw'
expect_failure 'Read-only file system' touch "$view/new"
remount rw,noexec
if has ro || ! has noexec; then
    fail "remount,rw,noexec: the kernel has $(flags)"
fi
echo written >"$view/new"
[ "$(cat "$disk/new")" = written ] || fail 'remount,rw: not written'
expect_failure 'Permission denied' "$view/program"
remount exec
[ "$("$view/program")" = ran ] || fail 'remount,exec: not executed'
exec 9>"$view/busy"
expect_failure 'open for writing' remount ro
exec 9>&-
# shellcheck disable=SC2016 # the inner shell expands it
expect_failure 'arc_max=1G is not changed' sh -c '"$0" mount -o remount,ro,arc_max=1G "$1" "$2" 2>&1
    exit 1' "$OGIVE" "$disk" "$view"
has ro || fail 'an option that cannot change blocks the others'
expect_failure '"sync"' remount sync
unmount_view "$view"
mount_view "$disk" "$view" --read-only
expect_failure 'mounted read-only' remount rw
has ro || fail 'a refused remount changed the mount'
unmount_view "$view"
expect_failure 'ogive has mounted nothing there' remount ro
say 'remounting changes flags of the kernel, and refuses other options'

# Through mount(8), which needs a link to ogive in /usr/sbin. An overlay there hides it from others.
if unshare --mount true 2>/dev/null && [ ! -e /sbin/mount.ogive ]; then
    mkdir "$WORK/sbin"
    # shellcheck disable=SC2016 # the inner shell expands it
    unshare --mount --propagation private bash -euc '
        mkdir "$1/upper" "$1/work"
        mount -t overlay overlay -o "lowerdir=/usr/sbin,upperdir=$1/upper,workdir=$1/work" /usr/sbin
        ln -s "$(realpath "$2")" /usr/sbin/mount.ogive
        ln -s mount.ogive /usr/sbin/mount.fuse.ogive
        mount -t ogive -o noatime "$1/disk" "$1/view"
        mount -o remount,ro "$1/view"
        ! touch "$1/view/new" 2>/dev/null
        grep -q " $1/view .*ro," /proc/self/mountinfo
        mount -o remount,rw "$1/view"
        touch "$1/view/made"
        umount "$1/view"' - "$WORK" "$OGIVE" || fail 'mount(8) does not remount'
    [ -e "$disk/made" ] || fail 'a file created after remounting is not in the source'
    say 'through mount(8) as well'
else
    say 'mount.ogive is installed, or there are no mount namespaces: mount(8) was not tested'
fi
passed
