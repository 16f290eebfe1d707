#!/usr/bin/env bash
# The kernel enforces permissions for other users, and they have no access without --allow-other.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite permissions 'modes, groups and access lists for another user, with and without allow-other'
need runuser setfacl

# as USER COMMAND...: runs a command as another user.
as() {
    local user="$1"
    shift
    runuser -u "$user" -- "$@"
}

source="$WORK/source"
mkdir -p "$source/closed" "$source/open" "$source/sticky"
echo secret >"$source/private"
echo public >"$source/public"
echo inner >"$source/closed/inner"
echo group >"$source/grouped"
echo listed >"$source/listed"
echo own >"$source/open/own"
chmod 755 "$source"
chmod 600 "$source/private" "$source/listed"
chmod 644 "$source/public"
chmod 700 "$source/closed"
chmod 777 "$source/open"
chmod 1777 "$source/sticky"
chgrp nogroup "$source/grouped"
chmod 640 "$source/grouped"
setfacl -m u:nobody:r "$source/listed"
echo mine >"$source/sticky/of root"
cp /bin/true "$source/program"
chmod 744 "$source/program"

mount_view "$source" "$WORK/shared" --allow-other
cd "$WORK/shared"
expect_failure 'Permission denied' as nobody cat private
[ "$(as nobody cat public)" = public ] || fail 'a public file is not readable'
expect_failure 'Permission denied' as nobody sh -c 'echo x >public'
expect_failure 'Permission denied' as nobody cat closed/inner
expect_failure 'Permission denied' as nobody ls closed
expect_failure 'Permission denied' as nobody touch new
[ "$(as nobody cat grouped)" = group ] || fail "the group's file is not readable to the group"
expect_failure 'Permission denied' as daemon cat grouped
expect_failure 'Operation not permitted' as nobody rm -f 'sticky/of root'
expect_failure 'Operation not permitted' as nobody chmod 777 public
expect_failure 'Operation not permitted' as nobody chown nobody public
expect_failure 'Permission denied' as nobody ./program
say 'forbidden operations are refused'
as nobody sh -c 'echo made >open/made'
[ "$(stat -c %U:%G "$source/open/made")" = nobody:nogroup ] ||
    fail "a new file belongs to $(stat -c %U:%G "$source/open/made"), not to its creator"
as nobody mkdir open/directory
[ "$(stat -c %U "$source/open/directory")" = nobody ] || fail 'a new directory has another owner'
as nobody ln -s made open/link
[ "$(stat -c %U "$source/open/link")" = nobody ] || fail 'a new link has another owner'
as nobody mkfifo open/pipe
[ "$(stat -c %U "$source/open/pipe")" = nobody ] || fail 'a new pipe has another owner'
chmod g+s open && chgrp daemon open
as nobody sh -c 'umask 027; echo x >open/inherited'
[ "$(stat -c %G:%a "$source/open/inherited")" = daemon:640 ] ||
    fail "set-group-ID or umask: $(stat -c %G:%a "$source/open/inherited")"
as nobody rm open/own
[ ! -e "$source/open/own" ] || fail 'a file in an open directory was not removed'
# A write clears set-user-ID, unless root writes.
cp /bin/true open/suid && chmod 4777 open/suid
as nobody sh -c 'echo x >>open/suid'
[ "$(stat -c %a "$source/open/suid")" = 777 ] ||
    fail "set-user-ID survived a write: $(stat -c %a "$source/open/suid")"
say 'new files belong to the calling user'
if [ "$(as nobody cat listed 2>/dev/null)" = listed ]; then
    say 'access lists are honoured'
else
    # Without POSIX_ACL the kernel checks only mode bits, which refuse here.
    say 'access lists are stored but not enforced by this mount'
fi
cd /
unmount_view "$WORK/shared"

if [ -z "${OGIVE_MOUNT_COMMAND:-}" ]; then
    mount_view "$source" "$WORK/private"
    [ "$(cat "$WORK/private/public")" = public ] || fail 'the user who mounted cannot read'
    expect_failure 'Permission denied' as nobody cat "$WORK/private/public"
    unmount_view "$WORK/private"
    say 'without --allow-other, other users have no access'
fi
passed
