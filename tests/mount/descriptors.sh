#!/usr/bin/env bash
# More files than the process may have open, where objects cannot be opened by handle. Many programs
# at once see everything, and files that are renamed, linked, unlinked and open keep their identity.
#
# Environment:
#   OGIVE_ALL  1: a million files and 1,024 descriptors, instead of 100,000 and 256
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite descriptors 'trees of far more files than may be open, without handles'
needs_ogive
need setpriv perl

if [ "${OGIVE_ALL:-}" = 1 ]; then
    readonly DIRECTORIES=1000 FILES=1000 DESCRIPTORS=1024
else
    readonly DIRECTORIES=100 FILES=1000 DESCRIPTORS=256
fi
readonly PROGRAMS=8

# make_tree ROOT: DIRECTORIES in ten, with FILES each.
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

# mount_few SRC MNT [OPTION...]: mounts with few descriptors and without the right to open by
# handle.
mount_few() {
    local source="$1" mount="$2"
    shift 2
    mkdir -p "$mount"
    remember_mount "$mount"
    (
        ulimit -n "$DESCRIPTORS"
        exec setpriv --bounding-set=-dac_read_search --inh-caps=-dac_read_search \
            "$OGIVE" mount "$@" "$source" "$mount"
    )
    is_mounted "$mount" || fail "the mount command returned, but $mount is not mounted"
}

# find_everything MNT EXPECTED: as many programs as PROGRAMS walk the tree at once.
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

# is_in PID DIRECTORY: whether a program has its working directory there.
is_in() {
    [ "$(readlink "/proc/$1/cwd")" = "$2" ]
}

# walk_and_use SOURCE MNT TEXT
walk_and_use() {
    local source="$1" mount="$2" what="$3" daemon open
    daemon="$(daemon_of "$mount")"
    find_everything "$mount" "$expected"
    open="$(find "/proc/$daemon/fd" -mindepth 1 | wc -l)"
    [ "$open" -le "$DESCRIPTORS" ] || fail "$what: $open descriptors are open"
    find_everything "$mount" "$expected"
    say "$what: $PROGRAMS times $((DIRECTORIES * FILES)) files with $DESCRIPTORS descriptors"

    # A program holds files while everything else is evicted.
    exec 7<"$mount/0/0/100" 8<"$mount/1/1/200"
    (cd "$mount/2/2" && exec sleep 1000 >/dev/null 2>&1) &
    inside="$!"
    eventually 60 'a program is in a directory' is_in "$inside" "$mount/2/2"
    rm "$mount/0/0/100"
    mv "$mount/1/1/200" "$mount/1/1/renamed"
    mv "$mount/1" "$mount/one"
    mv "$mount/2/2" "$mount/two"
    mv "$source/3/3" "$source/3/three"
    find "$mount/4" "$mount/5" >/dev/null || fail "$what: find"
    [ "$(cat <&7)" = 100 ] || fail "$what: an open file without a name"
    stat -c '%s' - <&7 >"$WORK/size" || fail "$what: attributes of an open file without a name"
    [ "$(cat "$WORK/size")" = 3 ] || fail "$what: the size of an open file without a name"
    [ "$(cat <&8)" = 200 ] || fail "$what: an open file that was renamed"
    [ "$(cat "$mount/one/1/renamed")" = 200 ] || fail "$what: a renamed file in a renamed directory"
    [ "$(cat "/proc/$inside/cwd/300")" = 300 ] ||
        fail "$what: a program's directory that was renamed"
    kill "$inside"
    wait "$inside" 2>/dev/null || true
    inside=''
    exec 7<&- 8<&-
    sleep 1.1 # until names are asked for again
    [ "$(cat "$mount/3/three/400")" = 400 ] || fail "$what: a directory that was renamed behind"
    mv "$source/3/three" "$source/3/3"
    mv "$mount/two" "$mount/2/2"
    mv "$mount/one" "$mount/1"
    mv "$mount/1/1/renamed" "$mount/1/1/200"
    printf 100 >"$mount/0/0/100"
    sleep 1.1
    find_everything "$mount" "$expected"
    say "$what: renamed, moved, unlinked and open"
}

# open_many MNT TEXT: programs have nearly as many files open as the daemon may.
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
    say "$what: $((DESCRIPTORS * 3 / 4)) files open besides"
}

# let_go: at every end, no program stays inside.
inside=''
let_go() {
    local code=$?
    [ -z "$inside" ] || kill "$inside" 2>/dev/null
    (exit "$code")
    cleanup
}
trap let_go EXIT

source="$WORK/source"
mkdir "$source"
make_tree "$source"
expected="$(find "$source" -type f -printf '%s\n' | awk '{ bytes += $1 } END { print NR, bytes }')"

mount_few "$source" "$WORK/few" --metadata-ttl 500ms
walk_and_use "$source" "$WORK/few" 'without the right to open by handle'
open_many "$WORK/few" 'without the right to open by handle'
unmount_view "$WORK/few"

# The tree below an overlay, which has no handles; changed files are copied up.
mkdir "$WORK/upper" "$WORK/scratch" "$WORK/overlay"
if mount -t overlay \
    -o "lowerdir=$source,upperdir=$WORK/upper,workdir=$WORK/scratch,redirect_dir=on" \
    overlay "$WORK/overlay" 2>"$WORK/message"; then
    remember_mount "$WORK/overlay"
    mount_few "$WORK/overlay" "$WORK/on-overlay" --metadata-ttl 500ms
    walk_and_use "$WORK/overlay" "$WORK/on-overlay" 'on an overlay'
    open_many "$WORK/on-overlay" 'on an overlay'
    # A file that is copied up while it is open stays the same file.
    exec 7<"$WORK/on-overlay/0/0/500"
    printf 'more' >>"$WORK/on-overlay/0/0/500"
    sleep 1.1
    [ "$(cat "$WORK/on-overlay/0/0/500")" = 500more ] || fail 'a file that was copied up'
    [ "$(cat <&7)" = 500more ] || fail 'a file that was copied up while it was open'
    exec 7<&-
    unmount_view "$WORK/on-overlay"
    umount "$WORK/overlay"
else
    say "no overlay here: $(cat "$WORK/message")"
fi
passed
