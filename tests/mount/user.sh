#!/usr/bin/env bash
# The mount of an ordinary user, with the real fusermount3. It must refuse set-user-ID programs,
# devices, other users, and options for root. With the 1,024 descriptors of a login it must serve a
# tree of more files. It must end and mount again after a kill.
#
# Environment:
#   OGIVE_ALL  1: a million files instead of 3,000
# shellcheck source=tests/mount/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite user 'the mount of an ordinary user by fusermount3, with nosuid, nodev and few descriptors'
needs_ogive
need setpriv fusermount3 perl unshare
[ -u "$(command -v fusermount3)" ] || skip 'fusermount3 is not set-user-ID root here'
id nobody daemon >/dev/null 2>&1 || skip 'no users nobody and daemon'

# Some servers and containers let only root open /dev/fuse. There the suite runs again in a mount
# namespace with a /dev/fuse for all users, as udev makes it.
if ! setpriv --reuid nobody --clear-groups --regid "$(id -g nobody)" \
    sh -c 'exec 3<>/dev/fuse' 2>/dev/null; then
    [ -z "${OGIVE_USER_SUITE:-}" ] || skip '/dev/fuse cannot be opened by a user'
    mknod -m 666 "$WORK/fuse" c 10 229
    code=0
    # shellcheck disable=SC2016 # the inner shell expands it
    OGIVE_USER_SUITE=1 unshare --mount --propagation private sh -c \
        'mount --bind "$1" /dev/fuse && exec bash "$2"' sh "$WORK/fuse" "$HERE/user.sh" || code=$?
    exit "$code"
fi

readonly DIRECTORIES=20
files=150
[ "${OGIVE_ALL:-}" != 1 ] || files=50000
readonly DESCRIPTORS=1024

# as USER COMMAND...: runs a command as a user, with the limits of a login. The capability bounding
# set stays full, because fusermount3 becomes root.
as() {
    local user="$1"
    shift
    (
        ulimit -n "$DESCRIPTORS"
        exec setpriv --reuid "$user" --regid "$(id -g "$user")" --clear-groups -- "$@"
    )
}

as_user() {
    as nobody "$@"
}

# A copy, because the program may be in a directory that only root can enter.
if [ "$OGIVE" != "$WORK/ogive" ]; then
    need "$OGIVE"
    cp "$(command -v "$OGIVE")" "$WORK/ogive"
    chmod 755 "$WORK/ogive"
    OGIVE="$WORK/ogive"
fi
source="$WORK/source" mount="$WORK/mount"
mkdir "$source" "$mount"
chown nobody: "$source" "$mount"
# Root's files in the user's directory, which must give the user no rights.
cp "$(command -v id)" "$source/id"
chmod 4755 "$source/id"
mknod -m 666 "$source/null" c 1 3
echo secret >"$source/secret"
chmod 600 "$source/secret"
cd "$WORK"

remember_mount "$mount"
as_user "$OGIVE" mount "$source" "$mount" || fail 'the user cannot mount'
is_mounted "$mount" || fail 'the mount command returned, but nothing is mounted'
options="$(awk -v at="$mount" '$2 == at { print $4 }' /proc/self/mounts)"
for option in nosuid nodev "user_id=$(id -u nobody)"; do
    [[ ",$options," == *",$option,"* ]] || fail "mounted without $option: $options"
done
daemon="$(daemon_of "$mount")"
[ -n "$daemon" ] || fail 'no daemon serves the mount'
grep -q "^Uid:.$(id -u nobody)" "/proc/$daemon/status" || fail "the daemon is not the user's"
[ "$(as_user "$mount/id" -u)" = "$(id -u nobody)" ] || fail 'a set-user-ID program became root'
expect_failure 'Permission denied' as_user sh -c "echo >'$mount/null'"
expect_failure 'Permission denied' as_user cat "$mount/secret"
expect_failure 'Permission denied' as daemon ls "$mount"
expect_failure 'Permission denied' ls "$mount"
expect_failure 'Operation not permitted' as_user mknod "$mount/device" c 1 3
expect_failure 'Operation not permitted' as_user chown root "$mount/id"
say 'operations of root are refused'

# shellcheck disable=SC2016 # the variables are Perl's
as_user perl -e '
    my ($root, $directories, $files) = @ARGV;
    for my $d (0 .. $directories - 1) {
        mkdir "$root/$d" or die "$root/$d: $!\n";
        for my $f (0 .. $files - 1) {
            open my $file, ">", "$root/$d/$f" or die "$root/$d/$f: $!\n";
            print $file "$d/$f" or die "$root/$d/$f: $!\n";
            close $file or die "$root/$d/$f: $!\n";
        }
    }' "$mount" "$DIRECTORIES" "$files" || fail 'files cannot be made'
count="$((DIRECTORIES * files))"
# cat_all DIRECTORY: checks the content of all files.
cat_all() {
    # shellcheck disable=SC2016 # the variables are Perl's
    as_user perl -e '
        my ($root, $directories, $files) = @ARGV;
        my @held;
        for my $d (0 .. $directories - 1) {
            for my $f (0 .. $files - 1) {
                open my $file, "<", "$root/$d/$f" or die "$root/$d/$f: $!\n";
                my $text = <$file>;
                $text eq "$d/$f" or die "$root/$d/$f holds $text\n";
                # Some stay open, nearly as many as the limit of the program allows.
                push @held, $file if @held < 900;
            }
        }
        stat $_ or die "an open file: $!\n" for @held;
        print scalar @held, "\n";' "$1" "$DIRECTORIES" "$files"
}
[ "$(cat_all "$mount")" = 900 ] || fail 'files do not have the written content'
[ "$(as_user find "$mount" -type f -name '[0-9]*' -user nobody -size -2 | wc -l)" = "$count" ] ||
    fail 'find does not list all files'
open="$(find "/proc/$daemon/fd" -mindepth 1 | wc -l)"
[ "$open" -le "$DESCRIPTORS" ] || fail "$open descriptors are open"
as_user mv "$mount/3" "$mount/three"
as_user rm -r "$mount/4"
[ "$(find "$source" -type f -name '[0-9]*' -user nobody | wc -l)" = "$((count - files))" ] ||
    fail 'the source has other files'
[ "$(cat "$source/three/7")" = 3/7 ] || fail 'a renamed directory of the source'
say "$count files, 900 of them open, with $DESCRIPTORS descriptors"

expect_failure '' as daemon fusermount3 -u "$mount"
is_mounted "$mount" || fail 'another user unmounted it'
kill -9 "$daemon"
wait_gone "$daemon" || fail 'the daemon does not end'
as_user "$OGIVE" mount "$source" "$mount" || fail 'the user cannot mount again over a dead mount'
[ "$(as_user cat "$mount/three/9")" = 3/9 ] || fail 'a file after the daemon was killed'
as_user "$OGIVE" unmount "$mount" || fail 'the user cannot unmount'
! is_mounted "$mount" || fail 'still mounted'
if ! grep -q '^ *user_allow_other' /etc/fuse.conf 2>/dev/null; then
    ! as_user "$OGIVE" mount --allow-other "$source" "$mount" 2>"$WORK/message" ||
        fail '--allow-other works, though fuse.conf does not allow it'
    [ -s "$WORK/message" ] || fail 'refused without a message'
    ! is_mounted "$mount" || fail 'refused, but mounted'
fi
expect_failure 'root' as_user "$OGIVE" mount --suid "$source" "$mount"
say 'only its user can unmount it, and can mount it again'
passed
