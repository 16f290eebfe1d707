#!/usr/bin/env bash
# Blocks that a file system reserves for root. An ordinary user who writes through the mount of a
# root daemon gets none of them, as without the mount, by every way of writing.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite reserve 'users get no blocks that are reserved for root'
needs_ogive
need mkfs.ext4 setpriv perl fallocate

# image NAME: mounts a new ext4 with two fifths reserved for root.
image() {
    truncate -s 64M "$WORK/$1.img"
    mkfs.ext4 -q -F -m 40 "$WORK/$1.img"
    mkdir "$WORK/$1"
    remember_mount "$WORK/$1"
    mount -o loop "$WORK/$1.img" "$WORK/$1" || skip 'no loop devices here'
    chmod 777 "$WORK/$1"
}

# fill WAY DIRECTORY: writes as an ordinary user until the disk is full; prints the MiB written.
fill() {
    # shellcheck disable=SC2016 # the program is Perl
    setpriv --reuid 12345 --regid 12345 --clear-groups perl -e '
        use POSIX;
        my ($way, $directory) = @ARGV;
        my ($count, $mib) = (0, "x" x (1 << 20));
        if ($way eq "write" || $way eq "append") {
            open my $file, $way eq "write" ? ">" : ">>", "$directory/fill" or die "$!\n";
            while (defined(my $wrote = syswrite $file, $mib)) {
                $count += $wrote;
                last if $wrote < 1 << 20;
            }
        } elsif ($way eq "allocate") {
            for my $n (0 .. 99) {
                last if system "fallocate -l 1MiB $directory/fill.$n 2>/dev/null";
                $count += 1 << 20;
            }
        }
        print $count >> 20, "\n"' "$1" "$2"
}

image plain
image under
mount_view "$WORK/under" "$WORK/view" --allow-other
for way in write append allocate; do
    bare="$(fill "$way" "$WORK/plain")" through="$(fill "$way" "$WORK/view")"
    rm -f "$WORK/plain/fill"* "$WORK/view/fill"*
    [ "$bare" -gt 10 ] || fail "$way: only $bare MiB without the mount"
    [ "$through" -le $((bare + 1)) ] || fail "$way: $through MiB through the mount, $bare without"
    sync -f "$WORK/plain" "$WORK/under"
    say "$way: $through MiB through the mount, $bare without"
done
# Root gets all blocks. dd ends with an error, and prints how much it has written.
dd if=/dev/zero of="$WORK/view/root" bs=1M 2>"$WORK/dd" || true
root="$(sed -n 's/^\([0-9]*\)+.*out$/\1/p' "$WORK/dd")"
[ "$root" -gt $((bare + 10)) ] || fail "root gets $root MiB, and a user $bare"
say "root: $root MiB"
