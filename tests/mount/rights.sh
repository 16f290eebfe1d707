#!/usr/bin/env bash
# A source that checks permissions itself: each user has the same rights in the view as in the
# source.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite rights 'three users on a source that checks permissions itself'
needs_ogive
need setfacl
source "$HERE/users.bash"

mkdir "$WORK/source"
chmod 755 "$WORK/source"
mount_view "$WORK/source" "$WORK/below" --allow-other
grep -q '"permissions": "kernel"' "$WORK/below/.ogive/mount" ||
    fail 'a local directory must be checked by the kernel'

# same_rights OPTION...: a view of a view, which is a FUSE file system, has the rights of its
# source.
same_rights() {
    mount_view "$WORK/below" "$WORK/view" --allow-other "$@" 2>"$WORK/log"
    grep -q '"permissions": "source"' "$WORK/view/.ogive/mount" ||
        fail 'the source does not check permissions'
    grep -q 'fuse.ogive is asked in the name of each user' "$WORK/log" ||
        fail 'the log does not mention it'
    compare_rights "$WORK/below" "$WORK/below" "$WORK/view"
}

# control_is_guarded: mode bits protect the control directory.
control_is_guarded() {
    local control="$WORK/view/.ogive"
    as bob grep -q '^hits' "$control/arcstats" || fail 'bob cannot read counters'
    as bob ls "$control" >/dev/null || fail 'bob cannot list the control directory'
    expect_failure 'Permission denied' as bob cat "$control/objects"
    expect_failure 'Permission denied' as bob sh -c "echo all >'$control/reclaim'"
    expect_failure 'Permission denied' as bob truncate -s 0 "$control/arc_max"
    expect_failure 'Permission denied' as bob mkdir "$control/new"
    as bob test -r "$control/arc_max" || fail 'bob may not read a control file'
    ! as bob test -w "$control/arc_max" || fail 'bob may write a control file'
    echo all >"$control/reclaim" || fail 'root cannot write a control file'
    cat "$control/objects" >/dev/null || fail 'root cannot read the list of cached files'
    chmod 700 "$WORK/below"
    eventually 60 'the view shows the mode of the root' \
        sh -c "[ \"\$(stat -c %a '$WORK/view')\" = 700 ]"
    expect_failure 'Permission denied' as bob cat "$control/arcstats"
    chmod 755 "$WORK/below"
    say 'mode bits protect the control directory'
}

# default_lists_apply: a directory's default list replaces the umask for new files.
default_lists_apply() {
    local umask where made
    setfacl -d -m u::rwx,u:2003:rw,g::rx,m::rwx,o::--- "$WORK/source"
    for umask in 022 077; do
        for where in below view; do
            made="$WORK/$where/$umask-$where"
            (umask "$umask" && : >"$made-f" && mkdir "$made-d" && mkfifo "$made-p")
            stat -c %a "$WORK/source/$umask-$where"-{f,d,p} >"$WORK/modes-$where"
        done
        diff "$WORK/modes-below" "$WORK/modes-view" || fail "umask $umask applies in the view"
        [ "$(head -n 1 "$WORK/modes-below")" = 660 ] || fail "umask $umask applies in the source"
    done
    rm -r "$WORK/view"/0*
    setfacl -k "$WORK/source"
    say 'a default list replaces the umask'
}

same_rights
control_is_guarded
default_lists_apply
unmount_view "$WORK/view"
mount_view "$WORK/below" "$WORK/view"
default_lists_apply
unmount_view "$WORK/view"
same_rights --direct-io --metadata-ttl 60
unmount_view "$WORK/view"

expect_failure '--passthrough' "$OGIVE" mount --allow-other --passthrough "$WORK/below" "$WORK/view"
mount_view "$WORK/below" "$WORK/view" --allow-other --trust-permissions 2>"$WORK/log"
grep -q '"permissions": "kernel"' "$WORK/view/.ogive/mount" || fail 'permissions are not trusted'
grep -q 'because of --trust-permissions' "$WORK/log" || fail 'the log does not say why'
unmount_view "$WORK/view"
say 'with --trust-permissions, the kernel checks mode bits'

# A source on this machine is checked by mode bits, also a FUSE mount below it; the log warns.
mkdir "$WORK/local" "$WORK/local/far"
mount --bind "$WORK/below" "$WORK/local/far"
remember_mount "$WORK/local/far"
mount_view "$WORK/local" "$WORK/view" --allow-other --log-file "$WORK/log" --log-format json
ls "$WORK/view/far" >"$WORK/listing"
grep -q '"event":"permissions_by_mode".*fuse.ogive at ' "$WORK/log" || fail 'the log does not warn'
unmount_view "$WORK/view"
umount "$WORK/local/far"
unmount_view "$WORK/below"

# A view without --allow-other stays closed to other users in a shared view above it.
echo secret >"$WORK/source/secret"
chmod 644 "$WORK/source/secret"
mount_view "$WORK/source" "$WORK/local/far"
expect_failure 'lets in user 0 alone' "$OGIVE" mount --allow-other "$WORK/local/far" "$WORK/view"
for option in --direct-io --metadata-ttl=0; do
    mount_view "$WORK/local" "$WORK/view" --allow-other "$option"
    expect_failure 'Permission denied' as bob cat "$WORK/view/far/secret"
    [ "$(cat "$WORK/view/far/secret")" = secret ] || fail 'root cannot read its view'
    expect_failure 'Permission denied' as bob cat "$WORK/view/far/secret"
    unmount_view "$WORK/view"
done
unmount_view "$WORK/local/far"
say 'a view of one user stays closed to others'
passed
