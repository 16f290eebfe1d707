#!/usr/bin/env bash
# The rights of other users where the source decides: as on the source itself, for each of them.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite rights 'three users on a source that decides itself what each of them may do'
needs_ogive
need setfacl
source "$HERE/users.bash"

mkdir "$WORK/source"
chmod 755 "$WORK/source"
mount_view "$WORK/source" "$WORK/below" --allow-other
grep -q '"permissions": "kernel"' "$WORK/below/.ogive/mount" || fail 'a directory here is asked'

# asked_as_the_source OPTION...: on a view of a view, whose type is one of FUSE.
asked_as_the_source() {
    mount_view "$WORK/below" "$WORK/view" --allow-other "$@" 2>"$WORK/log"
    grep -q '"permissions": "source"' "$WORK/view/.ogive/mount" || fail 'the source is not asked'
    grep -q 'fuse.ogive is asked in the name of each user' "$WORK/log" || fail 'the log is silent'
    answers_agree "$WORK/below" "$WORK/below" "$WORK/view"
}

# control_is_guarded: the modes of the control directory hold here, too.
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
    cat "$control/objects" >/dev/null || fail 'root cannot read what is cached'
    chmod 700 "$WORK/below"
    eventually 60 'the mode of the root is seen' sh -c "[ \"\$(stat -c %a '$WORK/view')\" = 700 ]"
    expect_failure 'Permission denied' as bob cat "$control/arcstats"
    chmod 755 "$WORK/below"
    say 'the control directory is guarded by its modes'
}

# default_lists_count: default lists replace the umask for all new files.
default_lists_count() {
    local umask where made
    setfacl -d -m u::rwx,u:2003:rw,g::rx,m::rwx,o::--- "$WORK/source"
    for umask in 022 077; do
        for where in below view; do
            made="$WORK/$where/$umask-$where"
            (umask "$umask" && : >"$made-f" && mkdir "$made-d" && mkfifo "$made-p")
            stat -c %a "$WORK/source/$umask-$where"-{f,d,p} >"$WORK/modes-$where"
        done
        diff "$WORK/modes-below" "$WORK/modes-view" || fail "umask $umask counts in the view"
        [ "$(head -n 1 "$WORK/modes-below")" = 660 ] || fail "umask $umask counts in the source"
    done
    rm -r "$WORK/view"/0*
    setfacl -k "$WORK/source"
    say 'a default list of a directory counts instead of the umask'
}

asked_as_the_source
control_is_guarded
default_lists_count
unmount_view "$WORK/view"
mount_view "$WORK/below" "$WORK/view"
default_lists_count
unmount_view "$WORK/view"
asked_as_the_source --direct-io --metadata-ttl 60
unmount_view "$WORK/view"

expect_failure '--passthrough' "$OGIVE" mount --allow-other --passthrough "$WORK/below" "$WORK/view"
mount_view "$WORK/below" "$WORK/view" --allow-other --trust-permissions 2>"$WORK/log"
grep -q '"permissions": "kernel"' "$WORK/view/.ogive/mount" || fail 'permissions are not trusted'
grep -q 'because of --trust-permissions' "$WORK/log" || fail 'the log does not say why'
unmount_view "$WORK/view"
say 'whoever trusts mode bits has them checked by the kernel'

# Below a source of this machine it is mode bits that count, and the log says so.
mkdir "$WORK/local" "$WORK/local/far"
mount --bind "$WORK/below" "$WORK/local/far"
remember_mount "$WORK/local/far"
mount_view "$WORK/local" "$WORK/view" --allow-other --log-file "$WORK/log" --log-format json
ls "$WORK/view/far" >"$WORK/asked"
grep -q '"event":"permissions_by_mode".*fuse.ogive at ' "$WORK/log" || fail 'the log does not warn'
unmount_view "$WORK/view"
umount "$WORK/local/far"
unmount_view "$WORK/below"

# A view that is root's alone is so in a shared view of what is above it, too.
echo secret >"$WORK/source/secret"
chmod 644 "$WORK/source/secret"
mount_view "$WORK/source" "$WORK/local/far"
expect_failure 'lets in user 0 alone' "$OGIVE" mount --allow-other "$WORK/local/far" "$WORK/view"
for option in --direct-io --metadata-ttl=0; do
    mount_view "$WORK/local" "$WORK/view" --allow-other "$option"
    expect_failure 'Permission denied' as bob cat "$WORK/view/far/secret"
    [ "$(cat "$WORK/view/far/secret")" = secret ] || fail 'root cannot read what is for root'
    expect_failure 'Permission denied' as bob cat "$WORK/view/far/secret"
    unmount_view "$WORK/view"
done
unmount_view "$WORK/local/far"
say 'what is mounted for one user is shown to that one alone'
passed
