#!/usr/bin/env bash
# Flags of files (chattr, lsattr, project IDs) through the mount, on file systems that have them.
# The mount shows the flags of the source, and gives no user more rights than the source does.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite flags 'flags of files on ext4, xfs and btrfs'
needs_ogive
need chattr lsattr setpriv

readonly USER_ID=65534

# as_user COMMAND...: runs a command as an ordinary user.
as_user() {
    setpriv --reuid "$USER_ID" --regid "$USER_ID" --clear-groups "$@"
}

# agree FILE...: lsattr must show the same in the mount and in the source.
agree() {
    local file above below
    for file in "$@"; do
        above="$(lsattr -d "$WORK/mount/$file" | cut -d' ' -f1)" || fail "no flags of $file"
        below="$(lsattr -d "$WORK/source/$file" | cut -d' ' -f1)"
        [ "$above" = "$below" ] || fail "$file: the mount shows $above, the source $below"
    done
}

flags() {
    local file="$WORK/mount/file" own="$WORK/mount/own"
    echo bytes >"$WORK/source/file"
    echo bytes >"$WORK/source/own"
    chown "$USER_ID:$USER_ID" "$WORK/source/own"
    mkdir "$WORK/source/directory"
    ln -s file "$WORK/source/link"
    mount_view "$WORK/source" "$WORK/mount" --allow-other
    agree file own directory
    chattr +d "$file" || fail 'root cannot set a flag'
    chattr +d "$WORK/mount/directory" || fail 'root cannot set a flag of a directory'
    lsattr "$WORK/source/file" | cut -d' ' -f1 | grep -q d ||
        fail 'the source does not have the flag'
    agree file directory
    as_user chattr +d "$own" || fail 'an owner cannot set a flag'
    agree own
    expect_failure '' as_user chattr -d "$file"
    agree file
    # Flags that need a capability need it in the mount as well.
    expect_failure '' as_user chattr +i "$own"
    expect_failure '' as_user chattr +a "$own"
    [ "$filesystem" != ext4 ] || expect_failure '' as_user chattr +j "$own"
    agree own
    chattr +i "$file"
    agree file
    # shellcheck disable=SC2016 # the inner shell expands it
    expect_failure 'Operation not permitted' bash -c 'echo more >>"$1"' bash "$file"
    expect_failure 'Operation not permitted' rm -f "$file"
    [ "$(cat "$file")" = bytes ] || fail 'an immutable file cannot be read'
    chattr -i "$file"
    chattr +a "$file"
    echo more >>"$file" || fail 'nothing can be appended'
    # shellcheck disable=SC2016 # the inner shell expands it
    expect_failure 'Operation not permitted' bash -c 'echo less >"$1"' bash "$file"
    chattr -a "$file"
    [ "$(cat "$WORK/source/file")" = $'bytes\nmore' ] ||
        fail 'the appended bytes are not in the source'
    expect_failure '' lsattr -d "$WORK/mount/link"
    expect_failure '' lsattr -d "$WORK/mount/.ogive/arcstats"
    unmount_view "$WORK/mount"
    mount_view "$WORK/source" "$WORK/mount" --read-only
    agree file
    expect_failure 'Read-only file system' chattr +d "$file"
    unmount_view "$WORK/mount"
}

# Project IDs use the other ioctl of flags, FS_IOC_FSSETXATTR.
projects() {
    mount_view "$WORK/source" "$WORK/mount"
    chattr -p 4711 "$WORK/mount/file" || fail 'a project ID cannot be set'
    [ "$(lsattr -p "$WORK/source/file" | awk '{ print $1 }')" = 4711 ] ||
        fail 'the source does not have the project ID'
    [ "$(lsattr -p "$WORK/mount/file" | awk '{ print $1 }')" = 4711 ] ||
        fail 'the mount does not show the project ID'
    unmount_view "$WORK/mount"
}

# The kernel passes no reflink to FUSE file systems (docs/limits.md).
reflinks() {
    mount_view "$WORK/source" "$WORK/mount"
    expect_failure 'not supported' env LC_ALL=C cp --reflink=always "$WORK/mount/file" \
        "$WORK/mount/clone"
    rm -f "$WORK/mount/clone"
    cp --reflink=auto "$WORK/mount/file" "$WORK/mount/copy" || fail 'nothing can be copied'
    cmp "$WORK/mount/copy" "$WORK/source/file" || fail 'a copy differs'
    unmount_view "$WORK/mount"
}

tested=0
for filesystem in ext4 xfs btrfs; do
    if ! command -v "mkfs.$filesystem" >/dev/null; then
        say "skipped: $filesystem: no mkfs.$filesystem on this machine"
        continue
    fi
    truncate -s 512M "$WORK/image"
    case "$filesystem" in
        ext4) mkfs.ext4 -qF "$WORK/image" ;;
        *) "mkfs.$filesystem" -qf "$WORK/image" >"$WORK/output" 2>&1 ;;
    esac
    mkdir -p "$WORK/source"
    if ! mount -o loop "$WORK/image" "$WORK/source" 2>"$WORK/output"; then
        say "skipped: $filesystem: $(cat "$WORK/output")"
        rm "$WORK/image"
        continue
    fi
    remember_mount "$WORK/source"
    chmod 755 "$WORK/source"
    flags
    # The other file systems need a feature for project IDs.
    [ "$filesystem" != xfs ] || projects
    reflinks
    umount "$WORK/source"
    rm "$WORK/image"
    tested=$((tested + 1))
    say "$filesystem: flags are those of the source"
done
[ "$tested" -gt 0 ] || skip 'no file system with flags can be made here'
passed
