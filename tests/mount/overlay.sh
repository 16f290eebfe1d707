#!/usr/bin/env bash
# overlayfs with a layer in the mount: the lower one, as for containers, or the upper one with its
# work directory. This matters because overlayfs opens files of its layers without a lookup.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite overlay 'overlayfs with its lower or its upper layer in the mount'
needs_ogive

source="$WORK/source"
view="$WORK/view"
merged="$WORK/merged"
mkdir "$source" "$view" "$merged" "$WORK/other"
# An upper layer cannot be on overlayfs, and $WORK may be there.
mount -t tmpfs overlay-test "$WORK/other" || skip 'no tmpfs can be mounted here'
remember_mount "$WORK/other"

# overlay LOWER UPPER: mounts UPPER/data over LOWER, with UPPER/work.
overlay() {
    mkdir -p "$2/data" "$2/work"
    mount -t overlay overlay-test -o "lowerdir=$1,upperdir=$2/data,workdir=$2/work" "$merged" ||
        skip 'overlayfs cannot be mounted here'
    remember_mount "$merged"
}

# has FILE TEXT: the file must hold the text.
has() {
    [ "$(cat "$merged/$1")" = "$2" ] || fail "$options: $1 holds $(cat "$merged/$1"), not $2"
}

# change_all: what a container does to its image, without pauses.
change_all() {
    local round
    for round in 1 2 3; do
        echo more >>"$merged/file-$round" || fail "$options: a file cannot be copied up"
        has "file-$round" "$(printf 'lower\nmore')"
    done
    echo new >"$merged/new" && has new new
    echo again >"$merged/new" && has new again
    mkdir "$merged/made" && echo inside >"$merged/made/inner" && has made/inner inside
    mv "$merged/made" "$merged/moved" && has moved/inner inside
    mv "$merged/file-4" "$merged/moved/file" && has moved/file lower
    rm "$merged/file-5" && rm -r "$merged/directory"
    chmod 600 "$merged/file-6"
    [ "$(stat -c %a "$merged/file-6")" = 600 ] || fail "$options: the mode is not as it was set"
    ln "$merged/file-1" "$merged/hard-linked" && echo linked >>"$merged/hard-linked"
    has file-1 "$(printf 'lower\nmore\nlinked')"
    [ "$(cd "$merged" && find . | sort | tr '\n' ' ')" = '. ./file-1 ./file-2 ./file-3 ./file-6 '`
        `'./hard-linked ./moved ./moved/file ./moved/inner ./new ' ] ||
        fail "$options: $(cd "$merged" && find . | sort | tr '\n' ' ')"
}

# change_linked: changes files with two links, of which the kernel may know either. Each change
# copies the file up, and overlayfs does not look the lower file up again.
change_linked() {
    local fault
    sleep 0.1
    fault="$({
        chmod 600 "$merged/linked/b1"
        mv "$merged/linked/b2" "$merged/linked/c2"
        echo more >>"$merged/linked/b3"
        touch -d 2020-01-01 "$merged/linked/b4"
        truncate -s 0 "$merged/linked/b5"
        rm "$merged/linked/b6"
    } 2>&1)"
    [ -z "$fault" ] || fail "$options: a file with two links: $fault"
    [ "$(cd "$merged/linked" && echo *)" = 'a1 a2 a3 a4 a5 a6 b1 b3 b4 b5 c2' ] ||
        fail "$options: $(cd "$merged/linked" && echo *)"
    rm -r "$merged/linked"
}

# list_while_it_changes: lists a directory right after a name in it was created, renamed or removed.
# overlayfs renames the directory in the upper layer for that.
list_while_it_changes() {
    local round fault
    mkdir -p "$merged/busy/sub"
    for round in 1 2 3; do
        fault="$({
            rm -r "$merged/busy/sub" && ls "$merged/busy"
            mkdir "$merged/busy/sub" && ls "$merged/busy" >/dev/null
            mv "$merged/busy" "$merged/busier" && ls "$merged/busier/sub"
            mv "$merged/busier" "$merged/busy"
        } 2>&1)"
        [ -z "$fault" ] || fail "$options: round $round of listing: $fault"
    done
    rm -r "$merged/busy"
}

# fill DIRECTORY: creates the lower layer.
fill() {
    local number
    mkdir -p "$1/directory" "$1/linked"
    for number in 1 2 3 4 5 6; do
        echo x >"$1/linked/a$number"
        ln "$1/linked/a$number" "$1/linked/b$number"
    done
    for number in 1 2 3 4 5 6; do echo lower >"$1/file-$number"; done
    echo deep >"$1/directory/file"
}

for options in '' --direct-io '--metadata-ttl 0'; do
    # shellcheck disable=SC2086 # no option, or one with its value
    mount_view "$source" "$view" $options
    fill "$view/lower"
    overlay "$view/lower" "$WORK/other/upper"
    change_linked
    change_all
    umount "$merged"
    say "${options:-default}: the lower layer is in the mount"

    fill "$WORK/other/lower"
    overlay "$WORK/other/lower" "$view/upper"
    change_linked
    list_while_it_changes
    change_all
    umount "$merged"
    # The next overlay has the changes.
    overlay "$WORK/other/lower" "$view/upper"
    has new again
    has hard-linked "$(printf 'lower\nmore\nlinked')"
    umount "$merged"
    say "${options:-default}: the upper layer is in the mount"
    unmount_view "$view"
    rm -rf "${source:?}"/* "${WORK:?}/other"/*
done

passed
