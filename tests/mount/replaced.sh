#!/usr/bin/env bash
# An object behind the mount is replaced by one of another type, or by one with the same inode
# number. The view shows the new one at once. Neither a lookup nor a program with the old object
# open gets EIO.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite replaced 'objects that change their type, and reused inode numbers, behind the mount'

need "$OGIVE" perl timeout

disk="$WORK/disk"
source="$disk/source"
view="$WORK/view"
mkdir "$disk" "$view"
# On a separate file system, no other program takes free inode numbers. The source is not its root:
# there ext4 puts each directory into another block group than files.
if truncate -s 64M "$WORK/image" && mkfs.ext4 -q "$WORK/image" 2>/dev/null &&
    mount -o loop "$WORK/image" "$disk" 2>/dev/null; then
    remember_mount "$disk"
fi
mkdir "$source"

# same_number NUMBER NEW: makes a file NEW with a free inode number.
same_number() {
    local number="$1" new="$2" attempt
    for attempt in {1..200}; do
        : >"$new.$attempt"
        if [ "$(stat -c %i "$new.$attempt")" = "$number" ]; then
            mv "$new.$attempt" "$new"
            rm -f "$new".[0-9]*
            return
        fi
    done
    rm -f "$new".[0-9]*
    return 1
}

# The least number of turns of each concurrent reader and of the writer.
readonly TURNS=300

# has_turns FILE: whether a process that writes a byte a turn into FILE has done its turns.
has_turns() {
    [ "$(stat -c %s "$1")" -ge "$TURNS" ]
}

# read_changing NAME: reads the object `changing` in every way, until $WORK/enough exists. Writes a
# byte a turn into $WORK/NAME.turns. Prints errors, except true ones: the object is gone, it is a
# directory or none, it is no link.
read_changing() {
    # shellcheck disable=SC2016 # variables of Perl
    timeout 300 perl -e '
        use Errno qw(ENOENT ENOTDIR EISDIR EINVAL ESTALE);
        my ($view, $turns, $enough, %wrong) = @ARGV;
        open my $done, ">", $turns or die "$turns: $!\n";
        sub failed { my $way = shift; my $error = $! + 0;
            return if grep { $_ == $error } @_;
            $wrong{"$way: $!"}++ }
        until (-e $enough) {
            my $name = "$view/changing";
            my @gone = (ENOENT, ENOTDIR, EISDIR, EINVAL);
            lstat $name or failed("lstat", @gone);
            if (open my $file, "<", $name) {
                defined read($file, my $bytes, 10) or failed("read", @gone);
                stat $file or failed("fstat", @gone);
            } else { failed("open", @gone) }
            if (opendir my $directory, $name) { my @names = readdir $directory }
            else { failed("opendir", @gone) }
            lstat "$name/inner" or failed("inner", @gone);
            defined readlink $name or failed("readlink", @gone);
            syswrite $done, ".";
        }
        print "$_ ($wrong{$_} times)\n" for sort keys %wrong;
    ' "$view" "$WORK/$1.turns" "$WORK/enough"
}

for options in '' --direct-io '--metadata-ttl 0'; do
    # shellcheck disable=SC2086 # no option, or one with its value
    mount_view "$source" "$view" $options

    # A file is opened by its second name, on a path through its first name, now a directory.
    mkdir "$source/directory"
    echo linked >"$source/first"
    ln "$source/first" "$source/directory/second"
    cat "$view/directory/second" >/dev/null
    stat "$view/first" >/dev/null
    mv "$view/first" "$view/away"
    mv "$view/directory" "$view/first"
    [ "$(cat "$view/first/second")" = linked ] || fail "$options: a file by its second name"
    rm -r "$view/first" "$view/away"

    # A program's working directory is removed behind the mount, and a file gets its inode number.
    mkdir "$source/left"
    number="$(stat -c %i "$source/left")"
    mkfifo "$WORK/go"
    # shellcheck disable=SC2016 # variables of Perl
    timeout 300 perl -e '
        my ($view, $go) = @ARGV;
        chdir "$view/left" or die "chdir: $!";
        open my $wait, "<", $go or die "$go: $!";
        <$wait>;
        print stat(".") ? "still there" : "$!", "\n";
        print stat("$view/taken") && -f _ ? "a file" : "no file: $!", "\n";
    ' "$view" "$WORK/go" >"$WORK/left" &
    within=$!
    # Opened for writing once the directory has been entered.
    exec 8>"$WORK/go"
    rmdir "$source/left"
    # The daemon may keep an open descriptor of the directory for a second.
    within_seconds 30 same_number "$number" "$source/taken" ||
        skip 'the file system does not reuse inode numbers'
    [ "$(stat -c %F "$view/taken")" = 'regular empty file' ] || fail "$options: not a file"
    [ "$(stat -c %i "$view/taken")" = "$number" ] || fail "$options: another inode number"
    # The kernel caches the directory's attributes for a second.
    sleep 1.2
    echo go >&8
    exec 8>&-
    end_of 60 'the end of the program in the directory' "$within" ||
        fail "$options: the program in the directory"
    grep -qx 'Stale file handle' "$WORK/left" ||
        fail "$options: in a directory: $(cat "$WORK/left")"
    grep -qx 'a file' "$WORK/left" || fail "$options: $(cat "$WORK/left")"
    rm "$WORK/go" "$source/taken"

    # Concurrent readers, and a writer without pauses.
    : >"$WORK/writer.turns"
    (
        until [ -e "$WORK/enough" ]; do
            rm -rf "$source/changing"
            mkdir "$source/changing" && : >"$source/changing/inner"
            rm -rf "$source/changing"
            echo file >"$source/changing"
            rm -f "$source/changing"
            ln -s elsewhere "$source/changing"
            printf . >>"$WORK/writer.turns"
        done
    ) &
    writer=$!
    readers=()
    for name in first second; do
        : >"$WORK/$name.turns"
        read_changing "$name" >"$WORK/$name" &
        readers+=($!)
    done
    for name in writer first second; do
        eventually 240 "$TURNS turns of the $name" has_turns "$WORK/$name.turns"
    done
    touch "$WORK/enough"
    for pid in "$writer" "${readers[@]}"; do
        end_of 60 'the end of readers and writer' "$pid" || fail 'a reader or the writer failed'
    done
    wrong="$(cat "$WORK/first" "$WORK/second")"
    rm -rf "$WORK/enough" "$source/changing"
    [ -z "$wrong" ] || fail "${options:-default}: $wrong"
    say "${options:-default}: no false error"
    unmount_view "$view"
done

passed
