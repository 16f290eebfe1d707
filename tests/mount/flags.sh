#!/usr/bin/env bash
# Flags of files (chattr, lsattr, project numbers) through the mount, on file systems that have
# them. The mount shows the flags of the source, and gives no user more rights over them.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite flags 'flags of files on ext4, xfs and btrfs'
needs_ogive
need chattr lsattr setpriv

readonly SOMEBODY=65534

# somebody COMMAND...: as an ordinary user.
somebody() {
    setpriv --reuid "$SOMEBODY" --regid "$SOMEBODY" --clear-groups "$@"
}

# agree FILE...: that lsattr says the same above and below.
agree() {
    local file above below
    for file in "$@"; do
        above="$(lsattr -d "$WORK/mount/$file" | cut -d' ' -f1)" || fail "no flags of $file"
        below="$(lsattr -d "$WORK/source/$file" | cut -d' ' -f1)"
        [ "$above" = "$below" ] || fail "$file: $above is shown for $below"
    done
}

flags() {
    local file="$WORK/mount/file" own="$WORK/mount/own"
    echo bytes >"$WORK/source/file"
    echo bytes >"$WORK/source/own"
    chown "$SOMEBODY:$SOMEBODY" "$WORK/source/own"
    mkdir "$WORK/source/directory"
    ln -s file "$WORK/source/link"
    mount_view "$WORK/source" "$WORK/mount" --allow-other
    agree file own directory
    chattr +d "$file" || fail 'root cannot set a flag'
    chattr +d "$WORK/mount/directory" || fail 'root cannot set a flag of a directory'
    lsattr "$WORK/source/file" | cut -d' ' -f1 | grep -q d ||
        fail 'a flag that was set is not there'
    agree file directory
    somebody chattr +d "$own" || fail 'an owner cannot set a flag'
    agree own
    expect_failure '' somebody chattr -d "$file"
    agree file
    # What takes a privilege takes it here, too.
    expect_failure '' somebody chattr +i "$own"
    expect_failure '' somebody chattr +a "$own"
    [ "$filesystem" != ext4 ] || expect_failure '' somebody chattr +j "$own"
    agree own
    chattr +i "$file"
    agree file
    # shellcheck disable=SC2016 # the shell that writes is to expand it
    expect_failure 'Operation not permitted' bash -c 'echo more >>"$1"' bash "$file"
    expect_failure 'Operation not permitted' rm -f "$file"
    [ "$(cat "$file")" = bytes ] || fail 'a file that cannot be changed cannot be read'
    chattr -i "$file"
    chattr +a "$file"
    echo more >>"$file" || fail 'nothing can be appended'
    # shellcheck disable=SC2016 # the shell that writes is to expand it
    expect_failure 'Operation not permitted' bash -c 'echo less >"$1"' bash "$file"
    chattr -a "$file"
    [ "$(cat "$WORK/source/file")" = $'bytes\nmore' ] || fail 'what was appended is not there'
    expect_failure '' lsattr -d "$WORK/mount/link"
    expect_failure '' lsattr -d "$WORK/mount/.ogive/arcstats"
    unmount_view "$WORK/mount"
    mount_view "$WORK/source" "$WORK/mount" --read-only
    agree file
    expect_failure 'Read-only file system' chattr +d "$file"
    unmount_view "$WORK/mount"
}

# Numbers of projects are in the other form of flags.
projects() {
    mount_view "$WORK/source" "$WORK/mount"
    chattr -p 4711 "$WORK/mount/file" || fail 'a number of a project cannot be set'
    [ "$(lsattr -p "$WORK/source/file" | awk '{ print $1 }')" = 4711 ] || fail 'it is not there'
    [ "$(lsattr -p "$WORK/mount/file" | awk '{ print $1 }')" = 4711 ] || fail 'it is not shown'
    unmount_view "$WORK/mount"
}

# What the kernel hands on to no FUSE file system (docs/limits.md).
not_handed_on() {
    mount_view "$WORK/source" "$WORK/mount"
    expect_failure 'not supported' env LC_ALL=C cp --reflink=always "$WORK/mount/file" \
        "$WORK/mount/clone"
    rm -f "$WORK/mount/clone"
    cp --reflink=auto "$WORK/mount/file" "$WORK/mount/copy" || fail 'nothing can be copied'
    cmp "$WORK/mount/copy" "$WORK/source/file" || fail 'a copy differs'
    unmount_view "$WORK/mount"
}

tried=0
for filesystem in ext4 xfs btrfs; do
    if ! command -v "mkfs.$filesystem" >/dev/null; then
        say "skipped: $filesystem: no mkfs.$filesystem on this machine"
        continue
    fi
    truncate -s 512M "$WORK/image"
    case "$filesystem" in
        ext4) mkfs.ext4 -qF "$WORK/image" ;;
        *) "mkfs.$filesystem" -qf "$WORK/image" >"$WORK/said" 2>&1 ;;
    esac
    mkdir -p "$WORK/source"
    if ! mount -o loop "$WORK/image" "$WORK/source" 2>"$WORK/said"; then
        say "skipped: $filesystem: $(cat "$WORK/said")"
        rm "$WORK/image"
        continue
    fi
    remember_mount "$WORK/source"
    chmod 755 "$WORK/source"
    flags
    # The others have them by features that not every kernel has.
    [ "$filesystem" != xfs ] || projects
    not_handed_on
    umount "$WORK/source"
    rm "$WORK/image"
    tried=$((tried + 1))
    say "$filesystem: flags are those of the source"
done
[ "$tried" -gt 0 ] || skip 'no file system with flags can be made here'
passed
