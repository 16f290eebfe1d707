#!/usr/bin/env bash
# A tree with more files than the daemon may have open, without the right to open by handle. Many
# programs see all of it at once. Files stay the same when they are renamed, linked, unlinked or
# open.
#
# Environment:
#   OGIVE_ALL  1: a million files and 1,024 descriptors, instead of 100,000 and 256
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite descriptors 'trees of more files than the descriptor limit, without handles'
needs_ogive
need setpriv perl

if [ "${OGIVE_ALL:-}" = 1 ]; then
    readonly DIRECTORIES=1000 FILES=1000 DESCRIPTORS=1024
else
    readonly DIRECTORIES=100 FILES=1000 DESCRIPTORS=256
fi
readonly PROGRAMS=8

# make_tree ROOT: makes DIRECTORIES in ten parents, with FILES each.
make_tree() {
    perl -e '
        my ($root, $directories, $files) = @ARGV;
        for my $d (0 .. $directories - 1) {
            my $top = "$root/" . $d % 10;
            mkdir $top;
            mkdir "$top/$d" or die "$top/$d: $!\n";
            for my $f (0 .. $files - 1) {
                open my $file, ">", "$top/$d/$f" or die "$top/$d/$f: $!\n";
                print $file $f if $f % 100 == 0;
            }
        }' "$1" "$DIRECTORIES" "$FILES"
}

# find_everything MNT EXPECTED: PROGRAMS processes walk the tree at once.
find_everything() {
    local mount="$1" expected="$2" number pids=() pid
    for ((number = 0; number < PROGRAMS; number++)); do
        (cd "$mount" && find . -type f -printf '%s\n' 2>"$WORK/errors.$number" |
            awk '{ bytes += $1 } END { print NR, bytes }' >"$WORK/seen.$number") &
        pids+=("$!")
    done
    for pid in "${pids[@]}"; do end_of 600 'the end of find' "$pid" || true; done
    for ((number = 0; number < PROGRAMS; number++)); do
        [ ! -s "$WORK/errors.$number" ] ||
            fail "find $number: $(wc -l <"$WORK/errors.$number") errors:" \
                "$(head -n 3 "$WORK/errors.$number")"
        [ "$(cat "$WORK/seen.$number")" = "$expected" ] ||
            fail "find $number saw $(cat "$WORK/seen.$number"), not $expected (files, bytes)"
    done
}

# is_in PID DIRECTORY: whether DIRECTORY is a process's working directory.
is_in() {
    [ "$(readlink "/proc/$1/cwd")" = "$2" ]
}

# walk_and_use SOURCE MNT TEXT: walks the tree, and changes it while files are open.
walk_and_use() {
    local source="$1" mount="$2" what="$3" daemon open
    daemon="$(daemon_of "$mount")"
    find_everything "$mount" "$expected"
    open="$(find "/proc/$daemon/fd" -mindepth 1 | wc -l)"
    [ "$open" -le "$DESCRIPTORS" ] || fail "$what: $open descriptors are open"
    find_everything "$mount" "$expected"
    say "$what: $PROGRAMS times $((DIRECTORIES * FILES)) files with $DESCRIPTORS descriptors"

    # Some files stay open while a walk evicts all other inodes.
    exec 7<"$mount/0/0/100" 8<"$mount/1/1/200"
    (cd "$mount/2/2" && exec sleep 1000 >/dev/null 2>&1) &
    inside="$!"
    eventually 60 'a program has entered a directory' is_in "$inside" "$mount/2/2"
    rm "$mount/0/0/100"
    mv "$mount/1/1/200" "$mount/1/1/renamed"
    mv "$mount/1" "$mount/one"
    mv "$mount/2/2" "$mount/two"
    mv "$source/3/3" "$source/3/three"
    find "$mount/4" "$mount/5" >/dev/null || fail "$what: find"
    [ "$(cat <&7)" = 100 ] || fail "$what: an open file that was unlinked"
    stat -c '%s' - <&7 >"$WORK/size" || fail "$what: attributes of an open file that was unlinked"
    [ "$(cat "$WORK/size")" = 3 ] || fail "$what: the size of an open file that was unlinked"
    [ "$(cat <&8)" = 200 ] || fail "$what: an open file that was renamed"
    [ "$(cat "$mount/one/1/renamed")" = 200 ] || fail "$what: a renamed file in a renamed directory"
    [ "$(cat "/proc/$inside/cwd/300")" = 300 ] ||
        fail "$what: a renamed working directory"
    kill "$inside"
    wait "$inside" 2>/dev/null || true
    inside=''
    exec 7<&- 8<&-
    sleep 1.1 # longer than --metadata-ttl
    [ "$(cat "$mount/3/three/400")" = 400 ] || fail "$what: a directory renamed in the source"
    mv "$source/3/three" "$source/3/3"
    mv "$mount/two" "$mount/2/2"
    mv "$mount/one" "$mount/1"
    mv "$mount/1/1/renamed" "$mount/1/1/200"
    printf 100 >"$mount/0/0/100"
    sleep 1.1
    find_everything "$mount" "$expected"
    say "$what: renamed, moved, unlinked and open"
}

# open_many MNT TEXT: programs have three quarters as many files open as the daemon may.
open_many() {
    local mount="$1" what="$2"
    perl -e '
        my ($mount, $count) = @ARGV;
        my @open;
        for my $n (0 .. $count - 1) {
            open my $file, "<", sprintf("%s/6/6/%d", $mount, $n) or die "file $n: $!\n";
            push @open, $file;
        }
        for my $d (7, 8, 9) {
            opendir my $directory, "$mount/$d/$d" or die "directory $d: $!\n";
            my @names = grep { !/^\.\.?$/ } readdir $directory;
            lstat "$mount/$d/$d/$_" or die "$_: $!\n" for @names;
        }
        for my $n (0 .. $count - 1) { stat $open[$n] or die "open file $n: $!\n" }
        ' "$mount" "$((DESCRIPTORS * 3 / 4))" || fail "$what: programs with many open files"
    say "$what: with $((DESCRIPTORS * 3 / 4)) open files"
}

# kill_inside: ends the program whose working directory would keep the mount busy.
inside=''
kill_inside() {
    local code=$?
    [ -z "$inside" ] || kill "$inside" 2>/dev/null
    (exit "$code")
    cleanup
}
trap kill_inside EXIT

source="$WORK/source"
mkdir "$source"
make_tree "$source"
expected="$(find "$source" -type f -printf '%s\n' | awk '{ bytes += $1 } END { print NR, bytes }')"

mount_without_handles "$DESCRIPTORS" "$source" "$WORK/few" --metadata-ttl 500ms
walk_and_use "$source" "$WORK/few" 'without the right to open by handle'
open_many "$WORK/few" 'without the right to open by handle'
unmount_view "$WORK/few"

# An overlay has no handles, and copies changed files up.
mkdir "$WORK/upper" "$WORK/scratch" "$WORK/overlay"
if mount -t overlay \
    -o "lowerdir=$source,upperdir=$WORK/upper,workdir=$WORK/scratch,redirect_dir=on" \
    overlay "$WORK/overlay" 2>"$WORK/message"; then
    remember_mount "$WORK/overlay"
    mount_without_handles "$DESCRIPTORS" "$WORK/overlay" "$WORK/on-overlay" --metadata-ttl 500ms
    walk_and_use "$WORK/overlay" "$WORK/on-overlay" 'on an overlay'
    open_many "$WORK/on-overlay" 'on an overlay'
    # A file that is copied up while it is open stays the same file.
    exec 7<"$WORK/on-overlay/0/0/500"
    printf 'more' >>"$WORK/on-overlay/0/0/500"
    sleep 1.1
    [ "$(cat "$WORK/on-overlay/0/0/500")" = 500more ] || fail 'the content of a copied-up file'
    [ "$(cat <&7)" = 500more ] || fail 'the content of a file that was copied up while open'
    exec 7<&-
    unmount_view "$WORK/on-overlay"
    umount "$WORK/overlay"
else
    say "no overlay here: $(cat "$WORK/message")"
fi
passed
