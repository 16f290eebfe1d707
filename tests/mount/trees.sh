#!/usr/bin/env bash
# Whole trees with common programs: rsync, tar, cp, find, du and ls. One directory is large.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite trees 'rsync, tar, cp, find, du and ls see the same in the mount as in the source'
need rsync tar setfattr getfattr setfacl

# make_tree ROOT: makes sparse files, links, special files, attributes, odd names and odd times.
make_tree() {
    local root="$1" number
    mkdir -p "$root/plain" "$root/deep/a/b/c/d/e/f/g" "$root/crowd"
    for number in $(seq 40); do
        head -c $((number * 3777)) /dev/urandom >"$root/plain/file $number"
    done
    for number in $(seq 1200); do
        : >"$root/crowd/a name that is long enough to fill pages of a listing $number"
    done
    truncate -s 3G "$root/sparse"
    echo middle | dd of="$root/sparse" bs=1M seek=1500 conv=notrunc status=none
    ln "$root/plain/file 1" "$root/deep/hard link"
    ln -s '../plain/file 2' "$root/deep/symbolic link"
    ln -s nowhere "$root/deep/dangling"
    mkfifo "$root/pipe"
    mknod "$root/null" c 1 3
    printf 'odd' >"$root/$(printf 'new\nline')"
    printf 'odd' >"$root/-dash"
    setfattr -n user.colour -v green "$root/plain/file 3"
    setfacl -m u:nobody:r "$root/plain/file 4"
    chmod 4711 "$root/plain/file 5"
    chown nobody:nogroup "$root/plain/file 6"
    touch -d '1999-12-31 23:59:59.123456789' "$root/plain/file 7" "$root/deep/a"
}

# listing ROOT: all attributes that find can print, with times to the nanosecond.
listing() {
    (cd "$1" && find . -mindepth 1 -printf '%P|%y|%m|%u|%g|%n|%T@|%l|' \
        \( -type d -printf '\n' -o -printf '%s\n' \) | LC_ALL=C sort)
}

same_listing() {
    listing "$1" >"$WORK/one"
    listing "$2" >"$WORK/two"
    diff "$WORK/one" "$WORK/two" >"$WORK/difference" || {
        head -n 20 "$WORK/difference"
        fail "$3: listings differ"
    }
}

# same_tree A B TEXT: rsync must find no difference in contents or attributes.
same_tree() {
    local todo
    todo="$(rsync -aHAXnic --delete "$1/" "$2/")"
    [ -z "$todo" ] || fail "$3: rsync would change: $(head -n 10 <<<"$todo")"
}

make_tree "$WORK/origin"
for mode in default direct; do
    options=(--allow-other)
    [ "$mode" = default ] || options+=(--direct-io)
    source="$WORK/$mode-source"
    mount="$WORK/$mode"
    # Written in the source, read through the mount.
    mkdir -p "$source"
    rsync -aHAXS "$WORK/origin/" "$source/seen/"
    mount_view "$source" "$mount" "${options[@]}"
    same_listing "$source/seen" "$mount/seen" "$mode seen"
    same_tree "$source/seen" "$mount/seen" "$mode seen"
    (cd "$source/seen" && du -a --apparent-size | LC_ALL=C sort) >"$WORK/one"
    (cd "$mount/seen" && du -a --apparent-size | LC_ALL=C sort) >"$WORK/two"
    cmp "$WORK/one" "$WORK/two" || fail "$mode: du --apparent-size differs"
    # Numbers of blocks may change until the file system has written the files out.
    sync -f "$source"
    (cd "$source/seen" && du -a | LC_ALL=C sort) >"$WORK/one"
    (cd "$mount/seen" && du -a | LC_ALL=C sort) >"$WORK/two"
    cmp "$WORK/one" "$WORK/two" || fail "$mode: du differs"
    # shellcheck disable=SC2012 # the output of ls is under test
    (cd "$source/seen" && LC_ALL=C ls -lRU --time-style=full-iso | LC_ALL=C sort) >"$WORK/one"
    # shellcheck disable=SC2012
    (cd "$mount/seen" && LC_ALL=C ls -lRU --time-style=full-iso | LC_ALL=C sort) >"$WORK/two"
    cmp "$WORK/one" "$WORK/two" || fail "$mode: ls -lR differs"
    # Written through the mount, read in the source.
    rsync -aHAXS "$WORK/origin/" "$mount/by-rsync/"
    same_tree "$WORK/origin" "$source/by-rsync" "$mode by rsync"
    mkdir "$mount/by-tar"
    tar -C "$WORK/origin" --format=posix --sparse --acls --xattrs -cf - . |
        tar -C "$mount/by-tar" --acls --xattrs -xpf -
    same_tree "$WORK/origin" "$source/by-tar" "$mode by tar"
    cp -a --sparse=always "$mount/by-tar" "$mount/by-cp"
    same_tree "$WORK/origin" "$source/by-cp" "$mode by cp"
    # Holes stay holes: the file of 3 GiB has few blocks.
    [ "$(du -k "$source/by-cp/sparse" | cut -f 1)" -lt 10000 ] || fail "$mode: the holes are gone"
    rm -rf "$mount/by-rsync" "$mount/by-tar" "$mount/by-cp"
    [ "$(find "$source" -mindepth 1 -maxdepth 1)" = "$source/seen" ] ||
        fail "$mode: rm -rf left something"
    unmount_view "$mount"
    say "$mode"
done
passed
